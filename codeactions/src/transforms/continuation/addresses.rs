//! Numbers that hold addresses: as little as a pointer does one of local or shared memory mean anything to another kernel.

use std::collections::HashSet;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::functions_named;
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::walk::all_in_expr;
use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtKind, Storage};

/// The variables that are no pointers and may hold the address of local or shared memory, or what is computed from one.
pub fn hold_addresses(db: &dyn Db, function: FunctionItem<'_>, body: &Body) -> HashSet<BindingId> {
    let mut found = HashSet::new();
    let mut values: Vec<(BindingId, ExprId)> = Vec::new();
    for stmt in &body.stmts {
        if let StmtKind::Decl(decls) = &stmt.kind {
            values.extend(decls.iter().filter_map(|d| Some((d.binding, d.init?))));
        }
    }
    for expr in &body.exprs {
        if let ExprKind::Assign { place, value, .. } = &expr.kind
            && let Some(binding) = variable(body, *place)
        {
            values.push((binding, *value));
        }
    }
    values.retain(|(binding, _)| body.binding(*binding).ty.pointers == 0);
    loop {
        let before = found.len();
        for (binding, value) in &values {
            if !found.contains(binding) && makes_address(db, function, body, *value, &found) {
                found.insert(*binding);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// The variable that an assignment sets, or sets a part of.
fn variable(body: &Body, place: ExprId) -> Option<BindingId> {
    match &body.expr(place).kind {
        ExprKind::Name(Name::Local(binding)) => Some(*binding),
        ExprKind::Paren(e)
        | ExprKind::Field {
            base: e, arrow: false, ..
        }
        | ExprKind::Index { base: e, .. } => variable(body, *e),
        _ => None,
    }
}

/// A pointer is made a number in an expression, or handed to a function that may do so; or a number is in it that was one.
fn makes_address(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    value: ExprId,
    known: &HashSet<BindingId>,
) -> bool {
    let own = |e: ExprId| is_pointer(body, e);
    all_in_expr(body, value).into_iter().any(|e| match &body.expr(e).kind {
        ExprKind::Name(Name::Local(binding)) => known.contains(binding),
        ExprKind::Cast { ty, operand, .. } => !ty.contains('*') && own(*operand),
        ExprKind::Construct { args, .. } => args.iter().any(|arg| own(*arg)),
        ExprKind::Call { name, args, .. } => {
            let name = name.as_deref().unwrap_or("");
            let converts = name.starts_with("__cvta_")
                || hides(db, function, name)
                || !functions_named(db, function.file(db), name).is_empty();
            converts && args.iter().any(|arg| own(*arg))
        }
        _ => false,
    })
}

/// An address, an array, or a pointer that isn't the program's to begin with: a parameter points at what all kernels can use.
fn is_pointer(body: &Body, e: ExprId) -> bool {
    match &body.expr(e).kind {
        ExprKind::AddrOf(_) => true,
        ExprKind::Paren(e) | ExprKind::Cast { operand: e, .. } => is_pointer(body, *e),
        ExprKind::Binary(_, a, b) => is_pointer(body, *a) || is_pointer(body, *b),
        ExprKind::Conditional { then, otherwise, .. } => is_pointer(body, *then) || is_pointer(body, *otherwise),
        ExprKind::Name(Name::Local(binding)) => {
            let binding = body.binding(*binding);
            binding.storage != Storage::Param && (binding.ty.pointers > 0 || !binding.ty.array.is_empty())
        }
        _ => false,
    }
}
