//! Expressions of the user's that become operands of what a rewrite writes.

use gridfuse_analysis::hir::{BinOp, ExprId, ExprKind};

use crate::edit::lex;
use crate::facts::site::Site;

/// `source`, which an expression of the launching function has, as one side of a comparison: in parentheses where an operator in it binds no
/// more tightly than `<` does (`n & mask`), or may, in a macro. A sum or product of at most `short` tokens is read at a glance without.
pub fn compared(site: &Site<'_>, expr: ExprId, source: &str, short: usize) -> String {
    let lowered = site.body.expr(expr);
    let primary = matches!(
        lowered.kind,
        ExprKind::Name(_)
            | ExprKind::Literal(_)
            | ExprKind::Field { .. }
            | ExprKind::Index { .. }
            | ExprKind::Call { .. }
            | ExprKind::Paren(_)
    );
    let tight = matches!(
        lowered.kind,
        ExprKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Rem, ..)
            | ExprKind::Unary(..)
            | ExprKind::Deref(_)
            | ExprKind::Cast { .. }
    );
    // What a macro stands for is an operand of the user's own, whatever it looks like.
    let bare = primary || tight && !lowered.from_macro && lex::code_tokens(source).len() <= short;
    match bare {
        true => source.to_owned(),
        false => format!("({source})"),
    }
}
