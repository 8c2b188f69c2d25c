//! Structured bindings that run what a class has for them.

use crate::base::db::{Db, SourceFile};
use crate::base::preprocess::MacroState;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, items};
use crate::hir::macros::function_macros;
use crate::hir::names::unqualified;

/// Whether a function has a structured binding (`auto [x, y] = r;`), where a class in sight says by `std::tuple_size` that its `get` is
/// called for one.
pub(super) fn binds_by_get(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let binds = |text: &str| {
        text.match_indices("auto").any(|(at, auto)| {
            let rest = text.get(at + auto.len()..).unwrap_or("").trim_start();
            rest.trim_start_matches('&').trim_start().starts_with('[')
        })
    };
    let by_macro = |state: &MacroState| matches!(state, MacroState::Defined(item) if binds(&item.body));
    let here = binds(&function.text(db))
        || function_macros(db, function)
            .states
            .values()
            .flatten()
            .any(|(_, state)| by_macro(state));
    let of_tuples = |file: &SourceFile| {
        let mut types = items(db, *file).types.iter();
        types.any(|ty| unqualified(&ty.name) == "tuple_size")
    };
    here && included_files(db, function.file(db)).iter().any(of_tuples)
}
