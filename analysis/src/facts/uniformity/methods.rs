//! Member functions that a call may mean.

use super::memory::Places;
use crate::base::db::Db;
use crate::facts::summary::summary;
use crate::hir::items::FunctionItem;
use crate::hir::names::unqualified;
use crate::hir::resolve::functions_named;
use crate::hir::{ExprId, ExprKind};

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
    let class = unqualified(class.split('<').next().unwrap_or(class).trim());
    let name = format!("{class}::{field}");
    let all = functions_named(db, places.function.file(db), &name);
    let found: Vec<FunctionItem<'db>> = all.iter().copied().filter(|f| f.has_body(db)).collect();
    let fits = found.iter().all(|f| {
        let qualified = f.name(db).ends_with(&name);
        qualified && f.signature(db).member && crate::hir::parameters(db, *f).len() == args
    });
    if fits { found } else { Vec::new() }
}

/// A member function that changes nothing.
pub(super) fn reads_only(db: &dyn Db, method: FunctionItem<'_>) -> bool {
    let summary = summary(db, method);
    summary.writes.is_empty() && summary.unknown_calls.is_empty()
}
