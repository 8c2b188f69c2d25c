//! The local variables that an expression names.

use super::memory::Places;
use crate::hir::flow::operands;
use crate::hir::{BindingId, Body, ExprId, ExprKind, Name};

/// The bindings of which `e`, as an lvalue, may be a part.
pub(super) fn objects(places: Places<'_>, e: ExprId) -> Vec<BindingId> {
    let body = places.body;
    let mut found = Vec::new();
    let mut stack = vec![e];
    while let Some(e) = stack.pop() {
        match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b)) => found.push(*b),
            ExprKind::Paren(e)
            | ExprKind::Comma(_, e)
            | ExprKind::Cast { operand: e, .. }
            | ExprKind::Assign { place: e, .. }
            | ExprKind::IncDec { place: e, .. }
            | ExprKind::Field {
                base: e, arrow: false, ..
            } => stack.push(*e),
            ExprKind::Conditional { then, otherwise, .. } => stack.extend([*then, *otherwise]),
            ExprKind::Index { base, .. } => {
                let pointer = places.shape(*base).is_some_and(|s| s.dims == 0 && s.pointers > 0);
                if !pointer {
                    stack.push(*base);
                }
            }
            _ => {}
        }
    }
    found
}

/// Local variables that occur in an expression.
pub(super) fn mentions(body: &Body, e: ExprId) -> Vec<BindingId> {
    let mut found = Vec::new();
    let mut stack = vec![e];
    while let Some(e) = stack.pop() {
        if let ExprKind::Name(Name::Local(b)) = &body.expr(e).kind {
            found.push(*b);
        }
        stack.extend(operands(&body.expr(e).kind));
    }
    found
}
