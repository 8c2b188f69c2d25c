//! Launches to which `threshold` has left the larger grids.

use super::{LaunchFacts, statement_places};
use crate::base::db::Db;
use crate::hir::items::FunctionItem;
use crate::hir::names::unqualified;
use crate::hir::{ExprKind, StmtKind, body};

/// What is added to the name of a kernel for the function that runs its grids in the launching thread.
const SERIAL: &str = "_serial";

/// The launch stands in the alternative of a grid that runs in the launching thread: `if (n < kThreshold) child_serial(…); else
/// child<<<…>>>(…);`.
pub fn is_thresholded(db: &dyn Db, function: FunctionItem<'_>, launch: &LaunchFacts<'_>) -> bool {
    let Some(child) = launch.kernel_name.as_deref() else {
        return false;
    };
    let body = body(db, function);
    let places = statement_places(db, function);
    let runs_it = |expr| match &body.expr(expr).kind {
        ExprKind::Call { name: Some(name), .. } => {
            let child = unqualified(child);
            let coarse = child.strip_suffix("_coarsened").unwrap_or(child);
            unqualified(name)
                .strip_suffix(SERIAL)
                .is_some_and(|of| of == child || of == coarse)
        }
        _ => false,
    };
    places.around(launch.expr).any(|stmt| match &body.stmt(stmt).kind {
        StmtKind::If {
            then,
            otherwise: Some(larger),
            ..
        } => {
            let small = match &body.stmt(*then).kind {
                StmtKind::Block(inner) => match inner.as_slice() {
                    [only] => *only,
                    _ => *then,
                },
                _ => *then,
            };
            let is_serial = matches!(body.stmt(small).kind, StmtKind::Expr(expr) if runs_it(expr));
            is_serial && body.stmt(*larger).span.contains(body.expr(launch.expr).span)
        }
        _ => false,
    })
}
