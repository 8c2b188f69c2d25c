//! A launch site with everything that rewrites ask about it, and the refusals that they have in common.

use std::sync::Arc;

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::launch::{Child, LaunchFacts, LaunchId, Launchers, Places, launches, statement_places};
use gridfuse_analysis::hir::extents::functions_near;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::library::{Does, library};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::{definitions_by_name, functions_in, is_made_by_macros, runs_on_device};
use gridfuse_analysis::hir::stream_ordered::Operation;
use gridfuse_analysis::hir::syntax_error::syntax_error;
use gridfuse_analysis::hir::{Body, ExprId, ExprKind, Launch, StmtId, StmtKind, body};

use crate::api::refusal::Ineligible;
use crate::api::refusal::Refusals;
use crate::api::refusal::refuse;
use crate::edit::lex;
use crate::facts::calls;
use crate::facts::child::refuse_uncertain;
use crate::facts::surroundings::{refuse_callers, waits_for_children};

/// Whether a function of the runtime launches a kernel that it is given.
fn is_launch_function(name: &str) -> bool {
    matches!(
        unqualified(name),
        "cudaLaunchKernel"
            | "cudaLaunchKernelEx"
            | "cudaLaunchKernelExC"
            | "cudaLaunchCooperativeKernel"
            | "cudaLaunchDevice"
            | "cudaLaunchDeviceV2"
            | "cudaGraphLaunch"
    )
}

/// Whether a word in front of a function's name is one of the language.
fn is_specifier(word: &str) -> bool {
    matches!(
        word,
        "void"
            | "inline"
            | "static"
            | "extern"
            | "constexpr"
            | "__global__"
            | "__device__"
            | "__host__"
            | "__forceinline__"
            | "__noinline__"
            | "__launch_bounds__"
    ) || calls::is_keyword(word)
}

/// A launch site.
#[derive(Clone)]
pub struct Site<'db> {
    /// The database.
    pub db: &'db dyn Db,
    /// The launch.
    pub id: LaunchId<'db>,
    /// The function that launches.
    pub parent: FunctionItem<'db>,
    /// Its file.
    pub file: SourceFile,
    /// The file's text.
    pub text: Arc<str>,
    /// The function's offset in it.
    pub start: u32,
    /// The function's lowered body.
    pub body: Arc<Body>,
    /// Where its parts stand.
    pub places: Arc<Places>,
    /// The facts of the launch.
    pub facts: &'db LaunchFacts<'db>,
    /// The launch expression.
    pub launch: Launch,
}

impl<'db> Site<'db> {
    /// Its grid has one block.
    pub fn has_one_block(&self) -> bool {
        self.facts.grid.constant == Some([1, 1, 1])
    }

    /// The launch with this id.
    pub fn new(db: &'db dyn Db, id: LaunchId<'db>) -> Result<Self, Ineligible> {
        let parent = id.function;
        let body = body(db, parent);
        let facts = launches(db, parent)
            .get(id.index as usize)
            .ok_or_else(|| refuse("there is no such launch any more", None))?;
        let ExprKind::Launch(launch) = &body.expr(facts.expr).kind else {
            return Err(refuse("there is no such launch any more", None));
        };
        let launch = (**launch).clone();
        Ok(Site {
            db,
            id,
            parent,
            file: parent.file(db),
            text: parent.file(db).text(db),
            start: parent.start(db),
            places: statement_places(db, parent),
            body,
            facts,
            launch,
        })
    }

    /// A span of the parent as a place.
    pub fn place(&self, span: Span) -> FileRange {
        FileRange {
            file: self.file,
            range: span.shift(self.start),
        }
    }

    /// The source of a span of the parent.
    pub fn source(&self, span: Span) -> &str {
        span.shift(self.start).text(&self.text)
    }

    /// The source of an expression of the parent.
    pub fn expr_source(&self, expr: ExprId) -> &str {
        self.source(self.body.expr(expr).span)
    }

    /// The place of the launch.
    pub fn here(&self) -> FileRange {
        self.place(self.facts.span)
    }

    /// The launching function's name without namespaces.
    pub fn parent_name(&self) -> &'db str {
        unqualified(self.parent.name(self.db))
    }

    /// The kernel's name as written, without namespaces.
    pub fn child_name(&self) -> &str {
        self.facts.kernel_name.as_deref().map_or("the child", unqualified)
    }

    /// The statement around the launch statement.
    pub fn around(&self, stmt: StmtId) -> Option<&StmtKind> {
        self.places.parent(stmt).map(|p| &self.body.stmt(p).kind)
    }

    /// The child, when exactly one kernel is meant and its definition can be read.
    pub fn child(&self, refusals: &mut Refusals) -> Option<FunctionItem<'db>> {
        let name = self.child_name();
        match &self.facts.child {
            Child::Kernel(kernel) => Some(*kernel),
            Child::Ambiguous(several) => {
                let second = several.get(1).map(|f| FileRange {
                    file: f.file(self.db),
                    range: f.signature(self.db).name_span.shift(f.start(self.db)),
                });
                refusals.add(
                    format!("several kernels named `{name}` fit, and which one is launched isn't clear"),
                    second,
                );
                None
            }
            Child::Unknown => {
                let (why, place) = self.unknown_child();
                refusals.add(why, Some(place));
                None
            }
        }
    }

    /// Why it isn't known which kernel is launched.
    fn unknown_child(&self) -> (String, FileRange) {
        let db = self.db;
        let name = self.child_name();
        let here = self.place(self.launch.name_span);
        let Some(written) = self.facts.kernel_name.as_deref() else {
            let pointer = self.source(self.launch.name_span);
            return (format!("which kernel `{pointer}` points to isn't known"), here);
        };
        let functions = functions_in(db, self.parent, written);
        if let Some(function) = functions.iter().find(|f| f.has_body(db)) {
            let place = FileRange {
                file: function.file(db),
                range: function.signature(db).name_span.shift(function.start(db)),
            };
            let head = function.signature(db).head_span.shift(function.start(db));
            let text = place.file.text(db);
            let mut words = lex::identifiers(head.text(&text));
            let why = match words.find(|word| !is_specifier(word)) {
                Some(word) => {
                    format!("`{name}` isn't known to be a kernel: `{word}` in front of it isn't defined in sight")
                }
                None => format!("`{name}` is not declared `__global__`"),
            };
            return (why, place);
        }
        if is_made_by_macros(db, self.parent.file(db), written) {
            return (
                format!("a macro, or what else isn't parsed, may make another `{name}` than the one in sight"),
                here,
            );
        }
        let elsewhere = definitions_by_name(db).get(name).into_iter().flatten();
        let why = if elsewhere.into_iter().any(|f| f.signature(db).kernel) {
            format!("`{name}` is declared neither in this file nor in what it includes")
        } else {
            format!("the definition of `{name}` isn't in the workspace")
        };
        (why, here)
    }

    /// Refuses a launch of which an `#if` decides a part, or that is compiled for the host in another way. One that stands in a branch as
    /// a whole is rewritten there; that the branch is compiled is what the edit takes for granted (see [`crate::edit::branches`]).
    pub fn refuse_conditional(&self, refusals: &mut Refusals) {
        let signature = self.parent.signature(self.db);
        let statement = self.facts.statement.map(|s| self.body.stmt(s).span);
        let touched = [
            self.facts.span.cover(statement.unwrap_or(self.facts.span)),
            signature.params_span,
        ];
        let twice = signature.host && !signature.kernel;
        for group in self.parent.decided(self.db) {
            let mut parts = touched
                .iter()
                .filter(|part| part.start < group.end && group.start < part.end);
            if parts.any(|part| twice || !(group.start <= part.start && part.end <= group.end)) {
                refusals.add("an #if decides what is compiled here", Some(self.place(*group)));
            }
        }
    }

    /// What no rewrite of device-side launches can work with.
    pub fn refuse_common(&self, refusals: &mut Refusals) {
        let here = Some(self.here());
        if self.facts.launchers == Launchers::Host {
            refusals.add("the host launches it, not a kernel", here);
        }
        let signature = self.parent.signature(self.db);
        // Under `#ifdef __CUDA_ARCH__` it is the device's alone.
        let before = self.source(Span::new(0, self.facts.span.start));
        let for_device = lex::identifiers(before).any(|word| word == "__CUDA_ARCH__");
        if signature.host && runs_on_device(self.db, self.parent) && !signature.kernel && !for_device {
            refusals.add(
                format!(
                    "`{}` is a function of the host, too, and what it launches the host may launch as well",
                    self.parent_name()
                ),
                here,
            );
        }
        if self.facts.from_macro {
            refusals.add("the launch comes out of a macro", here);
        }
        if self.facts.in_lambda {
            refusals.add(
                "the launch stands in a lambda, and who calls that when isn't known",
                here,
            );
        }
        if self.launch.config.len() < 2 || self.launch.config.len() > 4 {
            refusals.add("the configuration of the launch is not understood", here);
        }
        if let Some(operand) = self
            .launch
            .config
            .iter()
            .find(|c| matches!(self.body.expr(**c).kind, ExprKind::InitList(_)))
        {
            let place = self.place(self.body.expr(*operand).span);
            refusals.add("the configuration of the launch is not understood", Some(place));
        }
        self.refuse_conditional(refusals);
        refuse_uncertain(self.db, self.parent, refusals);
        if let Some(error) = syntax_error(self.db, self.parent) {
            refusals.add(
                format!("`{}` isn't understood completely: a syntax error", self.parent_name()),
                Some(self.place(error)),
            );
        }
        for (span, reason) in &self.body.problems {
            refusals.add(
                format!("`{}` isn't understood completely: {reason}", self.parent_name()),
                Some(self.place(*span)),
            );
        }
        refuse_callers(self, refusals);
        // Waiting for children is about the very launches that would be changed.
        for expr in &self.body.exprs {
            let ExprKind::Call { name: Some(name), .. } = &expr.kind else {
                continue;
            };
            if is_launch_function(name) {
                refusals.add(
                    format!(
                        "`{}` launches with {name}() as well, and what that launches isn't known",
                        self.parent_name()
                    ),
                    Some(self.place(expr.span)),
                );
            }
            let Some(known) = library(name) else { continue };
            let waits = [Does::WAITS_FOR_CHILDREN, Does::WAITS_FOR_STREAM];
            let parent = format!("`{}`", self.parent_name());
            let text = if waits.iter().any(|d| known.does.has(*d)) {
                waits_for_children(&parent, &format!("{name}()"))
            } else if matches!(known.stream, Some((Operation::Event, _))) {
                format!("{parent} orders streams by events with {name}()")
            } else {
                continue;
            };
            refusals.add(text, Some(self.place(expr.span)));
        }
    }
}

/// The function around a place.
pub fn function_around(db: &dyn Db, place: FileRange) -> Option<FunctionItem<'_>> {
    let functions = functions_near(db, place.file, place.range);
    functions
        .into_iter()
        .filter(|f| {
            let start = f.start(db);
            f.has_body(db) && start <= place.range.start && place.range.end <= start + f.text(db).len() as u32
        })
        .min_by_key(|f| f.text(db).len())
}

/// The launch by device code at a place: the smallest one around it, or the first one in it.
pub fn site_at(db: &dyn Db, place: FileRange) -> Result<Site<'_>, Ineligible> {
    let nothing = || refuse("no kernel launch by device code stands here", Some(place));
    let function = function_around(db, place).ok_or_else(nothing)?;
    let found = launches(db, function)
        .iter()
        .enumerate()
        .filter(|(_, facts)| facts.launchers != Launchers::Host)
        .filter(|(_, facts)| {
            let range = facts.span.shift(function.start(db));
            range.start <= place.range.end && place.range.start <= range.end
        })
        .min_by_key(|(_, facts)| {
            let range = facts.span.shift(function.start(db));
            (!range.contains(place.range), range.end - range.start, range.start)
        });
    let (index, _) = found.ok_or_else(nothing)?;
    let index = index as u32;
    Site::new(db, LaunchId { function, index })
}
