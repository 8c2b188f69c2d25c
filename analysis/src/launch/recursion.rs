//! Recursion through launches and calls.

use std::collections::{BTreeSet, HashSet};

use crate::budget::CALLEES;
use crate::db::Db;
use crate::hir::{ExprKind, body};
use crate::items::FunctionItem;
use crate::resolve::functions_named;

/// Names that a function launches (`true`) or calls (`false`), each once.
#[salsa::tracked]
fn callees<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> BTreeSet<(String, bool)> {
    body(db, function)
        .exprs
        .iter()
        .filter_map(|expr| match &expr.kind {
            ExprKind::Launch(launch) => Some((launch.kernel.clone()?, true)),
            ExprKind::Call { name, .. } => Some((name.clone()?, false)),
            _ => None,
        })
        .collect()
}

/// Whether code reached from `from` (by launches and calls, any depth) may launch or call one of `targets`: where more is reached
/// than is looked at, it may.
pub(super) fn reaches<'db>(db: &'db dyn Db, from: FunctionItem<'db>, targets: &[FunctionItem<'db>]) -> bool {
    let mut seen = HashSet::from([from]);
    let mut todo = vec![from];
    while let Some(function) = todo.pop() {
        for (name, kernel) in callees(db, function) {
            for callee in functions_named(db, function.file(db), name) {
                if !callee.has_body(db) || callee.signature(db).kernel != *kernel {
                    continue;
                }
                if targets.contains(&callee) {
                    return true;
                }
                if seen.insert(callee) {
                    if seen.len() > CALLEES {
                        return true;
                    }
                    todo.push(callee);
                }
            }
        }
    }
    false
}
