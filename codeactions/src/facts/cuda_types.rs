//! CUDA's types that generated code names, `uint3` and `dim3`: whether the program means something else by them.

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::preprocess::{MacroState, preprocessed};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::hir::names::unqualified;

use crate::api::refusal::Refusals;

/// The types.
const TYPES: [&str; 2] = ["uint3", "dim3"];

/// The file of the toolkit that declares them.
const TOOLKITS: &str = "vector_types.h";

/// Refuses a program that declares one of them itself, in whichever scope: what is generated there would mean that.
pub fn refuse_others(db: &dyn Db, file: SourceFile, place: FileRange, refusals: &mut Refusals) {
    if let Some(name) = declared(db, file) {
        refusals.add(
            format!("the program has a `{name}` of its own, and generated code needs CUDA's: give it another name"),
            Some(place),
        );
    }
}

/// Which of them a file in sight declares.
fn declared(db: &dyn Db, file: SourceFile) -> Option<&'static str> {
    let states = &preprocessed(db, file).states;
    let is_macro = |name: &str| {
        let mut states = states.get(name).into_iter().flatten();
        states.any(|(_, state)| matches!(state, MacroState::Defined(_) | MacroState::DefinedSomehow))
    };
    let mut files = included_files(db, file).iter();
    let by_file = |file: &SourceFile| {
        let toolkits = file.path(db).file_name().is_some_and(|name| name == TOOLKITS);
        let names = *declared_in(db, *file);
        names.filter(|_| !toolkits)
    };
    let by_macro = || TYPES.into_iter().find(|name| is_macro(name));
    files.find_map(by_file).or_else(by_macro)
}

/// Which of them a file declares: as a class, an alias, an enumerator, a variable or a function.
#[salsa::tracked]
fn declared_in(db: &dyn Db, file: SourceFile) -> Option<&'static str> {
    let items = items(db, file);
    TYPES.into_iter().find(|name| {
        items
            .types
            .iter()
            .any(|ty| ty.name == *name || ty.enumerators.iter().any(|one| one == name))
            || items.aliases.iter().any(|(alias, _)| alias == name)
            || items.globals.iter().any(|global| global.name == *name)
            || items
                .functions
                .iter()
                .any(|function| unqualified(function.name(db)) == *name)
    })
}
