//! What the callers of a device function hand to its parameters.

use std::collections::HashSet;

use super::level::{FunctionUniformity, Level};
use crate::base::db::{Db, SourceFile};
use crate::base::span::Span;
use crate::facts::defaults::constant_default;
use crate::facts::effects::direct;
use crate::facts::launch::statement_places;
use crate::hir::items::FunctionItem;
use crate::hir::mentions::{files_mentioning, functions_mentioning, places_of};
use crate::hir::names::unqualified;
use crate::hir::resolve::{is_local_in, may_mean, means_another, runs_on_device};
use crate::hir::{ExprId, ExprKind, body, parameters};

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
    let mut found = Vec::new();
    for file in files_mentioning(db, name) {
        if means_another(db, *file, function) {
            continue;
        }
        for caller in functions_mentioning(db, *file, name) {
            if !caller.has_body(db) || !runs_on_device(db, *caller) {
                continue;
            }
            let calls = &direct(db, *caller).calls;
            let hits = calls.iter().filter(|call| call.candidates.contains(&function));
            found.extend(hits.map(|call| Call {
                caller: *caller,
                expr: call.expr,
            }));
        }
    }
    found
}

/// Whether the name of a device function stands nowhere but in its declarations and in calls that were found: nothing else that is in
/// sight can call it. Not so where a function of which nothing is known mentions it (one that is too large, or has an error in it),
/// where its address is taken or it is a template's argument, and for members, of which not all calls are found.
#[salsa::tracked(returns(copy))]
pub(crate) fn only_known_calls<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let last = unqualified(function.name(db));
    let mut files = files_mentioning(db, last).iter();
    !function.signature(db).member
        && files.all(|file| !may_mean(db, *file, function) || explained(db, *file, last.to_owned()))
}

/// Whether each mention of a function's name in a file is a declaration of a function of that name, or a call that was found. Kept, as
/// many functions may have the name.
#[salsa::tracked(returns(copy))]
fn explained(db: &dyn Db, file: SourceFile, last: String) -> bool {
    let last = last.as_str();
    // Where the names end that are known: those of declarations and of calls.
    let mut known: HashSet<u32> = HashSet::new();
    for function in functions_mentioning(db, file, last) {
        let text = function.text(db);
        let mut add = |span: Span| {
            // Of `f<g>` the mention of `f` alone: `g` may be a function that is called.
            let name = span.text(&text).split('<').next().unwrap_or("").trim_end();
            known.insert(function.start(db) + span.start + name.len() as u32);
        };
        if unqualified(function.name(db)) == last {
            add(function.signature(db).name_span);
        }
        if !function.has_body(db) {
            continue;
        }
        let body = body(db, *function);
        for call in &direct(db, *function).calls {
            let made = body.expr(call.expr);
            if let (ExprKind::Call { callee, .. }, false) = (&made.kind, made.from_macro) {
                add(body.expr(*callee).span);
            }
        }
    }
    places_of(db, file, last).iter().all(|mention| {
        let local = |f: &FunctionItem<'_>| f.has_body(db) && is_local_in(db, *f, last);
        known.contains(&mention.place.range.end) || mention.identifier_in.as_ref().is_some_and(local)
    })
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
    if calls.is_empty() || called_recursively(db, function) || !only_known_calls(db, function) {
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
