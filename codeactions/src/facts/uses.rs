//! Which local variables expressions use and set.

use std::collections::BTreeSet;

use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, Name};

/// The local variable that an expression names.
pub fn named(body: &Body, expr: ExprId) -> Option<BindingId> {
    match body.expr(expr).kind {
        ExprKind::Name(Name::Local(binding)) => Some(binding),
        _ => None,
    }
}

/// The local variables in some expressions.
pub fn variables(body: &Body, exprs: &[ExprId]) -> BTreeSet<BindingId> {
    exprs.iter().filter_map(|e| named(body, *e)).collect()
}

/// The variable that is set when `place` is assigned to: the whole of it, or a field.
pub fn root(body: &Body, place: ExprId) -> Option<BindingId> {
    match &body.expr(place).kind {
        ExprKind::Name(_) => named(body, place),
        ExprKind::Paren(e)
        | ExprKind::Field {
            base: e, arrow: false, ..
        } => root(body, *e),
        _ => None,
    }
}
