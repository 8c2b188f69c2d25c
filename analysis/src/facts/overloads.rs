//! Whether a function takes the arguments of a call as they are: no other overload then fits better, wherever it stands.

use crate::base::db::{Db, SourceFile};
use crate::facts::uniformity::memory::Places;
use crate::hir::items::FunctionItem;
use crate::hir::names::EITHER;
use crate::hir::number_types::{normalize, rank};
use crate::hir::visible::visible_names;
use crate::hir::{BinOp, Body, ExprId, ExprKind, Literal, Name, UnOp, parameters};

/// Types that stand for each other and are followed.
const STEPS: usize = 8;

/// Whether none of the arguments needs a conversion but to `const`, as far as that is known. A template doesn't: whatever is none fits
/// better.
pub(super) fn takes_as_they_are<'db>(
    db: &'db dyn Db,
    caller: FunctionItem<'db>,
    body: &Body,
    args: &[ExprId],
    callee: FunctionItem<'db>,
) -> bool {
    let places = Places {
        db,
        function: caller,
        body,
    };
    let (file, parameters) = (callee.file(db), parameters(db, callee));
    let own = &callee.signature(db).template_names;
    args.iter().enumerate().all(|(at, arg)| {
        let Some(ty) = parameters.get(at).map(|p| &p.ty) else {
            return false;
        };
        let wanted = (
            plain(db, file, &ty.base),
            u32::from(ty.pointers) + ty.array.len() as u32,
        );
        let told = !ty.complex && ty.base != "auto" && !own.contains(&ty.base);
        told && type_of(places, *arg) == Some(wanted)
    })
}

/// A type by the name that all its names stand for, as far as these are single names.
fn plain(db: &dyn Db, file: SourceFile, base: &str) -> String {
    let aliases = &visible_names(db, file).aliases;
    let mut base = normalize(base);
    for _ in 0..STEPS {
        match aliases.get(base.as_str()) {
            Some(target) if !target.contains(EITHER) && !target.contains(['*', '&', '(', '<', '[']) => {
                base = normalize(target);
            }
            _ => break,
        }
    }
    base
}

/// The type of an expression, without `const`, and how many pointers it is.
fn type_of(places: Places<'_>, e: ExprId) -> Option<(String, u32)> {
    let body = places.body;
    let promoted = |e: ExprId| {
        let (ty, pointers) = type_of(places, e)?;
        let rank = rank(&ty).filter(|_| pointers == 0)?;
        Some((rank, if rank == 0 { "int".to_owned() } else { ty }))
    };
    let number = |name: &str| Some((name.to_owned(), 0));
    match &body.expr(e).kind {
        ExprKind::Literal(Literal::Int(value)) => {
            let text = places.function.text(places.db);
            let written = body.expr(e).span.text(&text);
            let plain = !body.expr(e).from_macro && written.bytes().all(|byte| byte.is_ascii_digit());
            (plain && i32::try_from(*value).is_ok()).then(|| number("int"))?
        }
        ExprKind::Literal(Literal::Bool(_)) => number("bool"),
        ExprKind::Literal(Literal::Float(text)) => number(if text.ends_with(['f', 'F']) { "float" } else { "double" }),
        ExprKind::Paren(e) => type_of(places, *e),
        ExprKind::Unary(UnOp::Not, e) => promoted(*e).and_then(|_| number("bool")),
        ExprKind::Unary(_, e) => Some((promoted(*e)?.1, 0)),
        ExprKind::Logical { lhs, rhs, .. } => promoted(*lhs).and(promoted(*rhs)).and_then(|_| number("bool")),
        ExprKind::Binary(BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge, a, b) => {
            promoted(*a).and(promoted(*b)).and_then(|_| number("bool"))
        }
        ExprKind::Binary(BinOp::Shl | BinOp::Shr, a, b) => promoted(*b).and(promoted(*a)).map(|(_, ty)| (ty, 0)),
        ExprKind::Binary(_, a, b) if promoted(*a).is_some() => {
            let ((first, a), (second, b)) = (promoted(*a)?, promoted(*b)?);
            // `unsigned int` with `long` is one of two types.
            let unsure = first.min(second) == 1 && first.max(second) == 2;
            (!unsure).then_some((if first >= second { a } else { b }, 0))
        }
        ExprKind::Field { base, .. } if matches!(body.expr(*base).kind, ExprKind::Name(Name::Builtin(_))) => {
            number("unsigned int")
        }
        ExprKind::Conditional { then, otherwise, .. } => {
            let ty = type_of(places, *then)?;
            (type_of(places, *otherwise)? == ty).then_some(ty)
        }
        _ => {
            let shape = places.shape(e)?;
            let known = shape.dims <= 1 && shape.base != "auto" && !shape.base.is_empty();
            let file = places.function.file(places.db);
            known.then(|| (plain(places.db, file, &shape.base), shape.pointers + shape.dims))
        }
    }
}
