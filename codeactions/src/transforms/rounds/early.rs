//! What the host computes in front of the loop, and computed in its rounds before: as often as there were rounds, or never.

use gridfuse_analysis::hir::walk::{all_in_expr, all_stmts};
use gridfuse_analysis::hir::{BinOp, Body, ExprId, ExprKind, Literal, StmtId, StmtKind};

use super::host_loop::HostLoop;
use crate::facts::calls::is_plain_type;

/// A part of an expression that ends the program for some values: what divides, and what reads memory by a pointer.
pub fn may_fail(body: &Body, expr: ExprId, constant: impl Fn(ExprId) -> bool) -> bool {
    all_in_expr(body, expr).into_iter().any(|e| match &body.expr(e).kind {
        ExprKind::Binary(BinOp::Div | BinOp::Rem, _, by) => !constant(*by),
        ExprKind::Deref(_) | ExprKind::Index { .. } | ExprKind::Field { arrow: true, .. } => true,
        ExprKind::Construct { ty, .. } => ty != "dim3" && !is_plain_type(ty),
        ExprKind::Call { .. } => true,
        _ => false,
    })
}

/// Whether the first round comes for certain, and comes to a statement of the loop.
pub fn is_reached(host: &HostLoop<'_>, stmt: StmtId) -> bool {
    let body = &host.function.body;
    let leaves = |s: &StmtId| {
        let leaves = matches!(
            body.stmt(*s).kind,
            StmtKind::Break | StmtKind::Continue | StmtKind::Goto(_)
        );
        leaves && body.stmt(*s).span.start < body.stmt(stmt).span.start
    };
    has_a_round(host) && is_in_each_round(host, stmt) && !all_stmts(body, host.stmt).iter().any(leaves)
}

/// Whether a statement of the loop stands under no condition, so that a round that nothing leaves comes to it.
pub fn is_in_each_round(host: &HostLoop<'_>, stmt: StmtId) -> bool {
    let body = &host.function.body;
    let mut around =
        std::iter::successors(host.places.parent(stmt), |s| host.places.parent(*s)).take_while(|s| *s != host.stmt);
    around.all(|s| matches!(body.stmt(s).kind, StmtKind::Block(_)))
}

/// Whether the loop has a first round for certain.
fn has_a_round(host: &HostLoop<'_>) -> bool {
    let body = &host.function.body;
    let always = |cond: ExprId| match body.expr(body.strip_parens(cond)).kind {
        ExprKind::Literal(Literal::Bool(value)) => value,
        ExprKind::Literal(Literal::Int(value)) => value != 0,
        _ => false,
    };
    match &body.stmt(host.stmt).kind {
        StmtKind::DoWhile { .. } => true,
        StmtKind::While { cond: Some(cond), .. } => always(*cond),
        StmtKind::For { cond, .. } => cond.is_none_or(always),
        _ => false,
    }
}
