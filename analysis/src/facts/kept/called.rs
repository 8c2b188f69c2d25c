//! Who is called, for those who pass addresses.

use crate::base::db::Db;
use crate::facts::callee::{Callee, callee};
use crate::facts::hidden::symbol_of;
use crate::facts::referring::types_may_refer;
use crate::facts::uniformity::memory::Places;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, items};
use crate::hir::library::{Library, Memory};
use crate::hir::names::unqualified;
use crate::hir::resolve::{functions_named, is_made_by_macros};
use crate::hir::{Body, ExprId, ExprKind};

/// Who is called.
pub(super) enum Called<'db> {
    /// One of these.
    Functions(Vec<FunctionItem<'db>>),
    /// A function of the library.
    Known(Library),
    /// An object is made: its class holds what it is made of.
    Class(String),
    /// Somebody.
    Unseen,
}

/// Who a call of a function calls.
pub(super) fn called<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    places: &Places<'_>,
    call: ExprId,
) -> Called<'db> {
    let ExprKind::Call {
        callee: target,
        name,
        args,
        ..
    } = &body.expr(call).kind
    else {
        return Called::Unseen;
    };
    match callee(db, function, body, *target, name.as_deref(), args) {
        Callee::Known(library) => Called::Known(library),
        // The library's function may be meant, which does something else.
        Callee::Functions(_, Some(library)) if !matches!(library.memory, Memory::Untouched) => Called::Unseen,
        Callee::Functions(all, _) => Called::Functions(all),
        Callee::Type(ty) => Called::Class(ty),
        Callee::Unknown => match members(db, function, body, places, *target) {
            all if all.is_empty() => Called::Unseen,
            all => Called::Functions(all),
        },
    }
}

/// The member functions that are called of an object of a class in sight, which has no bases; none if that isn't certain.
fn members<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    places: &Places<'_>,
    callee: ExprId,
) -> Vec<FunctionItem<'db>> {
    let ExprKind::Field { base, field, arrow } = &body.expr(body.strip_parens(callee)).kind else {
        return Vec::new();
    };
    let shape = places.shape(*base);
    let Some(shape) = shape.filter(|s| s.dims == 0 && s.pointers == u32::from(*arrow)) else {
        return Vec::new();
    };
    let class = places.alias(&shape.base);
    // A parameter of its template may be a reference.
    if class.contains('<') && types_may_refer(db, function.file(db)) {
        return Vec::new();
    }
    let class = unqualified(class.split('<').next().unwrap_or_default().trim());
    let files = included_files(db, function.file(db)).iter();
    let mut types = files.flat_map(|f| &items(db, *f).types).filter(|t| t.name == class);
    let plain = types.next().is_some_and(|t| t.bases.is_empty()) && types.next().is_none();
    match plain {
        true => functions_named(db, function.file(db), &format!("{class}::{field}")),
        false => Vec::new(),
    }
}

/// The operators of the program that this symbol may run; `None`: it can't be told.
pub(super) fn operators<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    symbol: &str,
) -> Option<Vec<FunctionItem<'db>>> {
    let file = function.file(db);
    if is_made_by_macros(db, file, "operator") {
        return None;
    }
    let functions = included_files(db, file).iter().flat_map(|f| &items(db, *f).functions);
    let with_symbol = functions.copied().filter_map(|f| Some((f, symbol_of(db, f)?)));
    // One of which it isn't known which it is has an empty symbol.
    let fitting = with_symbol.filter(|(_, written)| written == symbol || written.is_empty());
    Some(fitting.map(|(f, _)| f).collect())
}
