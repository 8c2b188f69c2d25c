//! Arrays of streams that a kernel creates: `cudaStream_t s[8]`, into one of which a thread launches.

use crate::base::db::Db;
use crate::facts::callee::is_runtime;
use crate::facts::streams::creates_stream;
use crate::hir::items::FunctionItem;
use crate::hir::{BindingId, Body, ExprId, ExprKind, Name, Storage};

/// The array of which an operand is an element, where all its elements are streams that this function creates, and nothing else is done with
/// them than that something is launched into them and that they are destroyed. A thread's launches may go into different ones, which are in
/// no order, or into the same.
pub(super) fn array_of_created<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    operand: ExprId,
) -> Option<BindingId> {
    let array = element_of(body, operand)?;
    let variable = body.binding(array);
    let ty = &variable.ty;
    let plain = !ty.array.is_empty() && ty.pointers == 0 && !ty.reference && !ty.complex && !ty.volatile;
    if !plain || variable.storage != Storage::Local || body.initialiser(array).is_some() {
        return None;
    }
    let mut known: Vec<ExprId> = Vec::new();
    for expr in &body.exprs {
        match &expr.kind {
            ExprKind::Call {
                name: Some(name), args, ..
            } => {
                let Some(first) = args.first().map(|first| body.strip_parens(*first)) else {
                    continue;
                };
                match &body.expr(first).kind {
                    ExprKind::AddrOf(place) if creates_stream(db, function, name) => {
                        known.extend(name_in(body, *place))
                    }
                    ExprKind::Index { .. }
                        if name.trim_start_matches("::") == "cudaStreamDestroy" && is_runtime(db, function, name) =>
                    {
                        known.extend(name_in(body, first));
                    }
                    _ => {}
                }
            }
            ExprKind::Launch(launch) => {
                known.extend(launch.config.get(3).and_then(|stream| name_in(body, *stream)));
            }
            _ => {}
        }
    }
    let names_it = |(index, expr): (usize, &crate::hir::Expr)| match &expr.kind {
        ExprKind::Name(Name::Local(binding)) => *binding == array && !known.contains(&ExprId(index as u32)),
        ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => mentions.contains(&array),
        _ => false,
    };
    (!body.exprs.iter().enumerate().any(names_it)).then_some(array)
}

/// The local variable of which an expression is an element.
fn element_of(body: &Body, expr: ExprId) -> Option<BindingId> {
    match body.expr(name_in(body, expr)?).kind {
        ExprKind::Name(Name::Local(binding)) => Some(binding),
        _ => None,
    }
}

/// The `s` of `s[i]`.
fn name_in(body: &Body, expr: ExprId) -> Option<ExprId> {
    let ExprKind::Index { base, .. } = &body.expr(body.strip_parens(expr)).kind else {
        return None;
    };
    let base = body.strip_parens(*base);
    matches!(body.expr(base).kind, ExprKind::Name(Name::Local(_))).then_some(base)
}
