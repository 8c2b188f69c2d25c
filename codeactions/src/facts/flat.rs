//! Whether each thread of a kernel has little to do: then a warp's lanes can run many of its threads one after the other.

use std::collections::HashSet;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::functions_in;
use gridfuse_analysis::hir::{ExprKind, StmtKind, body};

/// How many functions are looked at.
const MOST: usize = 32;

/// Whether neither a function nor one that it calls has a loop, as far as these are in sight.
pub fn has_no_loop<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let mut seen = HashSet::from([function]);
    let mut todo = vec![function];
    while let Some(next) = todo.pop() {
        let body = body(db, next);
        let loops = body.stmts.iter().any(|stmt| {
            matches!(
                stmt.kind,
                StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::RangeFor { .. }
            )
        });
        if loops || seen.len() > MOST {
            return false;
        }
        for expr in &body.exprs {
            let ExprKind::Call { name: Some(name), .. } = &expr.kind else {
                continue;
            };
            let called = functions_in(db, next, name).into_iter();
            todo.extend(called.filter(|f| f.has_body(db) && seen.insert(*f)));
        }
    }
    true
}
