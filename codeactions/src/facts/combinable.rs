//! Atomic operations that the threads of a warp can combine.

use std::collections::HashSet;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::effects::{BUILTINS, effects};
use gridfuse_analysis::facts::launch::{Launchers, who_gets_to};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::functions_named;
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::walk::{all_in_expr, all_stmts};
use gridfuse_analysis::hir::{BinOp, Body, ExprId, ExprKind, Name, StmtId, StmtKind, body};

use crate::api::refusal::Refusals;
use crate::edit::names::Names;
pub use crate::facts::calls::TOGETHER as NAMESPACE;
use crate::facts::child::Child;
use crate::facts::ctype;
use crate::facts::plain_pointer::is_pointer;
use crate::facts::pure;

/// Their names.
const OPERATIONS: [&str; 7] = [
    "atomicAdd",
    "atomicSub",
    "atomicMin",
    "atomicMax",
    "atomicAnd",
    "atomicOr",
    "atomicXor",
];

/// The child does such operations, so that there is something to gain.
pub fn has_some(db: &dyn Db, child: FunctionItem<'_>) -> bool {
    let worker = worker(db, child);
    let mut refusals = Refusals::default();
    refuse_order(db, worker, "", &mut refusals);
    refusals.is_empty() && !uncombined(db, worker).is_empty()
}

/// Refuses a child that says in which order others see what it writes: behind a thread's fence stands an atomic operation that another
/// thread would do for it.
pub fn refuse_order(db: &dyn Db, worker: FunctionItem<'_>, name: &str, refusals: &mut Refusals) {
    refuse_fences(db, worker, name, "atomic operation", refusals);
}

/// Refuses a child with fences, or with what may be one: they order what a thread does before its own `operation`, which it may not do.
pub(super) fn refuse_fences(
    db: &dyn Db,
    worker: FunctionItem<'_>,
    name: &str,
    operation: &str,
    refusals: &mut Refusals,
) {
    let effects = effects(db, worker);
    if let Some(first) = effects.fences.first() {
        let text = format!(
            "`{name}` has a fence, which orders what a thread writes before its own {operation}: {}",
            first.what
        );
        refusals.add(text, Some(first.place));
    }
    if let Some(first) = effects.unknown.first() {
        refusals.add(
            format!("`{name}` uses what may be a fence: {}", first.what),
            Some(first.place),
        );
    }
    if let Some(asm) = effects.asm.first() {
        refusals.add(
            format!("`{name}` holds inline assembly, which may be a fence"),
            Some(asm.place),
        );
    }
}

/// Where the calls of those begin that are CUDA's.
pub fn uncombined(db: &dyn Db, function: FunctionItem<'_>) -> Vec<u32> {
    let body = body(db, function);
    let found = on_one_place(db, function).into_iter();
    let plain = found.filter(|operation| !operation.name.starts_with(NAMESPACE));
    plain.map(|operation| body.expr(operation.call).span.start).collect()
}

/// The function that holds the child's code, which an earlier rewrite may have moved.
pub fn worker<'db>(db: &'db dyn Db, child: FunctionItem<'db>) -> FunctionItem<'db> {
    Child::read(db, child, &mut Names::default(), &mut Refusals::default()).worker()
}

/// An atomic operation that is a statement.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The statement.
    pub stmt: StmtId,
    /// The call.
    pub call: ExprId,
    /// `atomicAdd`, or `gridfuse::warp_aggregated::atomicAdd`.
    pub name: String,
    /// Its first argument.
    pub pointer: ExprId,
    /// Its second argument.
    pub value: ExprId,
}

/// The atomic operations of more than one thread of a warp whose old value nobody uses, and whose place is the same for all threads of a
/// grid, in the order of the text.
pub fn on_one_place(db: &dyn Db, function: FunctionItem<'_>) -> Vec<Operation> {
    let file = function.file(db);
    let body = body(db, function);
    let Some(root) = body.root else { return Vec::new() };
    let stmts = all_stmts(&body, root);
    let by_one: HashSet<StmtId> = stmts.iter().flat_map(|stmt| done_by_one(&body, *stmt)).collect();
    let mut found = Vec::new();
    for stmt in stmts.into_iter().filter(|stmt| !by_one.contains(stmt)) {
        let StmtKind::Expr(expr) = body.stmt(stmt).kind else {
            continue;
        };
        let call = body.strip_parens(expr);
        let expr = body.expr(call);
        let ExprKind::Call {
            name: Some(name), args, ..
        } = &expr.kind
        else {
            continue;
        };
        let [pointer, value] = args.as_slice() else { continue };
        let known = match name.strip_prefix(NAMESPACE) {
            Some(plain) => OPERATIONS.contains(&plain),
            None => {
                OPERATIONS.contains(&name.as_str())
                    && !hides(db, function, name)
                    && functions_named(db, file, name).is_empty()
            }
        };
        let place = is_pointer(&body, *pointer) && is_same_for_all(db, function, &body, *pointer);
        // Where one thread comes, for example because all others have returned, there is nothing to combine.
        let many = || matches!(who_gets_to(db, function, call), None | Some(Launchers::ManyThreads));
        if known && !expr.from_macro && place && !is_float(&body, *pointer) && many() {
            found.push(Operation {
                stmt,
                call,
                name: name.clone(),
                pointer: *pointer,
                value: *value,
            });
        }
    }
    found.sort_by_key(|operation| body.expr(operation.call).span.start);
    found
}

/// What an `if` leaves to one thread of the block or of each warp, `if (threadIdx.x == 0) …`: there is nothing to combine. A comparison
/// of something in memory says nothing about how many threads come there. It's seen in the text, so also where the body has been moved and
/// `threadIdx` is a parameter, of which [`who_gets_to`] knows nothing.
pub(super) fn done_by_one(body: &Body, stmt: StmtId) -> Vec<StmtId> {
    let StmtKind::If {
        cond: Some(cond), then, ..
    } = &body.stmt(stmt).kind
    else {
        return Vec::new();
    };
    let mut conditions = vec![body.strip_parens(*cond)];
    while let Some(cond) = conditions.pop() {
        match &body.expr(cond).kind {
            ExprKind::Logical { and: true, lhs, rhs } => conditions.extend([lhs, rhs].map(|e| body.strip_parens(*e))),
            ExprKind::Binary(BinOp::Eq, a, b) => {
                let is_number = |e: &ExprId| matches!(body.expr(body.strip_parens(*e)).kind, ExprKind::Literal(_));
                let loads = all_in_expr(body, cond).into_iter().any(|e| {
                    matches!(
                        body.expr(e).kind,
                        ExprKind::Index { .. }
                            | ExprKind::Deref(_)
                            | ExprKind::Field { arrow: true, .. }
                            | ExprKind::Call { .. }
                    )
                });
                if !loads && (is_number(a) || is_number(b)) {
                    return all_stmts(body, *then);
                }
            }
            _ => {}
        }
    }
    Vec::new()
}

/// The value is the same for all threads of a grid: made of parameters that nothing changes, and of constants.
pub(super) fn is_same_for_all(db: &dyn Db, function: FunctionItem<'_>, body: &Body, expr: ExprId) -> bool {
    let same = |e: ExprId| is_same_for_all(db, function, body, e);
    match &body.expr(expr).kind {
        ExprKind::Paren(inner) | ExprKind::Unary(_, inner) => same(*inner),
        ExprKind::Cast { operand, .. } => same(*operand),
        ExprKind::Literal(_) => true,
        ExprKind::Binary(_, a, b) => same(*a) && same(*b),
        ExprKind::Field { base, arrow: false, .. } => same(*base),
        ExprKind::Name(Name::Local(binding)) => {
            !BUILTINS.contains(&body.binding(*binding).name.as_str())
                && pure::is_immutable_parameter(db, function, body, *binding)
        }
        ExprKind::AddrOf(place) => is_one_place(db, function, body, *place),
        _ => false,
    }
}

/// The place is the same: an element of what a parameter points to, a part of it, or a global variable.
pub(super) fn is_one_place(db: &dyn Db, function: FunctionItem<'_>, body: &Body, place: ExprId) -> bool {
    let same = |e: ExprId| is_same_for_all(db, function, body, e);
    match &body.expr(place).kind {
        ExprKind::Paren(inner) => is_one_place(db, function, body, *inner),
        ExprKind::Index { base, index } => same(*base) && same(*index),
        ExprKind::Deref(pointer) => same(*pointer),
        ExprKind::Field { base, arrow: true, .. } => same(*base),
        ExprKind::Field { base, .. } => is_one_place(db, function, body, *base),
        ExprKind::Name(Name::Other(_)) => true,
        _ => false,
    }
}

/// The pointer is sure to point to a floating-point number, which isn't combined.
fn is_float(body: &Body, pointer: ExprId) -> bool {
    match &body.expr(pointer).kind {
        ExprKind::Paren(inner) => is_float(body, *inner),
        ExprKind::Binary(_, a, b) => is_float(body, *a) || is_float(body, *b),
        ExprKind::AddrOf(place) => match &body.expr(body.strip_parens(*place)).kind {
            ExprKind::Index { base, .. } => is_float(body, *base),
            ExprKind::Deref(inner) => is_float(body, *inner),
            _ => false,
        },
        ExprKind::Name(Name::Local(binding)) => {
            let ty = &body.binding(*binding).ty;
            ty.pointers == 1
                && matches!(
                    ctype::normalize(&ty.base).as_str(),
                    "float" | "double" | "__half" | "half"
                )
        }
        _ => false,
    }
}
