//! The host's loop: where it stands, and which of its variables change.

use std::collections::BTreeSet;
use std::sync::Arc;

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::launch::{LaunchId, Places, launches, statement_places};
use gridfuse_analysis::hir::resolve::runs_on_device;
use gridfuse_analysis::hir::walk::{all_exprs, all_stmts};
use gridfuse_analysis::hir::{BindingId, ExprId, ExprKind, Name, StmtId, StmtKind};

use super::api;
use crate::api::refusal::{Ineligible, Refusals, refuse};
use crate::edit::lex;
use crate::facts::child::refuse_uncertain;
use crate::facts::cluster::Function;
use crate::facts::cuda_types;
use crate::facts::site::{Site, function_around};

/// A loop by the host that launches kernels.
pub struct HostLoop<'db> {
    /// The function around it.
    pub function: Function<'db>,
    /// Where its parts stand.
    pub places: Arc<Places>,
    /// The loop.
    pub stmt: StmtId,
    /// The launches in it, in order.
    pub launches: Vec<Site<'db>>,
    /// Variables that are declared in it.
    pub inner: BTreeSet<BindingId>,
    /// Variables that are declared in front of it and change in it.
    pub varying: BTreeSet<BindingId>,
}

impl<'db> HostLoop<'db> {
    /// The smallest loop by the host, with launches in it, that a place touches.
    ///
    /// # Errors
    /// There is none.
    pub fn find(db: &'db dyn Db, place: FileRange) -> Result<HostLoop<'db>, Ineligible> {
        let nothing = || refuse("no loop of the host's that launches kernels stands here", Some(place));
        let item = function_around(db, place).ok_or_else(nothing)?;
        if runs_on_device(db, item) {
            return Err(nothing());
        }
        let function = Function::new(db, item);
        let own = |stmt: &StmtId| function.body.stmt(*stmt).span;
        let touches = |stmt: &StmtId| {
            let range = own(stmt).shift(function.start);
            range.start <= place.range.end && place.range.start <= range.end
        };
        let all = launches(db, item);
        let launches_in = |stmt: &StmtId| all.iter().any(|facts| own(stmt).contains(facts.span));
        let stmt = (0..function.body.stmts.len() as u32)
            .map(StmtId)
            .filter(|s| is_loop(&function.body.stmt(*s).kind))
            .filter(|s| touches(s) && launches_in(s))
            .min_by_key(|s| (own(s).end - own(s).start, own(s).start))
            .ok_or_else(nothing)?;
        let mut sites = Vec::new();
        for (index, facts) in all.iter().enumerate() {
            if own(&stmt).contains(facts.span) {
                let index = index as u32;
                sites.push(Site::new(db, LaunchId { function: item, index })?);
            }
        }
        let mut host = HostLoop {
            places: statement_places(db, item),
            function,
            stmt,
            launches: sites,
            inner: BTreeSet::new(),
            varying: BTreeSet::new(),
        };
        host.find_variables();
        Ok(host)
    }

    fn find_variables(&mut self) {
        let body = &self.function.body;
        for stmt in all_stmts(body, self.stmt) {
            if let StmtKind::Decl(decls) = &body.stmt(stmt).kind {
                self.inner.extend(decls.iter().map(|decl| decl.binding));
            }
        }
        let changed = all_exprs(body, self.stmt)
            .into_iter()
            .flat_map(|e| self.changed_by(e))
            .filter(|b| !self.inner.contains(b) && !api::is_error(&self.function, *b));
        self.varying = changed.collect();
    }

    /// The variables that an expression changes itself.
    fn changed_by(&self, expr: ExprId) -> Vec<BindingId> {
        let body = &self.function.body;
        match &body.expr(expr).kind {
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => self.local(*place).into_iter().collect(),
            ExprKind::Call {
                name: Some(name), args, ..
            } => match api::named(&self.function, name) {
                Some(api::Call::Swap) => args.iter().filter_map(|arg| self.local(*arg)).collect(),
                Some(_) => args.first().and_then(|arg| self.address_of(*arg)).into_iter().collect(),
                None => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// The variable that an expression is.
    pub fn local(&self, expr: ExprId) -> Option<BindingId> {
        let body = &self.function.body;
        match body.expr(body.strip_parens(expr)).kind {
            ExprKind::Name(Name::Local(binding)) => Some(binding),
            _ => None,
        }
    }

    /// The variable whose address an expression is, casts aside.
    pub fn address_of(&self, expr: ExprId) -> Option<BindingId> {
        let body = &self.function.body;
        match body.expr(body.strip_parens(expr)).kind {
            ExprKind::Cast { operand, .. } => self.address_of(operand),
            ExprKind::AddrOf(variable) => self.local(variable),
            _ => None,
        }
    }

    /// Whether a variable has another value in another round.
    pub fn changes(&self, binding: BindingId) -> bool {
        self.inner.contains(&binding) || self.varying.contains(&binding)
    }

    /// Its file.
    pub fn file(&self) -> SourceFile {
        self.function.file
    }

    /// Its span in the function.
    pub fn span(&self) -> Span {
        self.function.body.stmt(self.stmt).span
    }

    /// The source of a span of the function.
    pub fn source(&self, span: Span) -> &str {
        span.shift(self.function.start).text(&self.function.text)
    }

    /// What stands in front of the function's name.
    pub fn head(&self) -> Span {
        let name = self.function.name_place().range.start;
        Span::new(0, name.saturating_sub(self.function.start))
    }

    /// The code between the statement before and an offset in the function, without comments: attributes, pragmas, the words of a declaration.
    pub fn in_front(&self, offset: u32) -> String {
        let mut words = lex::code_words(self.source(Span::new(0, offset)));
        let begins = words.iter().rposition(|word| matches!(*word, ";" | "{" | "}"));
        words.drain(..begins.map_or(0, |at| at + 1));
        words.join(" ")
    }

    /// The source of an expression, on one line.
    pub fn flat(&self, expr: ExprId) -> String {
        crate::edit::one_line::one_line(self.function.source(expr))
    }

    /// The refusal of a loop that is unlike any that are known.
    pub fn not_understood(&self) -> Ineligible {
        refuse("the loop is not understood", Some(self.function.place(self.span())))
    }

    /// Refuses a function in which the loop isn't seen as a whole, or beside which no kernel can stand that sees what it sees.
    pub fn refuse_surroundings(&self, refusals: &mut Refusals) {
        let Function { db, item, body, .. } = &self.function;
        let (name, span) = (self.function.name(), self.span());
        let signature = item.signature(*db);
        refuse_uncertain(*db, *item, refusals);
        cuda_types::refuse_others(*db, self.file(), self.function.name_place(), refusals);
        if signature.template_params.is_some() {
            let why = format!("`{name}` is a template: write the loop into a function that is none");
            refusals.add(why, Some(self.function.name_place()));
        }
        if signature.member {
            let why = format!("`{name}` is a member of a class: move the loop into a function of its own");
            refusals.add(why, Some(self.function.name_place()));
        }
        let head = self.head();
        let before = self.function.text.get(..self.function.start as usize).unwrap_or("");
        let line = before.rsplit([';', '{', '}']).next().unwrap_or("");
        let mut specifiers = lex::identifiers(self.source(head)).chain(lex::identifiers(line));
        if specifiers.any(|word| word == "friend") {
            let why = format!("`{name}` is defined in a class: define it outside");
            refusals.add(why, Some(self.function.name_place()));
        }
        if self.source(head).trim().is_empty() {
            let why = format!("what stands before the name of `{name}` isn't understood: write its type there");
            refusals.add(why, Some(self.function.name_place()));
        }
        let own = item.text(*db);
        let handles = lex::code_words(&own)
            .iter()
            .any(|word| matches!(*word, "try" | "throw"));
        if handles {
            let why = format!(
                "`{name}` throws or handles exceptions, which a kernel can't; move the loop into a function that doesn't"
            );
            refusals.add(why, Some(self.function.name_place()));
        }
        for (problem, why) in &body.problems {
            if problem.start < span.end && span.start < problem.end {
                let text = format!("the loop isn't understood completely: {why}");
                refusals.add(text, Some(self.function.place(*problem)));
            }
        }
        for group in item.decided(*db) {
            if group.start < span.end && span.start < group.end {
                refusals.add(
                    "an #if decides what is compiled here",
                    Some(self.function.place(*group)),
                );
            }
        }
        if body.cut {
            refusals.add(
                "an #if cuts through a statement of the function",
                Some(self.function.name_place()),
            );
        }
        let captures = body.exprs.iter().find(
            |e| matches!(&e.kind, ExprKind::Call { name: Some(name), .. } if name.ends_with("cudaStreamBeginCapture")),
        );
        if let Some(capture) = captures {
            refusals.add(
                "the function records a graph, in which nothing can wait for the loop",
                Some(self.function.place(capture.span)),
            );
        }
        self.refuse_pragmas(refusals);
        let around = std::iter::successors(self.places.parent(self.stmt), |s| self.places.parent(*s));
        for outer in around.map(|s| &body.stmt(s).kind) {
            if matches!(outer, StmtKind::Unknown { .. } | StmtKind::Preprocessor { .. }) {
                refusals.add(
                    "what stands around the loop isn't understood",
                    Some(self.function.place(span)),
                );
            }
        }
    }

    /// Refuses pragmas that are about the loop, about what stands around it, or about what stands in it.
    fn refuse_pragmas(&self, refusals: &mut Refusals) {
        let (body, span) = (&self.function.body, self.span());
        let has_one = |offset: u32| {
            let in_front = self.in_front(offset);
            lex::code_words(&in_front).iter().any(|word| PRAGMAS.contains(word))
        };
        let place = Some(self.function.place(span));
        if has_one(span.start) {
            refusals.add(
                "a pragma in front of the loop is about the loop, which becomes a launch: remove the pragma",
                place,
            );
        }
        let mut around = std::iter::successors(self.places.parent(self.stmt), |s| self.places.parent(*s));
        if around.any(|stmt| Some(stmt) != body.root && has_one(body.stmt(stmt).span.start)) {
            refusals.add(
                "a pragma is about what stands around the loop, which several threads of the host may run: take the loop out of it",
                place,
            );
        }
        let words = lex::code_words(self.source(span));
        let directive = words
            .iter()
            .find(|word| PRAGMAS.contains(word) || MACROS.contains(word));
        if let Some(directive) = directive {
            refusals.add(
                format!("`{directive}` in the loop is about code of the host: remove it, or take what it is about out of the loop"),
                place,
            );
        }
    }
}

/// Words that begin a pragma.
const PRAGMAS: [&str; 3] = ["pragma", "_Pragma", "__pragma"];

/// Directives that decide what a name means from there on.
const MACROS: [&str; 2] = ["define", "undef"];

/// Whether a statement is a loop with a condition.
fn is_loop(kind: &StmtKind) -> bool {
    matches!(
        kind,
        StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::For { .. }
    )
}
