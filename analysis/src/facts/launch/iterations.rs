//! Whether threads that launch in a loop may be in different iterations.

use super::{LaunchId, launches};
use crate::base::db::Db;
use crate::facts::uniformity::{Cause, FunctionUniformity, Level, Uniformity, assumed_uniformity, changes_around};
use crate::hir::walk::parts;
use crate::hir::{Body, StmtId, StmtKind, body};

/// For an operand that a loop around the launch changes: how differently threads go round that loop. Threads that are in
/// different iterations hand on different values, though each iteration by itself has one for all. `None`: no such loop.
pub fn iteration_divergence<'db>(
    db: &'db dyn Db,
    id: LaunchId<'db>,
    operand: crate::hir::ExprId,
) -> Option<Uniformity> {
    let facts = launches(db, id.function).get(id.index as usize)?;
    let body = body(db, id.function);
    let levels = assumed_uniformity(db, id.function);
    facts
        .loops
        .iter()
        .filter(|l| changes_around(db, id.function, &body, operand, l.stmt))
        .map(|l| rounds(&body, &levels, l.stmt, l.span))
        .max_by_key(|found| found.level)
}

/// How uniform the number of iterations is.
fn rounds(body: &Body, levels: &FunctionUniformity, stmt: StmtId, span: crate::base::span::Span) -> Uniformity {
    let unknown = || Uniformity {
        level: Level::Varying,
        ..Uniformity::default()
    };
    let (cond, inner) = match &body.stmt(stmt).kind {
        StmtKind::While { cond, body, .. } | StmtKind::For { cond, body, .. } => (*cond, *body),
        StmtKind::DoWhile { cond, body } => (Some(*cond), *body),
        StmtKind::RangeFor { range, body, .. } => (Some(*range), *body),
        _ => return unknown(),
    };
    let mut found = match cond {
        Some(cond) => levels.exprs.get(&cond).cloned().unwrap_or_else(unknown),
        None => Uniformity::default(),
    };
    let outside = levels.divergence.get(&stmt).map_or(Level::Varying, |u| u.level);
    // What else leaves the loop.
    let mut todo = vec![inner];
    while let Some(next) = todo.pop() {
        if matches!(
            body.stmt(next).kind,
            StmtKind::Break | StmtKind::Return(_) | StmtKind::Goto(_)
        ) {
            let there = levels.divergence.get(&next).cloned().unwrap_or_else(unknown);
            if there.level > outside && there.level > found.level {
                found = there;
            }
        }
        todo.extend(parts(body, next).0);
    }
    found.why = Some(Cause {
        text: "the trip count of this loop differs between threads, and so do the values".to_owned(),
        span,
    });
    found
}
