//! What the host computes in front of the loop, and computed in its rounds before: as often as there were rounds, or never.

use gridfuse_analysis::hir::walk::{all_exprs, all_in_expr, all_stmts};
use gridfuse_analysis::hir::{
    BinOp, BindingId, Body, ExprId, ExprKind, Literal, Name, StmtId, StmtKind, Storage, UnOp,
};

use super::host_loop::HostLoop;
use crate::facts::calls::is_plain_type;
use crate::facts::ctype;

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
fn is_in_each_round(host: &HostLoop<'_>, stmt: StmtId) -> bool {
    let body = &host.function.body;
    let mut around =
        std::iter::successors(host.places.parent(stmt), |s| host.places.parent(*s)).take_while(|s| *s != host.stmt);
    around.all(|s| matches!(body.stmt(s).kind, StmtKind::Block(_)))
}

/// Whether the loop has a first round for certain: what its condition asks for is known where it begins.
fn has_a_round(host: &HostLoop<'_>) -> bool {
    let body = &host.function.body;
    let holds = |cond: ExprId, init: Option<StmtId>| value(host, cond, init, 0).is_some_and(|value| value != 0);
    match &body.stmt(host.stmt).kind {
        StmtKind::DoWhile { .. } => true,
        StmtKind::While { cond: Some(cond), .. } => holds(*cond, None),
        StmtKind::For { init, cond, .. } => cond.is_none_or(|cond| holds(cond, *init)),
        _ => false,
    }
}

/// Values of variables that are followed.
const MAX_DEPTH: u32 = 8;

/// The value of an expression where the loop begins. `init`: what its head does first.
fn value(host: &HostLoop<'_>, expr: ExprId, init: Option<StmtId>, depth: u32) -> Option<i128> {
    let body = &host.function.body;
    let of = |e: &ExprId| value(host, *e, init, depth);
    let number = |truth: bool| Some(i128::from(truth));
    match &body.expr(expr).kind {
        ExprKind::Literal(Literal::Bool(truth)) => number(*truth),
        // Below 0 it may become a large one, beside what has no sign.
        ExprKind::Literal(Literal::Int(value)) => Some(*value).filter(|value| *value >= 0),
        ExprKind::Paren(e) => of(e),
        ExprKind::Unary(UnOp::Not, e) => number(of(e)? == 0),
        ExprKind::Logical { and: true, lhs, rhs } => number(of(lhs)? != 0 && of(rhs)? != 0),
        ExprKind::Logical { and: false, lhs, rhs } => match of(lhs) {
            Some(value) if value != 0 => Some(1),
            _ => number(of(rhs)? != 0),
        },
        ExprKind::Binary(op, a, b) => match op {
            BinOp::Lt => number(of(a)? < of(b)?),
            BinOp::Le => number(of(a)? <= of(b)?),
            BinOp::Gt => number(of(a)? > of(b)?),
            BinOp::Ge => number(of(a)? >= of(b)?),
            BinOp::Eq => number(of(a)? == of(b)?),
            BinOp::Ne => number(of(a)? != of(b)?),
            _ => None,
        },
        ExprKind::Name(Name::Local(variable)) if depth < MAX_DEPTH => {
            let own = body.binding(*variable);
            // A static variable is set once, however often the function is called.
            let plain = matches!(own.storage, Storage::Local | Storage::Param)
                && own.ty.is_value()
                && !own.ty.volatile
                && is_plain_type(&ctype::normalize(&own.ty.base));
            let set = plain.then(|| set_before(host, *variable, init)).flatten()?;
            let value = value(host, set, None, depth + 1)?;
            match own.ty.base == "bool" {
                true => number(value != 0),
                false => Some(value).filter(|value| FITS.contains(value)),
            }
        }
        _ => None,
    }
}

/// Numbers that a variable of any type holds as they are, signed or not.
const FITS: std::ops::RangeInclusive<i128> = 0..=127;

/// What a variable is set to by the loop's head, or by the last statement in front of the loop, in its block, that names it.
fn set_before(host: &HostLoop<'_>, variable: BindingId, init: Option<StmtId>) -> Option<ExprId> {
    let body = &host.function.body;
    let siblings = match &body.stmt(host.places.parent(host.stmt)?).kind {
        StmtKind::Block(stmts) => stmts.as_slice(),
        _ => &[],
    };
    let before = siblings.iter().take_while(|stmt| **stmt != host.stmt).copied();
    let names_it = |stmt: &StmtId| {
        let declares =
            matches!(&body.stmt(*stmt).kind, StmtKind::Decl(decls) if decls.iter().any(|d| d.binding == variable));
        // To a label somebody may come from below.
        let understood = |stmt: StmtId| {
            !matches!(
                body.stmt(stmt).kind,
                StmtKind::Unknown { .. } | StmtKind::Asm { .. } | StmtKind::Label(..) | StmtKind::Case { .. }
            )
        };
        let named = all_exprs(body, *stmt).into_iter().any(|e| match &body.expr(e).kind {
            ExprKind::Name(Name::Local(named)) => *named == variable,
            ExprKind::Lambda { .. } | ExprKind::Unknown { .. } => true,
            _ => false,
        });
        declares || named || !all_stmts(body, *stmt).into_iter().all(understood)
    };
    let mut all: Vec<StmtId> = before.chain(init).collect();
    all.reverse();
    let last = all.into_iter().find(names_it)?;
    match &body.stmt(last).kind {
        StmtKind::Decl(decls) => decls.iter().find(|decl| decl.binding == variable)?.init,
        StmtKind::Expr(e) => match body.expr(*e).kind {
            ExprKind::Assign { op: None, place, value } if host.local(place) == Some(variable) => Some(value),
            _ => None,
        },
        _ => None,
    }
}
