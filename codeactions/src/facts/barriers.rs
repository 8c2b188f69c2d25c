//! Whether the threads of a block meet at each of a kernel's barriers, with none of them gone before: then the kernel's body can
//! be run several times in a row, and the threads of one round don't meet those of the next.

use std::collections::HashSet;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::effects::{Effects, effects, runs};
use gridfuse_analysis::facts::groups::group_call;
use gridfuse_analysis::facts::launch::statement_places;
use gridfuse_analysis::facts::uniformity::{Level, assumed_uniformity, settled_uniformity, uniformity};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::library::{Library, Together, library};
use gridfuse_analysis::hir::resolve::functions_in;
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::{Body, ExprId, ExprKind, StmtKind, body};

use crate::api::assumption::{self, Assumed};
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;

/// Refuses a kernel named `name`, whose body is that of `worker`, unless every barrier is reached by all threads of the block or
/// by none, and every exchange within a warp by all threads of the warp or by none. What that takes for granted is returned.
pub fn refuse_divergent<'db>(
    db: &'db dyn Db,
    worker: FunctionItem<'db>,
    name: &str,
    effects: &Effects,
    settled: bool,
    refusals: &mut Refusals,
) -> Vec<Assumed> {
    let so = "so a block can't go on to the next block's work";
    refuse_divergent_so(db, worker, name, so, effects, settled, refusals)
}

/// The same, with what follows from it: `so a block can't go on to the next block's work`.
pub fn refuse_divergent_so<'db>(
    db: &'db dyn Db,
    worker: FunctionItem<'db>,
    name: &str,
    so: &str,
    effects: &Effects,
    settled: bool,
    refusals: &mut Refusals,
) -> Vec<Assumed> {
    let mut search = Search {
        db,
        settled,
        met: HashSet::new(),
        done: HashSet::new(),
        divergent: Vec::new(),
        unclear: Vec::new(),
        assumes: Vec::new(),
    };
    if !effects.barriers.is_empty() || !effects.warp.is_empty() {
        search.function(worker);
    }
    if let Some((place, why)) = search.divergent.first() {
        refusals.add(
            format!("not all threads of a block of `{name}` reach this, {so}: {why}"),
            Some(*place),
        );
        return Vec::new();
    }
    if let Some((place, callee)) = search.unclear.first() {
        refusals.add(
            format!("whether all threads of a block of `{name}` reach the barriers of `{callee}` isn't clear: it isn't called by its name here"),
            Some(*place),
        );
        return Vec::new();
    }
    // Those that the body doesn't show, in a macro for example.
    let hidden = effects
        .barriers
        .iter()
        .chain(&effects.warp)
        .find(|found| !search.met.contains(&found.place));
    if let Some(hidden) = hidden {
        refusals.add(
            format!(
                "whether all threads of a block of `{name}` reach {} isn't clear",
                hidden.what
            ),
            Some(hidden.place),
        );
    }
    search.assumes
}

struct Search<'db> {
    db: &'db dyn Db,
    settled: bool,
    /// Places of the barriers and exchanges that were looked at.
    met: HashSet<FileRange>,
    done: HashSet<FunctionItem<'db>>,
    /// Those that not all reach, and why.
    divergent: Vec<(FileRange, String)>,
    /// Places where a function with barriers runs in another way than by a call of its name: a member function, an operator. Another call
    /// of it, or of what it calls, says nothing of that one.
    unclear: Vec<(FileRange, String)>,
    assumes: Vec<Assumed>,
}

impl<'db> Search<'db> {
    fn function(&mut self, function: FunctionItem<'db>) {
        if !self.done.insert(function) {
            return;
        }
        let db = self.db;
        let body = body(db, function);
        let levels = uniformity(db, function);
        let places = statement_places(db, function);
        let file = function.file(db);
        let mut followed: Vec<Span> = Vec::new();
        for (index, expr) in body.exprs.iter().enumerate() {
            let ExprKind::Call { name, callee, .. } = &expr.kind else {
                continue;
            };
            let called = body.expr(*callee).span;
            let (needed, span) = match (group_call(db, function, &body, *callee), &body.expr(*callee).kind, name) {
                (Some((_, known)), ExprKind::Field { field, .. }, _) => {
                    let start = called.end.saturating_sub(field.len() as u32);
                    (together(&known), Span::new(start, called.end))
                }
                (_, _, Some(name)) => (self.needed(function, name), called),
                _ => continue,
            };
            followed.push(called);
            let place = FileRange {
                file,
                range: span.shift(function.start(db)),
            };
            if needed == Level::Varying {
                continue;
            }
            self.met.insert(place);
            let statement = places.statement_of(ExprId(index as u32)).filter(|s| {
                let whole = matches!(
                    body.stmt(*s).kind,
                    StmtKind::Expr(_) | StmtKind::Decl(_) | StmtKind::Return(_) | StmtKind::If { .. }
                );
                whole && !under_a_condition(&body, ExprId(index as u32))
            });
            let mut divergence = statement.and_then(|s| levels.divergence.get(&s)).cloned();
            if self.settled && divergence.as_ref().is_some_and(|found| found.level > needed) {
                let believed = settled_uniformity(db, function);
                let settled = statement.and_then(|s| believed.divergence.get(&s));
                divergence = settled.filter(|found| found.level <= needed).cloned().or(divergence);
            }
            // What a function is given, its calls in sight tell.
            if !function.signature(db).kernel && divergence.as_ref().is_some_and(|found| found.level > needed) {
                let believed = assumed_uniformity(db, function);
                let assumed = statement.and_then(|s| believed.divergence.get(&s));
                divergence = assumed.filter(|found| found.level <= needed).cloned().or(divergence);
            }
            match divergence {
                Some(found) if found.level <= needed => {
                    self.assumes.extend(found.assumes.iter().map(|cause| {
                        assumption::THREADS_MEET.of(Reason {
                            text: cause.text.clone(),
                            place: Some(FileRange {
                                file,
                                range: cause.span.shift(function.start(db)),
                            }),
                        })
                    }));
                }
                Some(found) => {
                    let why = found
                        .why
                        .map_or_else(|| "it stands under a condition".to_owned(), |why| why.text);
                    self.divergent.push((place, why));
                }
                None => self.divergent.push((place, "it stands under a condition".to_owned())),
            }
        }
        self.others(function, &followed);
    }

    /// Looks for functions with barriers that run where no call of a name was looked at.
    fn others(&mut self, function: FunctionItem<'db>, followed: &[Span]) {
        let db = self.db;
        for run in runs(db, function).iter() {
            let seen = |span: &Span| run.function == function && span.contains(run.at);
            if followed.iter().any(seen) {
                continue;
            }
            let meets = |callee: &&FunctionItem<'db>| {
                let inner = effects(db, **callee);
                !inner.barriers.is_empty() || !inner.warp.is_empty()
            };
            if let Some(callee) = run.functions.iter().find(meets) {
                let place = FileRange {
                    file: run.function.file(db),
                    range: run.at.shift(run.function.start(db)),
                };
                self.unclear.push((place, callee.name(db).to_owned()));
            }
        }
    }

    /// Which threads must come together to what is called by this name.
    fn needed(&mut self, function: FunctionItem<'db>, name: &str) -> Level {
        let db = self.db;
        let functions = functions_in(db, function, name);
        if functions.is_empty() && !hides(db, function, name) {
            return library(name).map_or(Level::Varying, |known| together(&known));
        }
        let mut needed = Level::Varying;
        for callee in functions.into_iter().filter(|f| f.has_body(db)) {
            let inner = effects(db, callee);
            if !inner.barriers.is_empty() {
                needed = needed.min(Level::Block);
            } else if !inner.warp.is_empty() {
                needed = needed.min(Level::Warp);
            }
            if needed < Level::Varying {
                self.function(callee);
            }
        }
        needed
    }
}

/// Which threads must come together to a library function.
fn together(known: &Library) -> Level {
    match known.together {
        Together::Alone => Level::Varying,
        Together::Warp => Level::Warp,
        Together::Block | Together::Group => Level::Block,
    }
}

/// It is evaluated on the right of `&&`, `||` or `?`, or in a lambda.
fn under_a_condition(body: &Body, expr: ExprId) -> bool {
    let own = body.expr(expr).span;
    body.exprs.iter().enumerate().any(|(index, other)| {
        let conditional = match other.kind {
            // What stands on the left is evaluated in any case.
            ExprKind::Logical { lhs, .. } | ExprKind::Conditional { cond: lhs, .. } => {
                !body.expr(lhs).span.contains(own)
            }
            ExprKind::Lambda { .. } | ExprKind::Unknown { .. } => true,
            _ => false,
        };
        conditional && index != expr.0 as usize && other.span.contains(own)
    })
}
