//! Expressions that a macro makes: at their place stands the use of the macro, which is the source of all that it stands for.

use gridfuse_analysis::hir::walk::all_in_expr;
use gridfuse_analysis::hir::{Body, ExprId};

/// Whether an expression is a part of what a macro stands for, so that the text at its place says more than it: of
/// `#define ADD(a, b) ((a) + (b))` and `ADD(x, 1)` that is `1`, and of `#define LAST(i) (!more(i))` the call.
pub fn is_part_of_macro(body: &Body, expr: ExprId) -> bool {
    let own = body.expr(expr);
    if !own.from_macro {
        return false;
    }
    let inner = all_in_expr(body, expr);
    let mut all = (0..body.exprs.len() as u32).map(ExprId);
    all.any(|other| {
        // Parentheses around it change nothing.
        body.expr(other).span == own.span
            && !inner.contains(&other)
            && body.strip_parens(other) != body.strip_parens(expr)
    })
}
