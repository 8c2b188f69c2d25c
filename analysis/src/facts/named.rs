//! What a name stands for that isn't a local variable's: memory that something may change, or a value.

use crate::base::db::Db;
use crate::base::literal::integer_literal;
use crate::facts::uniformity::memory::Places;
use crate::facts::unseen::is_of_standard;
use crate::hir::body;
use crate::hir::items::FunctionItem;
use crate::hir::library::constant;
use crate::hir::resolve::{Meaning, meaning_in};
use crate::hir::visible::visible_names;

/// What a name stands for where it isn't called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandsFor {
    /// A variable at namespace scope that something may change.
    Variable,
    /// A constant, an enumerator, a function, a type: nothing changes it.
    Value,
    /// Not known: a variable of a class, one that a macro declares, a part of an anonymous union, what another name of a namespace leads
    /// to. It may be any variable.
    Unknown,
}

/// What a name that is written in a function stands for, if it is no local variable.
pub(crate) fn stands_for(db: &dyn Db, function: FunctionItem<'_>, name: &str) -> StandsFor {
    match meaning_in(db, function, name) {
        Meaning::Global(global) if global.constant || global.constant_memory => StandsFor::Value,
        Meaning::Global(_) => StandsFor::Variable,
        Meaning::Functions(_) | Meaning::Enumerator(_) | Meaning::Type => StandsFor::Value,
        Meaning::Macro(item) if integer_literal(item.body.trim()).is_some() => StandsFor::Value,
        Meaning::Unknown if is_value(db, function, name) => StandsFor::Value,
        Meaning::Macro(_) | Meaning::Unknown => StandsFor::Unknown,
    }
}

fn is_value(db: &dyn Db, function: FunctionItem<'_>, name: &str) -> bool {
    let signature = function.signature(db);
    // `template <int& Total>`
    let refers = || {
        let text = function.text(db);
        signature
            .template_params
            .is_some_and(|span| span.text(&text).contains('&'))
    };
    let constant_of_class = || {
        let body = &body(db, function);
        Places { db, function, body }.static_constant(name)
    };
    name == "this"
        || is_of_standard(name)
        || constant(name)
        || signature.scope_names.iter().any(|own| own == name) && !refers()
        || visible_names(db, function.file(db)).constant_macros.contains(name)
        || (signature.member || name.contains("::")) && constant_of_class()
}
