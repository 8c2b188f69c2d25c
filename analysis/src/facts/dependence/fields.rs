//! Fields of a struct that is nothing but its fields: what it is made of is a list of their values, and copying it copies them.

use crate::base::db::Db;
use crate::facts::uniformity::memory::{Class, Places};
use crate::hir::Body;
use crate::hir::declarator::declared_name;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, items};
use crate::hir::names::{unqualified, without_template_arguments};
use crate::hir::scope::hides_class;
use crate::hir::special_members::Constructors;

/// Structs in structs that are looked into.
const MAX_STRUCTS: u32 = 4;

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub name: String,
    /// In a list without inner braces it takes one value: it's a number or a pointer.
    pub single: bool,
}

/// The fields of a type, in order; `None` where it isn't such a struct, or isn't in sight.
pub(super) fn fields(db: &dyn Db, function: FunctionItem<'_>, body: &Body, ty: &str) -> Option<Vec<Field>> {
    fields_within(db, function, body, ty, MAX_STRUCTS)
}

fn fields_within(db: &dyn Db, function: FunctionItem<'_>, body: &Body, ty: &str, depth: u32) -> Option<Vec<Field>> {
    let places = Places { db, function, body };
    let name = without_template_arguments(&places.alias(ty));
    let name = name.trim();
    let name = name.strip_prefix("struct ").unwrap_or(name).trim();
    if hides_class(db, function, name) {
        return None;
    }
    let files = included_files(db, function.file(db)).iter();
    let mut types = files.flat_map(|file| &items(db, *file).types);
    let class = types.by_ref().find(|item| item.name == unqualified(name))?;
    let another = types.any(|item| item.name == class.name);
    let made_of_fields = !class.is_enum
        && !class.nontrivial
        && class.constructors == Constructors::None
        && class.bases.trim().is_empty()
        && class.hidden.is_none()
        && class.implicit.trim().is_empty()
        && !class.shares_storage
        && !class.mutable
        && !class.fields.is_empty();
    let odd = |declarator: &str| declarator.contains(['&', '(', ':', '=', '{']);
    if another || !made_of_fields || class.fields.iter().any(|(_, declarator)| odd(declarator)) {
        return None;
    }
    let parameters = class.template_names.as_slice();
    let all = class.fields.iter().map(|(ty, declarator)| {
        let pointer = declarator.contains('*');
        let single = pointer || is_number(&places, parameters, ty);
        // A name may stand for a reference: an alias, a template's parameter.
        let inner = || {
            let own = !parameters.iter().any(|own| own == ty.trim());
            depth > 0 && own && fields_within(db, function, body, ty, depth - 1).is_some()
        };
        let known = !places.alias(ty).contains('&') && (single || inner());
        known.then(|| Field {
            name: declared_name(declarator).to_owned(),
            single: single && !declarator.contains('['),
        })
    });
    all.collect()
}

/// A number, or a template's parameter, which is one for whoever gives no list for it.
fn is_number(places: &Places<'_>, parameters: &[String], ty: &str) -> bool {
    let ty = ty.trim();
    let ty = ty.strip_prefix("const ").unwrap_or(ty).trim();
    !parameters.iter().any(|own| own == ty) && places.class_kind(ty, &[]) == Class::Plain
}

/// The path to a field behind another one: `graph.edges`.
pub(super) fn with_field(path: &str, field: &str) -> String {
    match (path.is_empty(), field.is_empty()) {
        (true, _) => field.to_owned(),
        (_, true) => path.to_owned(),
        _ => format!("{path}.{field}"),
    }
}
