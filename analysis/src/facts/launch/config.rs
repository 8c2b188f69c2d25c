//! Launch configurations: components of grid and block sizes, constants, streams.

use std::collections::HashSet;

use super::Stream;
use super::stream_arrays::array_of_created;
use crate::base::command::DefaultStream;
use crate::base::db::{Db, SourceFile};
use crate::facts::callee::{Callee, callee};
use crate::facts::closures::copies_argument;
use crate::facts::dependence::{Interval, integer};
use crate::facts::functors::classes_given;
use crate::facts::hidden::{symbol, symbol_of, unary};
use crate::facts::plain_operands::is_plain;
use crate::facts::streams::creates_stream;
use crate::facts::uniformity::class_changes;
use crate::facts::uniformity::memory::Places;
use crate::hir::flow::evaluation;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, TypeItem, items};
use crate::hir::library::{known, vector_fields};
use crate::hir::names::unqualified;
use crate::hir::plain_types::NUMBERS;
use crate::hir::resolve::{Meaning, functions_in, meaning_in};
use crate::hir::visible::visible_names;
use crate::hir::walk::operands;
use crate::hir::{BinOp, BindingId, Body, Builtin, Expr, ExprId, ExprKind, Literal, Name, StmtKind, Storage, UnOp};

/// The initialiser of a local variable that is never changed after its declaration, so that the variable stands for it.
/// `None` for parameters, references, arrays, and whatever may be written elsewhere.
pub(crate) fn single_definition(body: &Body, binding: BindingId) -> Option<ExprId> {
    single_definition_where(body, binding, &|_| false)
}

/// The same where of some calls it is known otherwise what they change.
fn single_definition_where(body: &Body, binding: BindingId, known: &dyn Fn(&ExprKind) -> bool) -> Option<ExprId> {
    let ty = &body.binding(binding).ty;
    if ty.reference || !ty.array.is_empty() || ty.complex || ty.volatile {
        return None;
    }
    let init = body.initialiser(binding)?;
    let opaque = body.stmts.iter().any(|stmt| match &stmt.kind {
        StmtKind::Unknown { mentions, .. } | StmtKind::Asm { mentions, .. } => mentions.contains(&binding),
        _ => false,
    });
    (!opaque && !written(body, binding, known)).then_some(init)
}

/// The same, where nothing may change the variable either that its name doesn't show: what may get a reference to it.
pub(super) fn definition<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    binding: BindingId,
) -> Option<ExprId> {
    let known = |call: &ExprKind| takes_as_declared(db, function, body, call);
    single_definition_where(body, binding, &known).filter(|_| !is_bound(db, function, body, binding))
}

/// A call of a function in sight: what it may change is known by its parameters, and [`is_bound`] tells it. Or of a lambda that copies
/// what it is passed.
fn takes_as_declared<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, call: &ExprKind) -> bool {
    match call {
        ExprKind::Call {
            callee: target,
            name,
            args,
            ..
        } => {
            let found = callee(db, function, body, *target, name.as_deref(), args);
            let copied = || (0..args.len()).all(|index| copies_argument(db, function, body, *target, index));
            matches!(found, Callee::Functions(_, None)) || copied()
        }
        _ => false,
    }
}

/// Something may change a variable by a reference to it.
fn is_bound<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, binding: BindingId) -> bool {
    // A user's function of a name for which `harmless` would speak, and which can't be read.
    let unread = |expr: &Expr| match &expr.kind {
        ExprKind::Call {
            args,
            callee: target,
            name: Some(name),
            ..
        } => {
            args.iter().any(|arg| passes_itself(body, *arg, binding))
                && matches!(
                    callee(db, function, body, *target, Some(name.as_str()), args),
                    Callee::Unknown
                )
                && !functions_in(db, function, name).is_empty()
        }
        _ => false,
    };
    class_changes(db, function).contains(&binding) || body.exprs.iter().any(unread)
}

/// A variable is changed, or may be, by something else than assignments of its name.
pub(super) fn is_changed_unseen<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    binding: BindingId,
) -> bool {
    let mentioned = body.stmts.iter().any(|stmt| match &stmt.kind {
        StmtKind::Unknown { mentions, .. } | StmtKind::Asm { mentions, .. } => mentions.contains(&binding),
        _ => false,
    });
    let known = |call: &ExprKind| takes_as_declared(db, function, body, call);
    mentioned || is_bound(db, function, body, binding) || reaches(body, binding, &known)
}

/// Whether a variable may be changed by anything but its declaration. `known`: calls of which it is known otherwise what they change.
fn written(body: &Body, binding: BindingId, known: &dyn Fn(&ExprKind) -> bool) -> bool {
    let is_root = |place: ExprId| roots(body, place).contains(&binding);
    reaches(body, binding, known)
        || body.exprs.iter().any(|expr| match &expr.kind {
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => is_root(*place),
            _ => false,
        })
}

/// Something gets to a variable by its address or by a reference, as far as the function's text alone tells.
fn reaches(body: &Body, binding: BindingId, known: &dyn Fn(&ExprKind) -> bool) -> bool {
    let is_root = |place: ExprId| roots(body, place).contains(&binding);
    body.exprs.iter().any(|expr| match &expr.kind {
        ExprKind::AddrOf(place) => is_root(*place),
        // A function may take its argument by reference.
        ExprKind::Call { args, callee, .. } => {
            args.iter().any(|a| passes_itself(body, *a, binding))
                && !matches!(&body.expr(*callee).kind, ExprKind::Name(Name::Other(n)) if harmless(body, n))
                && !known(&expr.kind)
        }
        ExprKind::Cast { ty, operand, .. } => ty.contains('&') && is_root(*operand),
        ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => mentions.contains(&binding),
        _ => false,
    }) || body.stmts.iter().any(|stmt| match &stmt.kind {
        // `int& r = x;`
        StmtKind::Decl(decls) => decls
            .iter()
            .any(|d| body.binding(d.binding).ty.reference && d.init.is_some_and(|i| passes_itself(body, i, binding))),
        _ => false,
    })
}

/// Functions that take their arguments by value or by reference to const. A name that the body declares (`using my::abs;`) may be another
/// one's.
fn harmless(body: &Body, name: &str) -> bool {
    let own = body.opens_namespace || body.declared.contains(crate::hir::names::unqualified(name));
    let by_value = matches!(
        crate::hir::names::unqualified(name),
        "min" | "max" | "abs" | "ceil" | "ceilf" | "floor" | "floorf" | "sqrt" | "sqrtf" | "printf" | "__ldg" | "dim3"
    ) || name.starts_with("__");
    by_value && !own
}

fn passes_itself(body: &Body, expr: ExprId, binding: BindingId) -> bool {
    match &body.expr(expr).kind {
        ExprKind::Name(Name::Local(b)) => *b == binding,
        ExprKind::Paren(e)
        | ExprKind::Comma(_, e)
        | ExprKind::Assign { place: e, .. }
        | ExprKind::IncDec {
            place: e, prefix: true, ..
        }
        | ExprKind::Field {
            base: e, arrow: false, ..
        } => passes_itself(body, *e, binding),
        ExprKind::Cast { ty, operand, .. } => ty.contains('&') && passes_itself(body, *operand, binding),
        ExprKind::Conditional { then, otherwise, .. } => {
            passes_itself(body, *then, binding) || passes_itself(body, *otherwise, binding)
        }
        _ => false,
    }
}

/// The variables of whose storage a place may be a part: `x`, `x.f`, `x[i]` for what is no pointer; not `*p`, `p->f`.
fn roots(body: &Body, place: ExprId) -> Vec<BindingId> {
    let mut found = Vec::new();
    let mut todo = vec![place];
    while let Some(place) = todo.pop() {
        match &body.expr(place).kind {
            ExprKind::Name(Name::Local(binding)) => found.push(*binding),
            ExprKind::Paren(e)
            | ExprKind::Field {
                base: e, arrow: false, ..
            }
            | ExprKind::Cast { operand: e, .. }
            | ExprKind::Comma(_, e)
            | ExprKind::Assign { place: e, .. }
            | ExprKind::IncDec {
                place: e, prefix: true, ..
            }
            | ExprKind::Index { base: e, .. } => todo.push(*e),
            ExprKind::Conditional { then, otherwise, .. } => todo.extend([*then, *otherwise]),
            _ => {}
        }
    }
    found
}

/// The expression behind parentheses and variables that stand for one initialiser.
pub(super) fn through_variables<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    mut expr: ExprId,
) -> ExprId {
    for _ in 0..16 {
        let inner = body.strip_parens(expr);
        match &body.expr(inner).kind {
            ExprKind::Name(Name::Local(binding)) => match definition(db, function, body, *binding) {
                Some(init) if stable(db, function, body, init) => expr = init,
                _ => return inner,
            },
            _ => return inner,
        }
    }
    expr
}

/// Whether `threadIdx` decides an expression, as far as variables with a single definition tell.
pub fn depends_on_thread_index(body: &Body, expr: ExprId) -> bool {
    let mut seen = HashSet::new();
    let mut todo = vec![expr];
    while let Some(next) = todo.pop() {
        if !seen.insert(next) {
            continue;
        }
        match &body.expr(next).kind {
            ExprKind::Name(Name::Builtin(Builtin::ThreadIdx)) => return true,
            ExprKind::Name(Name::Local(binding)) => todo.extend(single_definition(body, *binding)),
            _ => todo.extend(operands(&body.expr(next).kind)),
        }
    }
    false
}

/// The expression has the same value wherever its variables are in scope: no memory is read, nothing called, and every local
/// in it is a variable that never changes after its declaration or a parameter that never changes.
pub(super) fn stable<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, expr: ExprId) -> bool {
    let known = |call: &ExprKind| takes_as_declared(db, function, body, call);
    let mut todo = vec![expr];
    while let Some(next) = todo.pop() {
        match &body.expr(next).kind {
            ExprKind::Name(Name::Local(binding)) => {
                let ty = &body.binding(*binding).ty;
                if ty.reference
                    || ty.volatile
                    || ty.complex
                    || written(body, *binding, &known)
                    || is_bound(db, function, body, *binding)
                {
                    return false;
                }
                continue;
            }
            ExprKind::Literal(_) | ExprKind::Name(_) | ExprKind::SizeOf => continue,
            ExprKind::Call { callee, .. } if matches!(&body.expr(*callee).kind, ExprKind::Name(Name::Other(n)) if harmless(body, n)) =>
                {}
            ExprKind::Call { .. } => return false,
            ExprKind::Deref(_) | ExprKind::Index { .. } | ExprKind::Field { arrow: true, .. } => {
                // A load: only the variable that received it is stable, not the load itself.
                return false;
            }
            ExprKind::Assign { .. }
            | ExprKind::IncDec { .. }
            | ExprKind::New(_)
            | ExprKind::Delete(_)
            | ExprKind::Launch(_)
            | ExprKind::Lambda { .. }
            | ExprKind::Unknown { .. } => return false,
            _ => {}
        }
        todo.extend(operands(&body.expr(next).kind));
    }
    true
}

/// x, y, z of a grid or block size as expressions; `None` for a component means 1. `None` altogether: not understood.
pub(super) fn components(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    expr: ExprId,
) -> Option<[Option<ExprId>; 3]> {
    let resolved = through_dim3_variables(db, function, body, expr);
    let mut named = operands(&body.expr(body.strip_parens(expr)).kind);
    named.push(body.strip_parens(expr));
    let changed = |e: &ExprId| matches!(&body.expr(*e).kind, ExprKind::Name(Name::Local(b)) if class_changes(db, function).contains(b));
    if named.iter().any(changed) || has_own_dim3(db, function.file(db)) {
        return None;
    }
    match &body.expr(resolved).kind {
        ExprKind::Construct { ty, args } if is_dim3(db, function, body, ty) => from_list(db, function, body, args),
        ExprKind::Call {
            name: Some(name), args, ..
        } if is_dim3(db, function, body, name) => from_list(db, function, body, args),
        ExprKind::InitList(args) => from_list(db, function, body, args),
        _ if is_scalar(db, function, body, resolved) => Some([Some(resolved), None, None]),
        _ => None,
    }
}

/// CUDA's `dim3` or another name of it: it is in no namespace, `my::dim3` is a class of the user's.
fn is_dim3(db: &dyn Db, function: FunctionItem<'_>, body: &Body, ty: &str) -> bool {
    let places = Places { db, function, body };
    let ty = places.alias(ty.trim_start_matches("const ").trim());
    ty.trim_start_matches("const ").trim().trim_start_matches("::") == "dim3"
}

/// A class in sight is named like CUDA's `dim3` and is another one: which of them a name means isn't looked up.
#[salsa::tracked(returns(copy))]
fn has_own_dim3(db: &dyn Db, file: SourceFile) -> bool {
    let mut types = included_files(db, file).iter().flat_map(|f| &items(db, *f).types);
    types.any(|ty| {
        ty.name == "dim3"
            && !["x", "y", "z"]
                .iter()
                .all(|axis| ty.fields.iter().any(|(_, f)| f == axis))
    })
}

fn from_list(db: &dyn Db, function: FunctionItem<'_>, body: &Body, args: &[ExprId]) -> Option<[Option<ExprId>; 3]> {
    match args {
        // `dim3(other)` copies what is a `dim3`, a `uint3` or a class that becomes one: only a number leaves the others out.
        [one] if is_scalar(db, function, body, *one) => Some([Some(*one), None, None]),
        [x, y] => Some([Some(*x), Some(*y), None]),
        [x, y, z] => Some([Some(*x), Some(*y), Some(*z)]),
        [] => Some([None, None, None]),
        _ => None,
    }
}

/// `threadIdx`, `blockDim` and the like.
fn is_builtin_vector(body: &Body, expr: ExprId) -> bool {
    matches!(
        body.expr(body.strip_parens(expr)).kind,
        ExprKind::Name(Name::Builtin(_))
    )
}

fn is_dim3_typed(db: &dyn Db, function: FunctionItem<'_>, body: &Body, expr: ExprId) -> bool {
    match &body.expr(body.strip_parens(expr)).kind {
        ExprKind::Name(Name::Local(binding)) => is_dim3(db, function, body, &body.binding(*binding).ty.base),
        ExprKind::Name(Name::Builtin(_)) => true,
        ExprKind::Construct { ty, .. } => is_dim3(db, function, body, ty),
        _ => false,
    }
}

/// Like [`through_variables`], but only `dim3` variables are looked through: a scalar variable stays as it is written.
fn through_dim3_variables<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, mut expr: ExprId) -> ExprId {
    for _ in 0..16 {
        let inner = body.strip_parens(expr);
        match &body.expr(inner).kind {
            ExprKind::Name(Name::Local(binding)) if is_dim3(db, function, body, &body.binding(*binding).ty.base) => {
                match definition(db, function, body, *binding) {
                    Some(init) => expr = init,
                    None => return inner,
                }
            }
            ExprKind::Construct { ty, args }
                if is_dim3(db, function, body, ty) && args.len() == 1 && is_dim3_typed(db, function, body, args[0]) =>
            {
                expr = args[0];
            }
            _ => return inner,
        }
    }
    expr
}

/// The expression is a number, not a `dim3`, a `uint3` or an object of a class: `dim3(e)` has one dimension then.
pub fn is_scalar(db: &dyn Db, function: FunctionItem<'_>, body: &Body, expr: ExprId) -> bool {
    numeric(db, function, body, expr) == Some(true)
}

/// Whether the expression is a number; `None`: what its type is isn't seen.
fn numeric(db: &dyn Db, function: FunctionItem<'_>, body: &Body, expr: ExprId) -> Option<bool> {
    let own = |e: ExprId| numeric(db, function, body, e);
    let file = function.file(db);
    let places = Places { db, function, body };
    let number = |ty: &str| {
        let name = places.alias(ty.trim_start_matches("const ").trim());
        let name = name.strip_prefix("std::").unwrap_or(&name);
        match NUMBERS.contains(&name) {
            true => Some(true),
            false if vector_fields(name).is_some() => Some(false),
            false if is_enum(db, file, name) => Some(true),
            false if visible_names(db, file).types.contains(unqualified(name)) => Some(false),
            false => None,
        }
    };
    // What no operator of the user's takes is computed by those of the language, which make numbers.
    let computed = |symbol: &str, operands: &[ExprId]| {
        let numbers: Vec<Option<bool>> = operands.iter().map(|e| own(*e)).collect();
        match numbers.contains(&Some(false)) {
            true => Some(false),
            false => (!may_be_users(db, function, body, symbol, operands)).then_some(true),
        }
    };
    match &body.expr(body.strip_parens(expr)).kind {
        ExprKind::Literal(_) | ExprKind::SizeOf | ExprKind::Logical { .. } => Some(true),
        ExprKind::Binary(op, a, b) => computed(symbol(*op), &[*a, *b]),
        ExprKind::Unary(op, e) => computed(unary(*op), &[*e]),
        ExprKind::IncDec { place, .. } => own(*place),
        ExprKind::Cast { ty, .. } | ExprKind::Construct { ty, .. } => number(ty),
        ExprKind::Comma(_, e) => own(*e),
        ExprKind::Name(Name::Builtin(builtin)) => Some(*builtin == Builtin::WarpSize),
        ExprKind::Name(Name::Local(binding)) => {
            let ty = &body.binding(*binding).ty;
            if !ty.array.is_empty() || ty.pointers > 0 {
                return Some(false);
            }
            if ty.is_value() && ty.base == "auto" {
                return auto_scalar(db, function, body, *binding).then_some(true);
            }
            (!ty.complex).then(|| number(&ty.base)).flatten()
        }
        ExprKind::Field { base, field, .. } => match typed(&places, body.strip_parens(expr), &number) {
            Some(known) => Some(known),
            // `blockDim.x`, `size.y`: whatever has such a part.
            None if matches!(field.as_str(), "x" | "y" | "z") => {
                let of_class = places
                    .shape(*base)
                    .is_some_and(|s| s.pointers == 0 && vector_fields(&s.base).is_none());
                // An object of a class that isn't known may be of one in sight, where the part is no number.
                let other = || {
                    let mut types = included_files(db, file).iter().flat_map(|f| &items(db, *f).types);
                    types.any(|ty| {
                        ty.fields
                            .iter()
                            .any(|(of, name)| name == field && number(of) != Some(true))
                    })
                };
                (!of_class && (is_builtin_vector(body, *base) || !other())).then_some(true)
            }
            None => None,
        },
        ExprKind::Index { .. } | ExprKind::Deref(_) => typed(&places, body.strip_parens(expr), &number),
        ExprKind::Conditional { then, otherwise, .. } => match (own(*then), own(*otherwise)) {
            (Some(true), Some(true)) => Some(true),
            (Some(false), _) | (_, Some(false)) => Some(false),
            _ => None,
        },
        ExprKind::Call { name: Some(name), .. } => match meaning_in(db, function, name) {
            Meaning::Functions(functions) => {
                let all: Vec<bool> = functions.iter().map(|f| returns_number(db, *f)).collect();
                all.iter().all(|n| *n).then_some(true)
            }
            _ if is_dim3(db, function, body, name) || vector_fields(unqualified(name)).is_some() => Some(false),
            _ if name.starts_with("make_") => Some(false),
            _ if harmless(body, name) || known(name).is_some_and(|l| l.is_pure()) => Some(true),
            _ => number(name),
        },
        ExprKind::Name(Name::Other(name)) => match meaning_in(db, function, name) {
            Meaning::Enumerator(_) => Some(true),
            Meaning::Global(global) => {
                let literal = global
                    .init
                    .as_deref()
                    .and_then(crate::base::literal::integer_literal)
                    .is_some();
                match number(&global.base) {
                    None if literal => Some(true),
                    known => known.filter(|_| !global.pointer && global.dims == 0),
                }
            }
            Meaning::Unknown if is_number_of_parameter(db, function, name) => Some(true),
            Meaning::Unknown => {
                let value = function.signature(db).template_names.contains(name)
                    && !function.signature(db).template_types.contains(name);
                let constant = visible_names(db, file).constant_macros.contains(name);
                (value || constant).then_some(true)
            }
            _ => None,
        },
        _ => None,
    }
}

/// `Settings::THREADS` of a template parameter: a static constant of all classes that are given for it, and a number in each.
fn is_number_of_parameter(db: &dyn Db, function: FunctionItem<'_>, name: &str) -> bool {
    let Some((parameter, constant)) = name.split_once("::") else {
        return false;
    };
    let number = |class: &&TypeItem| {
        let mut types = class.constants.iter().filter(|(_, name)| name == constant);
        types.next().is_some_and(|(ty, _)| NUMBERS.contains(&ty.as_str())) && types.next().is_none()
    };
    function.signature(db).template_types.iter().any(|own| own == parameter)
        && classes_given(db, function, parameter).is_some_and(|classes| classes.iter().all(number))
}

/// A function whose head says that it returns a number, and no class of it: `P<unsigned> f()`.
fn returns_number(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let head = function.signature(db).head_span;
    let text = function.text(db);
    let mut head = head.text(&text).trim_start();
    if head.starts_with("template") {
        // Its parameters aren't what it returns; where they have brackets of their own, it isn't clear where they end.
        head = head.split_once('>').map_or(head, |(_, rest)| rest);
    }
    let words: Vec<&str> = crate::base::words::words(head).collect();
    !head.contains(['<', '>'])
        && !words.contains(&"dim3")
        && words.iter().any(|w| NUMBERS.contains(w) || *w == "unsigned")
}

/// What the type of a place says of its value.
fn typed(places: &Places<'_>, place: ExprId, number: &dyn Fn(&str) -> Option<bool>) -> Option<bool> {
    let shape = places.shape(place)?;
    match shape.pointers == 0 && shape.dims == 0 {
        true => number(&shape.base),
        false => Some(false),
    }
}

fn is_enum(db: &dyn Db, file: SourceFile, name: &str) -> bool {
    let mut all = included_files(db, file)
        .iter()
        .flat_map(|f| items(db, *f).types.iter().filter(|t| t.name == unqualified(name)))
        .peekable();
    all.peek().is_some() && all.all(|t| t.is_enum)
}

/// The operators of the workspace; empty for one of which it isn't known which it is.
#[salsa::tracked(returns(ref))]
fn user_operators(db: &dyn Db, file: SourceFile) -> HashSet<String> {
    let functions = included_files(db, file).iter().flat_map(|f| &items(db, *f).functions);
    functions.filter_map(|f| symbol_of(db, *f)).collect()
}

/// Whether an operator with these operands may be the user's, which may make anything of them.
pub(super) fn may_be_users(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    symbol: &str,
    operands: &[ExprId],
) -> bool {
    let users = user_operators(db, function.file(db));
    let places = Places { db, function, body };
    (users.contains(symbol) || users.contains("")) && !operands.iter().all(|e| is_plain(places, *e))
}

fn auto_scalar(db: &dyn Db, function: FunctionItem<'_>, body: &Body, binding: BindingId) -> bool {
    match single_definition(body, binding) {
        // `auto x = x` can't be lowered to a cycle: an initialiser only mentions earlier expressions, but guard all the same.
        Some(init) if !matches!(body.expr(init).kind, ExprKind::Name(Name::Local(b)) if b == binding) => {
            is_scalar(db, function, body, init)
        }
        _ => false,
    }
}

/// The value of an integer expression when it is the same in every execution: literals, arithmetic, variables and globals that
/// stand for such a value.
pub fn constant_value(db: &dyn Db, function: FunctionItem<'_>, body: &Body, expr: ExprId) -> Option<i128> {
    evaluate(db, function, body, expr, 0)
}

/// What a local variable holds that begins with a constant; `None` where its type isn't known to hold that.
pub fn constant_of_variable(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    binding: BindingId,
    initial: ExprId,
) -> Option<i128> {
    let value = constant_value(db, function, body, initial)?;
    let ty = &body.binding(binding).ty.base;
    // Machines don't agree on whether a `char` is signed.
    let is_char = ty.trim().trim_start_matches("const ").trim() == "char";
    held(db, function, body, ty, value).filter(|value| !is_char || i8::try_from(*value).is_ok_and(|v| v >= 0))
}

/// A value as a variable of a type holds it; `None` where the type isn't known to hold it.
fn held(db: &dyn Db, function: FunctionItem<'_>, body: &Body, ty: &str, value: i128) -> Option<i128> {
    let places = Places { db, function, body };
    let plain = ty.trim().trim_start_matches("const ").trim();
    if plain == "auto" {
        return Some(value);
    }
    let (_, range, _) = integer(&places.alias(plain))?;
    Interval::new(value, value).within(range).then_some(value)
}

/// Whether an expression is of a signed type, so that a negative number stays one.
pub(super) fn is_signed(db: &dyn Db, function: FunctionItem<'_>, body: &Body, expr: ExprId) -> bool {
    let signed = |ty: &str| {
        let places = Places { db, function, body };
        let plain = ty.trim().trim_start_matches("const ").trim();
        integer(&places.alias(plain)).is_some_and(|(ty, _, _)| !ty.unsigned)
    };
    let own = |e: ExprId| is_signed(db, function, body, e);
    let kind = body.expr(expr);
    match &kind.kind {
        // The text of what a macro stands for isn't here. `0xFFFFFFFF` is unsigned, too.
        ExprKind::Literal(Literal::Int(value)) => {
            let text = function.text(db);
            i32::try_from(*value).is_ok() && !kind.from_macro && !kind.span.text(&text).contains(['u', 'U'])
        }
        ExprKind::Literal(Literal::Bool(_)) => true,
        ExprKind::Cast { ty, .. } => signed(ty),
        ExprKind::Paren(e) | ExprKind::Unary(UnOp::Plus | UnOp::Neg, e) => own(*e),
        // The left operand alone decides.
        ExprKind::Binary(BinOp::Shl | BinOp::Shr, a, _) => own(*a),
        ExprKind::Binary(_, a, b) => own(*a) && own(*b),
        ExprKind::Name(Name::Local(binding)) => signed(&body.binding(*binding).ty.base),
        ExprKind::Name(Name::Other(name)) => {
            matches!(meaning_in(db, function, name), Meaning::Global(global) if signed(&global.base))
        }
        _ => false,
    }
}

fn evaluate(db: &dyn Db, function: FunctionItem<'_>, body: &Body, expr: ExprId, depth: u32) -> Option<i128> {
    if depth > 64 {
        return None;
    }
    let value = |e: ExprId| evaluate(db, function, body, e, depth + 1);
    match &body.expr(expr).kind {
        ExprKind::Literal(Literal::Int(v)) => Some(*v),
        ExprKind::Literal(Literal::Bool(b)) => Some(i128::from(*b)),
        ExprKind::Paren(e) => value(*e),
        ExprKind::Cast { ty, operand, .. } => {
            // Only conversions that keep the value.
            held(db, function, body, ty, value(*operand)?)
        }
        ExprKind::Unary(UnOp::Plus, e) => value(*e),
        ExprKind::Unary(UnOp::Neg, e) => {
            let v = value(*e)?;
            (v == 0 || is_signed(db, function, body, *e)).then_some(-v)
        }
        ExprKind::Binary(op, a, b) => {
            let (left, right) = (*a, *b);
            let (a, b) = (value(left)?, value(right)?);
            let result = match op {
                BinOp::Add => a.checked_add(b),
                BinOp::Sub => a.checked_sub(b),
                BinOp::Mul => a.checked_mul(b),
                BinOp::Div => a.checked_div(b),
                BinOp::Rem => a.checked_rem(b),
                BinOp::Shl => u32::try_from(b).ok().filter(|b| *b < 31).and_then(|b| a.checked_shl(b)),
                BinOp::Shr => u32::try_from(b).ok().filter(|b| *b < 63).and_then(|b| a.checked_shr(b)),
                BinOp::BitAnd => Some(a & b),
                BinOp::BitOr => Some(a | b),
                BinOp::BitXor => Some(a ^ b),
                _ => None,
            }?;
            // Negative numbers wrap around where an operand is unsigned.
            let signed = |e: ExprId| is_signed(db, function, body, e);
            if (a < 0 || b < 0 || result < 0) && !(signed(left) && signed(right)) {
                return None;
            }
            // What doesn't fit into 31 bits depends on the operand types: overflow or wrap-around.
            i32::try_from(result).ok().map(i128::from)
        }
        ExprKind::Name(Name::Local(binding)) => {
            let init = definition(db, function, body, *binding)?;
            held(db, function, body, &body.binding(*binding).ty.base, value(init)?)
        }
        ExprKind::Name(Name::Other(name)) => match meaning_in(db, function, name) {
            Meaning::Global(global) if global.constant => {
                let value = crate::base::literal::integer_literal(global.init.as_deref()?.trim())?;
                held(db, function, body, &global.base, value)
            }
            Meaning::Enumerator(value) => i32::try_from(value?).ok().map(i128::from),
            _ => None,
        },
        _ => None,
    }
}

/// x, y, z when all are constant and positive.
pub(crate) fn constant_extent(db: &dyn Db, function: FunctionItem<'_>, body: &Body, expr: ExprId) -> Option<[u64; 3]> {
    let components = components(db, function, body, expr)?;
    let mut out = [1; 3];
    for (slot, component) in out.iter_mut().zip(components) {
        if let Some(component) = component {
            *slot = u64::try_from(constant_value(db, function, body, component)?).ok()?;
        }
    }
    Some(out)
}

/// The stream that a launch goes to.
pub(super) fn stream<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    operand: Option<ExprId>,
    default: DefaultStream,
) -> Stream {
    let default = match default {
        DefaultStream::Legacy => Stream::Null,
        DefaultStream::PerThread => Stream::PerThread,
    };
    let Some(operand) = operand else { return default };
    let mut expr = body.strip_parens(operand);
    for _ in 0..8 {
        match &body.expr(expr).kind {
            ExprKind::Cast { operand, .. } => expr = body.strip_parens(*operand),
            ExprKind::Name(Name::Local(binding)) => {
                if is_created(db, function, body, *binding, operand) {
                    return Stream::Created(*binding);
                }
                match definition(db, function, body, *binding) {
                    Some(init) => expr = body.strip_parens(init),
                    None => return Stream::Other,
                }
            }
            ExprKind::Literal(Literal::Int(0) | Literal::Null) => return default,
            ExprKind::Index { .. } => {
                let array = array_of_created(db, function, body, expr);
                let array = array.filter(|array| creates(db, function, body, *array, operand));
                return array.map_or(Stream::Other, Stream::Created);
            }
            ExprKind::Name(Name::Other(name)) => {
                return match name.trim_start_matches("::") {
                    "cudaStreamFireAndForget" => Stream::FireAndForget,
                    "cudaStreamTailLaunch" => Stream::TailLaunch,
                    "cudaStreamPerThread" => Stream::PerThread,
                    "cudaStreamDefault" => default,
                    "cudaStreamLegacy" => Stream::Null,
                    _ => Stream::Other,
                };
            }
            _ => return Stream::Other,
        }
    }
    Stream::Other
}

/// An element of a local array of streams for which `cudaStreamCreate…` is called here.
pub(super) fn element_of_created<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    operand: ExprId,
) -> bool {
    let ExprKind::Index { .. } = &body.expr(body.strip_parens(operand)).kind else {
        return false;
    };
    let [array] = roots(body, operand)[..] else {
        return false;
    };
    !body.binding(array).ty.array.is_empty() && creates(db, function, body, array, operand)
}

/// `cudaStreamCreate…(&s, …)` is called for the variable wherever `used` is reached and the variable holds something else before, and it is
/// a plain local `cudaStream_t` that is set in no other way: it holds a stream of this thread's own.
fn is_created<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    binding: BindingId,
    used: ExprId,
) -> bool {
    let variable = body.binding(binding);
    // What may get at it sets it to another one.
    let creating = |e: ExprId| {
        body.exprs.iter().any(|expr| match &expr.kind {
            ExprKind::Call {
                name: Some(name), args, ..
            } => args.first() == Some(&e) && creates_stream(db, function, name),
            _ => false,
        })
    };
    let pointed = || {
        (0..body.exprs.len() as u32)
            .map(ExprId)
            .any(|e| match &body.expr(e).kind {
                ExprKind::AddrOf(place) => roots(body, *place) == [binding] && !creating(e),
                _ => false,
            })
    };
    variable.ty.is_value()
        && variable.storage == Storage::Local
        && creates(db, function, body, binding, used)
        && !is_bound(db, function, body, binding)
        && !pointed()
}

fn creates<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, binding: BindingId, used: ExprId) -> bool {
    let is_set = body
        .exprs
        .iter()
        .any(|expr| matches!(&expr.kind, ExprKind::Assign { place, .. } if roots(body, *place).contains(&binding)));
    let creating = |e: &ExprId| match &body.expr(*e).kind {
        ExprKind::Call {
            name: Some(name), args, ..
        } => {
            let own = |a: &ExprId| matches!(body.expr(*a).kind, ExprKind::AddrOf(p) if roots(body, p) == [binding]);
            args.first().is_some_and(own) && creates_stream(db, function, name)
        }
        _ => false,
    };
    let all: Vec<ExprId> = (0..body.exprs.len() as u32).map(ExprId).filter(creating).collect();
    let first = || {
        let evaluation = evaluation(db, function);
        all.iter().any(|creating| evaluation.comes_first(*creating, used))
    };
    // Without an initialiser, it is no stream unless it was created.
    !is_set && !all.is_empty() && (body.initialiser(binding).is_none() || first())
}
