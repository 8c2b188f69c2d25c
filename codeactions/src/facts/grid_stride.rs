//! Recognises kernels whose threads loop over their work in steps of the whole grid, so that a grid of any size does all of it:
//! `for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) …`

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::dependence::rounds_are_independent;
use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::{Meaning, meaning_in};
use gridfuse_analysis::hir::{
    BinOp, BindingId, Body, Builtin, ExprId, ExprKind, Literal, Name, StmtId, StmtKind, Storage,
};

use crate::facts::calls;
use crate::facts::child::Child;
use crate::facts::ctype;
use crate::facts::movable;
use crate::facts::pure;

/// Whether the child's body is such a loop and nothing else that depends on the size of the grid: each round does the same
/// whichever thread does it, with nothing left over from the round before, neither in variables nor in memory: a thread of a smaller grid
/// does other rounds one after the other.
pub fn is_grid_stride(child: &Child<'_>) -> bool {
    let body: &Body = &child.body;
    let effects = effects(child.db, child.item);
    let alone = child.outlined.is_none()
        && body.problems.is_empty()
        && effects.barriers.is_empty()
        && effects.warp.is_empty()
        && effects.shared.is_empty()
        && effects.waits.is_empty()
        && effects.asm.is_empty()
        && effects.unknown.is_empty()
        && effects.builtins_in_callees.is_empty()
        && movable::implicit_read(child).is_none();
    alone && recognise(child, body).is_some()
}

fn recognise(child: &Child<'_>, body: &Body) -> Option<()> {
    let StmtKind::Block(stmts) = &body.stmt(body.root?).kind else {
        return None;
    };
    let mut stmts = stmts
        .iter()
        .copied()
        .filter(|s| !matches!(body.stmt(*s).kind, StmtKind::Empty));
    let (mut starts, mut strides) = (Vec::new(), Vec::new());
    let mut next = stmts.next()?;
    while let StmtKind::Decl(decls) = &body.stmt(next).kind {
        for decl in decls {
            let init = decl.init?;
            if is_thread_index(body, init) {
                starts.push(decl.binding);
            } else if is_stride(body, init, &[]) {
                strides.push(decl.binding);
            } else if !is_plain_variable(body, decl.binding) || !is_plain(child, init) {
                return None;
            }
        }
        next = stmts.next()?;
    }
    let StmtKind::For {
        init,
        cond: Some(cond),
        step: Some(step),
        body: inner,
    } = body.stmt(next).kind
    else {
        return None;
    };
    if stmts.next().is_some() {
        return None;
    }
    let mut index = starts.last().copied();
    let mut head = vec![body.expr(step).span];
    if let Some(init) = init.filter(|s| !matches!(body.stmt(*s).kind, StmtKind::Empty)) {
        let StmtKind::Decl(decls) = &body.stmt(init).kind else {
            return None;
        };
        let [decl] = decls.as_slice() else { return None };
        let from = decl.init?;
        let start = is_thread_index(body, from) || starts.iter().any(|s| is_local(body, from, *s));
        index = Some(decl.binding).filter(|_| start);
        head.push(body.expr(from).span);
    }
    let index = index?;
    starts.retain(|s| *s != index);
    // A thread of a smaller grid does the work of several, so that what differs between them must not be seen: where a thread
    // begins, and by how much it goes on.
    let whole = body.stmt(next).span;
    let unseen = body.exprs.iter().all(|expr| match expr.kind {
        ExprKind::Name(Name::Local(b)) if b == index => whole.contains(expr.span),
        ExprKind::Name(Name::Local(b)) if starts.contains(&b) || strides.contains(&b) => {
            head.iter().any(|part| part.contains(expr.span))
        }
        _ => true,
    });
    let wide = |binding: &BindingId| {
        let ty = &body.binding(*binding).ty;
        let number = matches!(
            ctype::normalize(&ty.base).as_str(),
            "int"
                | "unsigned int"
                | "long"
                | "long long"
                | "unsigned long"
                | "unsigned long long"
                | "size_t"
                | "int64_t"
        );
        ty.is_value() && number
    };
    let keeps = |b: BindingId| pure::keeps_first_value(child.db, child.item, body, b);
    let fine = unseen
        && wide(&index)
        && starts.iter().chain(&strides).all(wide)
        && is_limit(child, cond, index, &keeps)
        && is_step(body, step, index, &strides)
        && is_round(child, body, inner, index, step, &keeps)
        && rounds_are_independent(child.db, child.item, next, index);
    fine.then_some(())
}

fn is_local(body: &Body, expr: ExprId, binding: BindingId) -> bool {
    matches!(body.expr(body.strip_parens(expr)).kind, ExprKind::Name(Name::Local(b)) if b == binding)
}

fn strip(body: &Body, mut expr: ExprId) -> ExprId {
    loop {
        expr = body.strip_parens(expr);
        match &body.expr(expr).kind {
            ExprKind::Cast { operand, ty, .. }
                if matches!(
                    ty.as_str(),
                    "int" | "unsigned" | "unsigned int" | "long long" | "size_t" | "unsigned long long"
                ) =>
            {
                expr = *operand;
            }
            _ => return expr,
        }
    }
}

fn is_x(body: &Body, expr: ExprId, wanted: Builtin) -> bool {
    matches!(&body.expr(strip(body, expr)).kind, ExprKind::Field { base, field, arrow: false }
        if field == "x" && matches!(body.expr(*base).kind, ExprKind::Name(Name::Builtin(b)) if b == wanted))
}

fn is_product(body: &Body, expr: ExprId, a: Builtin, b: Builtin) -> bool {
    matches!(body.expr(strip(body, expr)).kind, ExprKind::Binary(BinOp::Mul, x, y)
        if (is_x(body, x, a) && is_x(body, y, b)) || (is_x(body, x, b) && is_x(body, y, a)))
}

/// `blockIdx.x * blockDim.x + threadIdx.x` in any order.
fn is_thread_index(body: &Body, expr: ExprId) -> bool {
    let first = |e: ExprId| is_product(body, e, Builtin::BlockIdx, Builtin::BlockDim);
    matches!(body.expr(strip(body, expr)).kind, ExprKind::Binary(BinOp::Add, a, b)
        if (first(a) && is_x(body, b, Builtin::ThreadIdx)) || (first(b) && is_x(body, a, Builtin::ThreadIdx)))
}

/// `gridDim.x * blockDim.x` in any order, or a variable with that value.
fn is_stride(body: &Body, expr: ExprId, strides: &[BindingId]) -> bool {
    is_product(body, expr, Builtin::GridDim, Builtin::BlockDim)
        || matches!(body.expr(strip(body, expr)).kind, ExprKind::Name(Name::Local(b)) if strides.contains(&b))
}

/// A number by its type's name.
fn is_plain_type(base: &str) -> bool {
    calls::is_plain_name(&ctype::normalize(base.trim().trim_end_matches('*')))
}

/// A number, or a pointer to numbers: nothing is run where it is declared.
fn is_plain_variable(body: &Body, binding: BindingId) -> bool {
    let ty = &body.binding(binding).ty;
    !ty.complex && (is_plain_type(&ty.base) || ty.base == "auto" || ty.pointers > 0)
}

/// Made of numbers and loads of them, without the built-in variables, and without objects of classes, whose operators may do
/// anything for each thread.
fn is_plain(child: &Child<'_>, expr: ExprId) -> bool {
    let body: &Body = &child.body;
    match &body.expr(expr).kind {
        ExprKind::Literal(Literal::Str) => false,
        ExprKind::Literal(_) | ExprKind::SizeOf => true,
        ExprKind::Name(Name::Local(b)) => {
            let ty = &body.binding(*b).ty;
            !ty.complex && is_plain_type(&ty.base)
        }
        ExprKind::Name(Name::Other(name)) => match meaning_in(child.db, child.item, name) {
            Meaning::Enumerator(_) => true,
            Meaning::Global(global) => is_plain_type(&global.base),
            Meaning::Unknown => child.item.signature(child.db).template_names.contains(name),
            _ => false,
        },
        ExprKind::Field { base, field, arrow } => {
            let ExprKind::Name(Name::Local(b)) = body.expr(body.strip_parens(*base)).kind else {
                return false;
            };
            let ty = &body.binding(b).ty;
            let pointer = ty.pointers == 1 && ty.array.is_empty() && !ty.complex;
            (if *arrow { pointer } else { ty.is_value() }) && is_plain_field(child, &ty.base, field)
        }
        ExprKind::Cast { ty, operand, .. } => is_plain_type(ty) && is_plain(child, *operand),
        ExprKind::Paren(e) | ExprKind::Unary(_, e) | ExprKind::Deref(e) => is_plain(child, *e),
        ExprKind::Binary(_, a, b) | ExprKind::Index { base: a, index: b } => is_plain(child, *a) && is_plain(child, *b),
        _ => false,
    }
}

/// Whether a field of a class is a number, or a pointer to numbers.
fn is_plain_field(child: &Child<'_>, class: &str, field: &str) -> bool {
    let class = unqualified(class);
    if class == "dim3" || calls::VECTORS.contains(&class) {
        return true;
    }
    let files = included_files(child.db, child.file).iter();
    let mut types = files
        .flat_map(|f| &items(child.db, *f).types)
        .filter(|t| t.name == class);
    let plain = types.next().is_some_and(|ty| {
        ty.fields.iter().any(|(ty, name)| {
            let name = name.trim_start_matches(['*', ' ']).split('[').next();
            name == Some(field) && is_plain_type(ty)
        })
    });
    plain && types.next().is_none()
}

/// `i < n` or `n > i`, where `n` doesn't change.
fn is_limit(child: &Child<'_>, cond: ExprId, index: BindingId, keeps: &dyn Fn(BindingId) -> bool) -> bool {
    let body: &Body = &child.body;
    fn fixed(body: &Body, expr: ExprId, keeps: &dyn Fn(BindingId) -> bool) -> bool {
        match &body.expr(expr).kind {
            ExprKind::Literal(Literal::Int(_)) => true,
            ExprKind::Name(Name::Local(b)) => keeps(*b),
            ExprKind::Paren(e) | ExprKind::Cast { operand: e, .. } => fixed(body, *e, keeps),
            ExprKind::Field { base, arrow: false, .. } => fixed(body, *base, keeps),
            ExprKind::Binary(_, a, b) => fixed(body, *a, keeps) && fixed(body, *b, keeps),
            _ => false,
        }
    }
    match body.expr(body.strip_parens(cond)).kind {
        ExprKind::Binary(BinOp::Lt, i, n) | ExprKind::Binary(BinOp::Gt, n, i) => {
            is_local(body, i, index) && fixed(body, n, keeps) && is_plain(child, n)
        }
        _ => false,
    }
}

/// `i += stride` or `i = i + stride`.
fn is_step(body: &Body, step: ExprId, index: BindingId, strides: &[BindingId]) -> bool {
    let ExprKind::Assign { op, place, value } = &body.expr(body.strip_parens(step)).kind else {
        return false;
    };
    let stride = |e: ExprId| is_stride(body, e, strides);
    let sum = match (op, &body.expr(body.strip_parens(*value)).kind) {
        (Some(BinOp::Add), _) => stride(*value),
        (None, ExprKind::Binary(BinOp::Add, a, b)) => {
            (is_local(body, *a, index) && stride(*b)) || (is_local(body, *b, index) && stride(*a))
        }
        _ => false,
    };
    is_local(body, *place, index) && sum
}

/// The loop's body looks at no built-in variable, leaves no other way than by its end or `continue`, and changes no variable
/// that is declared outside of it.
fn is_round(
    child: &Child<'_>,
    body: &Body,
    round: StmtId,
    index: BindingId,
    step: ExprId,
    keeps: &dyn Fn(BindingId) -> bool,
) -> bool {
    let inside = body.stmt(round).span;
    let step = body.strip_parens(step);
    let in_inner_loop = |at: Span| {
        body.stmts.iter().any(|stmt| {
            let inner = matches!(
                stmt.kind,
                StmtKind::For { .. }
                    | StmtKind::While { .. }
                    | StmtKind::DoWhile { .. }
                    | StmtKind::RangeFor { .. }
                    | StmtKind::Switch { .. }
            );
            inner && inside.contains(stmt.span) && stmt.span.contains(at)
        })
    };
    let statements = body.stmts.iter().all(|stmt| match &stmt.kind {
        StmtKind::Break => in_inner_loop(stmt.span),
        StmtKind::Return(_)
        | StmtKind::Goto(_)
        | StmtKind::Label(..)
        | StmtKind::Asm { .. }
        | StmtKind::Preprocessor { .. }
        | StmtKind::Unknown { .. } => false,
        _ => true,
    });
    let expressions = body.exprs.iter().all(|expr| match &expr.kind {
        ExprKind::Name(Name::Builtin(_)) => !inside.contains(expr.span),
        ExprKind::Launch(_) | ExprKind::Lambda { .. } | ExprKind::Unknown { .. } => false,
        _ => true,
    });
    let variables = body.bindings.iter().enumerate().all(|(at, binding)| {
        let id = BindingId(at as u32);
        match binding.storage {
            Storage::Shared | Storage::ExternShared | Storage::Static => false,
            _ if binding.ty.reference => false,
            _ if inside.contains(binding.span) => true,
            _ if id == index => {
                pure::only_assigned(child.db, child.item, body, id)
                    && pure::assignments(child.db, child.item, body, id) == [step]
            }
            _ => keeps(id),
        }
    });
    statements && expressions && variables
}
