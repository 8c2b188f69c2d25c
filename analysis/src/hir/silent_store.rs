//! Stores that are left out where they would change nothing: `if (*done != 1) *done = 1;`.
//!
//! A store of what is there already is silent (Lepak and Lipasti: Silent Stores for Free, MICRO 2000). Whoever looks first and stores only
//! where there is something else does what the store alone would do, in whatever order other threads write: what it found there is what it
//! would have stored at that moment. So the look is no read of what others write.

use super::{BinOp, Body, ExprId, ExprKind, StmtId, StmtKind};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilentStore {
    /// The `if`.
    pub stmt: StmtId,
    /// The place in its condition.
    pub look: ExprId,
    /// The store: an expression statement.
    pub store: StmtId,
}

/// All that a body has.
pub fn silent_stores(body: &Body) -> Vec<SilentStore> {
    let stmts = (0..body.stmts.len() as u32).map(StmtId);
    stmts.filter_map(|stmt| silent_store(body, stmt)).collect()
}

fn silent_store(body: &Body, stmt: StmtId) -> Option<SilentStore> {
    let StmtKind::If {
        cond: Some(cond),
        then,
        otherwise: None,
        ..
    } = &body.stmt(stmt).kind
    else {
        return None;
    };
    let ExprKind::Binary(BinOp::Ne, a, b) = &body.expr(body.strip_parens(*cond)).kind else {
        return None;
    };
    let store = match &body.stmt(*then).kind {
        StmtKind::Block(stmts) => match stmts.as_slice() {
            [only] => *only,
            _ => return None,
        },
        _ => *then,
    };
    let StmtKind::Expr(assignment) = body.stmt(store).kind else {
        return None;
    };
    let ExprKind::Assign { op: None, place, value } = &body.expr(body.strip_parens(assignment)).kind else {
        return None;
    };
    let same =
        |looked: ExprId, other: ExprId| is_same_value(body, looked, *place) && is_same_value(body, other, *value);
    let look = if same(*a, *b) {
        *a
    } else if same(*b, *a) {
        *b
    } else {
        return None;
    };
    Some(SilentStore {
        stmt,
        look: body.strip_parens(look),
        store,
    })
}

/// Whether two expressions that change nothing have the same value, one right after the other: they are written alike.
fn is_same_value(body: &Body, a: ExprId, b: ExprId) -> bool {
    let same = |a: &ExprId, b: &ExprId| is_same_value(body, *a, *b);
    let [a, b] = [a, b].map(|e| &body.expr(body.strip_parens(e)).kind);
    match (a, b) {
        (ExprKind::Literal(a), ExprKind::Literal(b)) => a == b,
        (ExprKind::Name(a), ExprKind::Name(b)) => a == b,
        (ExprKind::Unary(op, a), ExprKind::Unary(other, b)) => op == other && same(a, b),
        (ExprKind::Binary(op, a, c), ExprKind::Binary(other, b, d)) => op == other && same(a, b) && same(c, d),
        (ExprKind::Deref(a), ExprKind::Deref(b)) | (ExprKind::AddrOf(a), ExprKind::AddrOf(b)) => same(a, b),
        (ExprKind::Index { base: a, index: i }, ExprKind::Index { base: b, index: j }) => same(a, b) && same(i, j),
        (
            ExprKind::Field { base: a, field, arrow },
            ExprKind::Field {
                base: b,
                field: other,
                arrow: by,
            },
        ) => field == other && arrow == by && same(a, b),
        _ => false,
    }
}
