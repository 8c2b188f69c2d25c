//! What the callers of a device function hand to its parameters.

use std::collections::{HashMap, HashSet};

use super::level::{FunctionUniformity, Level};
use crate::db::{Db, SourceFile, Workspace};
use crate::hir::{ExprId, ExprKind, body, parameters};
use crate::items::{FunctionItem, items};
use crate::launch::statement_places;
use crate::resolve::{unqualified, words_of};
use crate::summary::{constant_default, direct};

/// What all calls together hand to one parameter.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub(super) struct Given {
    pub level: Level,
    pub why: Option<String>,
}

impl Given {
    fn join(&mut self, level: Level, why: Option<String>) {
        if level > self.level {
            *self = Given { level, why };
        }
    }
}

/// A call of a device function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub(crate) struct Call<'db> {
    /// The calling function: a kernel or a device function.
    pub caller: FunctionItem<'db>,
    /// The call in it.
    pub expr: ExprId,
}

/// The calls of a function in device code that can be seen.
#[salsa::tracked]
pub(crate) fn calls_of<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Call<'db>> {
    let name = unqualified(function.name(db));
    let Some(workspace) = Workspace::try_get(db) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for file in workspace.files(db).values() {
        if !words_of(db, *file).contains(name) {
            continue;
        }
        found.extend(calls_in(db, *file).get(&function).into_iter().flatten());
    }
    found
}

/// The calls in a file's device code, by the function that is called.
#[salsa::tracked]
fn calls_in<'db>(db: &'db dyn Db, file: SourceFile) -> HashMap<FunctionItem<'db>, Vec<Call<'db>>> {
    let mut found: HashMap<FunctionItem<'db>, Vec<Call<'db>>> = HashMap::new();
    for caller in &items(db, file).functions {
        let signature = caller.signature(db);
        if !caller.has_body(db) || !(signature.kernel || signature.device) {
            continue;
        }
        for call in &direct(db, *caller).calls {
            let candidates: HashSet<FunctionItem<'db>> = call.candidates.iter().copied().collect();
            for function in candidates {
                found.entry(function).or_default().push(Call {
                    caller: *caller,
                    expr: call.expr,
                });
            }
        }
    }
    found
}

/// The function is called, over however many calls, by a function that calls itself: nothing is known of its arguments.
pub(crate) fn called_recursively<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    // Depth-first over the callers; `done` are those without a cycle above them.
    let mut done: HashSet<FunctionItem<'db>> = HashSet::new();
    let mut path: Vec<(FunctionItem<'db>, usize)> = vec![(function, 0)];
    while let Some((f, next)) = path.last().copied() {
        match calls_of(db, f).get(next) {
            Some(call) => {
                if let Some(top) = path.last_mut() {
                    top.1 += 1;
                }
                if path.iter().any(|(g, _)| *g == call.caller) || path.len() > 64 {
                    return true;
                }
                if !done.contains(&call.caller) {
                    path.push((call.caller, 0));
                }
            }
            None => {
                done.insert(f);
                path.pop();
            }
        }
    }
    false
}

/// For each parameter, what the calls hand to it; empty when none are seen or when that can't be told.
#[salsa::tracked]
pub(super) fn given<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Given> {
    let calls = calls_of(db, function);
    if calls.is_empty() || called_recursively(db, function) {
        return Vec::new();
    }
    let own = body(db, function);
    let text = function.text(db);
    let constant = Given {
        level: Level::Constant,
        why: None,
    };
    let mut found = vec![constant; parameters(db, function).len()];
    for call in calls {
        let body = body(db, call.caller);
        let levels = super::assumed_uniformity(db, call.caller);
        let ExprKind::Call { args, .. } = &body.expr(call.expr).kind else {
            return Vec::new();
        };
        // Threads that come from different calls bring different values.
        let apart = match calls.len() {
            1 => Level::Constant,
            _ => divergence(db, call.caller, &levels, call.expr),
        };
        for (i, given) in found.iter_mut().enumerate() {
            match args.get(i) {
                Some(arg) => {
                    let uniformity = levels.exprs.get(arg);
                    let why = uniformity.and_then(|u| u.why.as_ref()).map(|cause| cause.text.clone());
                    given.join(uniformity.map_or(Level::Varying, |u| u.level), why);
                }
                None => {
                    let default = own.params.get(i).and_then(|p| own.binding(*p).default);
                    if !default.is_some_and(|d| constant_default(&text, d)) {
                        given.join(Level::Varying, Some("its default argument".to_owned()));
                    }
                }
            }
            given.join(apart, Some("it is called from several places".to_owned()));
        }
    }
    found
}

/// How uniform the decision is that control gets to an expression's statement.
fn divergence<'db>(db: &'db dyn Db, caller: FunctionItem<'db>, levels: &FunctionUniformity, expr: ExprId) -> Level {
    let stmt = statement_places(db, caller).statement_of(expr);
    let found = stmt.and_then(|s| levels.divergence.get(&s));
    found.map_or(Level::Varying, |u| u.level)
}
