//! Expressions that are plain pointers, numbers and places in memory: no operator and no conversion of a class runs where they are
//! evaluated, and nothing is read from memory.

use gridfuse_analysis::hir::{BinOp, Body, ExprId, ExprKind, Literal, Name};

use crate::facts::calls::is_plain_type;
use crate::facts::ctype;

/// A pointer variable or parameter, one that is moved by a number, the address of a plain place, or one of these cast to a pointer.
pub fn is_pointer(body: &Body, expr: ExprId) -> bool {
    match &body.expr(expr).kind {
        ExprKind::Paren(inner) => is_pointer(body, *inner),
        ExprKind::Cast { ty, operand, .. } => ty.trim_end().ends_with('*') && is_pointer(body, *operand),
        ExprKind::Binary(BinOp::Add, a, b) => {
            is_pointer(body, *a) && is_number(body, *b) || is_number(body, *a) && is_pointer(body, *b)
        }
        ExprKind::Binary(BinOp::Sub, a, b) => is_pointer(body, *a) && is_number(body, *b),
        ExprKind::Name(Name::Local(binding)) => {
            let ty = &body.binding(*binding).ty;
            let one = usize::from(ty.pointers) + ty.array.len() == 1;
            one && !ty.reference && !ty.complex
        }
        ExprKind::AddrOf(place) => is_place(body, *place),
        _ => false,
    }
}

/// What a plain pointer points to, a part of it, or a global variable.
fn is_place(body: &Body, place: ExprId) -> bool {
    match &body.expr(place).kind {
        ExprKind::Paren(inner) => is_place(body, *inner),
        ExprKind::Index { base, index } => is_pointer(body, *base) && is_number(body, *index),
        ExprKind::Deref(pointer) => is_pointer(body, *pointer),
        ExprKind::Field { base, arrow: true, .. } => is_pointer(body, *base),
        ExprKind::Field { base, .. } => is_place(body, *base),
        ExprKind::Name(Name::Other(_)) => true,
        _ => false,
    }
}

/// A whole number made of variables and constants.
fn is_number(body: &Body, expr: ExprId) -> bool {
    match &body.expr(expr).kind {
        ExprKind::Paren(inner) | ExprKind::Unary(_, inner) => is_number(body, *inner),
        ExprKind::Literal(literal) => matches!(literal, Literal::Int(_)),
        ExprKind::Cast { ty, operand, .. } => is_plain_type(&ctype::normalize(ty)) && is_number(body, *operand),
        ExprKind::Binary(_, a, b) => is_number(body, *a) && is_number(body, *b),
        ExprKind::Name(Name::Local(binding)) => {
            let ty = &body.binding(*binding).ty;
            ty.is_value() && is_plain_type(&ctype::normalize(&ty.base))
        }
        _ => false,
    }
}
