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

/// An assignment that may leave the address of local or shared memory in memory, from where another kernel would read it; or a call of a
/// function that has one and does so.
pub fn stored_address(db: &dyn Db, function: FunctionItem<'_>, body: &Body) -> Option<ExprId> {
    left_by(body, false).or_else(|| {
        let leaves = |f: &FunctionItem<'_>| left_by(&gridfuse_analysis::hir::body(db, *f), true).is_some();
        let all = (0..body.exprs.len() as u32).map(ExprId);
        all.filter_map(|e| match &body.expr(e).kind {
            ExprKind::Call {
                name: Some(name), args, ..
            } => Some((e, name, args)),
            _ => None,
        })
        .find(|(_, name, args)| {
            // By reference, too.
            let own = |arg: &ExprId| {
                let local = matches!(body.expr(body.strip_parens(*arg)).kind, ExprKind::Name(Name::Local(b))
                    if body.binding(b).ty.pointers == 0);
                local || is_private(body, *arg, &mut HashSet::new(), false)
            };
            args.iter().any(own) && functions_named(db, function.file(db), name).iter().any(leaves)
        })
        .map(|(e, ..)| e)
    })
}

/// An assignment of a body that leaves such an address. `handed`: what its parameters point at is such memory as well, and a function that
/// hands it on may leave it.
fn left_by(body: &Body, handed: bool) -> Option<ExprId> {
    let all = (0..body.exprs.len() as u32).map(ExprId);
    let stores = all.filter_map(|e| match &body.expr(e).kind {
        ExprKind::Assign { place, value, .. } if variable(body, *place).is_none_or(|b| outlives(body, b, *place)) => {
            Some((e, vec![*value]))
        }
        ExprKind::Call { args, .. } if handed => Some((e, args.clone())),
        _ => None,
    });
    let mut stores = stores;
    stores.find_map(|(e, values)| {
        let mut values = values.into_iter();
        let private = values.any(|value| is_private(body, value, &mut HashSet::new(), handed));
        private.then_some(e)
    })
}

/// An assignment to a part of this variable changes what other threads see, or what it points at.
fn outlives(body: &Body, binding: BindingId, place: ExprId) -> bool {
    let variable = body.binding(binding);
    let whole = matches!(body.expr(body.strip_parens(place)).kind, ExprKind::Name(_));
    let shared = matches!(
        variable.storage,
        Storage::Shared | Storage::ExternShared | Storage::Static
    );
    variable.ty.reference || shared || variable.ty.pointers > 0 && !whole
}

/// Whether a value may be the address of local or shared memory, or has one in it.
fn is_private(body: &Body, value: ExprId, seen: &mut HashSet<BindingId>, handed: bool) -> bool {
    match &body.expr(value).kind {
        ExprKind::AddrOf(place) => handed || may_be_private(body, *place),
        ExprKind::Paren(e) | ExprKind::Cast { operand: e, .. } => is_private(body, *e, seen, handed),
        ExprKind::Binary(_, a, b) | ExprKind::Comma(a, b) => {
            is_private(body, *a, seen, handed) || is_private(body, *b, seen, handed)
        }
        ExprKind::Conditional { then, otherwise, .. } => {
            is_private(body, *then, seen, handed) || is_private(body, *otherwise, seen, handed)
        }
        ExprKind::Construct { args, .. } | ExprKind::InitList(args) => {
            args.iter().any(|arg| is_private(body, *arg, seen, handed))
        }
        // An array in a variable is its address.
        ExprKind::Field { base, arrow: false, .. } => {
            variable(body, *base).is_some_and(|b| is_private_variable(body, b, seen, handed))
        }
        ExprKind::Name(Name::Local(binding)) => is_private_variable(body, *binding, seen, handed),
        _ => false,
    }
}

fn is_private_variable(body: &Body, binding: BindingId, seen: &mut HashSet<BindingId>, handed: bool) -> bool {
    let variable_of = body.binding(binding);
    let array = !variable_of.ty.array.is_empty() && variable_of.storage != Storage::Param;
    if array || handed && variable_of.storage == Storage::Param && variable_of.ty.pointers > 0 {
        return true;
    }
    if !seen.insert(binding) {
        return false;
    }
    let declared = body.initialiser(binding);
    let assigned = body.exprs.iter().filter_map(|expr| match &expr.kind {
        ExprKind::Assign { place, value, .. } if variable(body, *place) == Some(binding) => Some(*value),
        _ => None,
    });
    let values: Vec<ExprId> = declared.into_iter().chain(assigned).collect();
    values.into_iter().any(|value| is_private(body, value, seen, handed))
}

/// Whether a place may be in local or shared memory, and not only behind a pointer: `&p[i]` and `&p->field` are where `p` points.
pub fn may_be_private(body: &Body, place: ExprId) -> bool {
    let behind = |e: ExprId| match body.expr(body.strip_parens(e)).kind {
        ExprKind::Name(Name::Local(binding)) => {
            let ty = &body.binding(binding).ty;
            ty.pointers > 0 && !ty.reference && ty.array.is_empty()
        }
        _ => false,
    };
    match &body.expr(place).kind {
        ExprKind::Paren(inner) => may_be_private(body, *inner),
        ExprKind::Field { base, arrow: true, .. } | ExprKind::Index { base, .. } | ExprKind::Deref(base) => {
            !behind(*base)
        }
        ExprKind::Field { base, .. } => may_be_private(body, *base),
        ExprKind::Name(Name::Other(_)) => false,
        _ => true,
    }
}
