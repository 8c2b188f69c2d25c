//! Member functions that a call may mean.

use super::memory::Places;
use crate::base::db::Db;
use crate::base::span::Span;
use crate::base::words::words;
use crate::facts::effects::summary;
use crate::hir::items::FunctionItem;
use crate::hir::names::unqualified;
use crate::hir::resolve::functions_named;
use crate::hir::scope::hides_class;
use crate::hir::{ExprId, ExprKind, Name};

/// The definitions of the member function that `target`, the callee of a call, names; empty when it isn't known for sure.
pub(super) fn methods<'db>(db: &'db dyn Db, places: Places<'_>, target: ExprId, args: usize) -> Vec<FunctionItem<'db>> {
    let body = places.body;
    let ExprKind::Field { base, field, arrow } = &body.expr(body.strip_parens(target)).kind else {
        return Vec::new();
    };
    let Some(shape) = places.shape(*base) else {
        return Vec::new();
    };
    if shape.dims > 0 || shape.pointers != u32::from(*arrow) {
        return Vec::new();
    }
    let class = places.alias(&shape.base);
    let class = class.strip_prefix("struct ").unwrap_or(&class);
    if hides_class(db, places.function, class) {
        return Vec::new();
    }
    let class = unqualified(class.split('<').next().unwrap_or(class).trim());
    let name = format!("{class}::{field}");
    let all = functions_named(db, places.function.file(db), &name);
    let found: Vec<FunctionItem<'db>> = all.iter().copied().filter(|f| f.has_body(db)).collect();
    let fits = found.iter().all(|f| {
        let qualified = f.name(db).ends_with(&name);
        qualified && f.signature(db).member && crate::hir::parameters(db, *f).len() == args
    });
    // What runs depends on the object's own class, unless that is the variable's.
    let own = !*arrow && is_variable(places, *base);
    if fits && (own || !is_virtual(db, places, field)) {
        found
    } else {
        Vec::new()
    }
}

/// The expression is a variable that holds its object itself.
fn is_variable(places: Places<'_>, base: ExprId) -> bool {
    let body = places.body;
    match &body.expr(body.strip_parens(base)).kind {
        ExprKind::Name(Name::Local(binding)) => {
            let ty = &body.binding(*binding).ty;
            !ty.reference && !ty.complex
        }
        _ => false,
    }
}

/// Whether a class may have a virtual function of this name, which another class may override.
fn is_virtual(db: &dyn Db, places: Places<'_>, name: &str) -> bool {
    let members = functions_named(db, places.function.file(db), name)
        .into_iter()
        .filter(|f| f.signature(db).member);
    members.into_iter().any(|f| {
        let text = f.text(db);
        let params = f.signature(db).params_span;
        let body = f.body_span(db);
        let tail = if body.start > params.end {
            Span::new(params.end, body.start)
        } else {
            Span::new(params.end, text.len() as u32)
        };
        let head = Span::new(0, params.start);
        let says = |span: Span, wanted: &[&str]| words(span.text(&text)).any(|word| wanted.contains(&word));
        says(head, &["virtual"]) || says(tail, &["override", "final"])
    })
}

/// A member function that changes nothing.
pub(super) fn reads_only(db: &dyn Db, method: FunctionItem<'_>) -> bool {
    let summary = summary(db, method);
    summary.writes.is_empty() && summary.unknown_calls.is_empty()
}
