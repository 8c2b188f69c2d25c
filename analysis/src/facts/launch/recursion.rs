//! Recursion through launches and calls.

use std::collections::{BTreeSet, HashSet};

use crate::base::budget::CALLEES;
use crate::base::db::Db;
use crate::facts::effects::leads_too_far;
use crate::hir::items::FunctionItem;
use crate::hir::resolve::functions_in;
use crate::hir::{ExprKind, body};

/// Functions with a body that a function launches or calls by their names, each once. `None`: a part of it isn't analysed.
#[salsa::tracked]
fn callees<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<Vec<FunctionItem<'db>>> {
    let body = body(db, function);
    if body.cut {
        return None;
    }
    let names: BTreeSet<(&str, bool)> = body
        .exprs
        .iter()
        .filter_map(|expr| match &expr.kind {
            ExprKind::Launch(launch) => Some((launch.kernel.as_deref()?, true)),
            ExprKind::Call { name, .. } => Some((name.as_deref()?, false)),
            _ => None,
        })
        .collect();
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (name, kernel) in names {
        let all = functions_in(db, function, name).into_iter();
        found.extend(all.filter(|f| f.has_body(db) && f.signature(db).kernel == kernel && seen.insert(*f)));
    }
    Some(found)
}

/// Whether code reached from `from` (by launches and calls, any depth) may launch or call one of `targets`: where more is reached
/// than is looked at, or something of which nothing is known, it may.
pub(super) fn reaches<'db>(db: &'db dyn Db, from: FunctionItem<'db>, targets: &[FunctionItem<'db>]) -> bool {
    // The same is asked of everything else that it runs: found out once.
    if leads_too_far(db, from) {
        return true;
    }
    let mut seen = HashSet::from([from]);
    let mut todo = vec![from];
    while let Some(function) = todo.pop() {
        let Some(callees) = callees(db, function) else {
            return true;
        };
        for callee in callees.iter() {
            if targets.contains(callee) {
                return true;
            }
            if seen.insert(*callee) {
                if seen.len() > CALLEES {
                    return true;
                }
                todo.push(*callee);
            }
        }
    }
    false
}
