//! What a file that is being edited says, kept apart from its text: inputs of high durability, which [`crate::host`] keeps up to date.
//! Whoever asks for such a fact gets what was settled, or where nothing was, what the text says.
#![allow(
    missing_docs,
    reason = "the functions that salsa's macros generate carry no documentation; the fields do"
)]

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::base::db::{Db, SourceFile};
use crate::base::parse::patch_holds;
use crate::hir::Parameter;
use crate::hir::items::Written;
use crate::hir::outline::{Outline, OutlineInText};
use crate::hir::word::CountsOutside;
use crate::hir::word::Word;

/// The files that are settled.
#[salsa::input(singleton, debug)]
pub struct SettledFiles {
    /// What each of them says.
    #[returns(ref)]
    pub files: Arc<HashMap<SourceFile, SettledFile>>,
}

/// What a file says, beside its directives, which are settled with the file itself ([`SourceFile`]).
#[salsa::input(debug)]
pub struct SettledFile {
    /// Its items.
    #[returns(ref)]
    pub outline: Option<Arc<Outline>>,
    /// All else that other functions hang on.
    #[returns(ref)]
    pub rest: Option<Arc<SettledRest>>,
    /// What the text says now, where that is known without reading it.
    #[returns(ref)]
    pub patched: Option<Arc<PatchedItems>>,
}

/// What a text says, where it differs from an earlier one inside one body alone.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct PatchedItems {
    /// Its items.
    pub(crate) outline: OutlineInText,
    /// How often words stand outside of functions.
    pub(crate) outside: Arc<CountsOutside>,
    /// Its `__constant__` variables that hold their values themselves.
    pub(crate) constants: Arc<BTreeSet<String>>,
}

/// What is settled of a file, as the host asks for it: it may do so while a query of another database runs.
pub(crate) fn kept_of(db: &dyn Db, file: SourceFile) -> Option<SettledFile> {
    SettledFiles::try_get(db)?.files(db).get(&file).copied()
}

/// What is settled of a file: the same for a file as long as another one begins to be settled.
#[salsa::tracked(returns(copy))]
fn settled(db: &dyn Db, file: SourceFile) -> Option<SettledFile> {
    kept_of(db, file)
}

/// The settled items of a file.
pub(crate) fn settled_outline(db: &dyn Db, file: SourceFile) -> Option<&Arc<Outline>> {
    settled(db, file)?.outline(db).as_ref()
}

/// What is known of a file's items without reading its text.
pub(crate) fn patched_items(db: &dyn Db, file: SourceFile) -> Option<&Arc<PatchedItems>> {
    let patched = settled(db, file)?.patched(db).as_ref()?;
    patch_holds(db, file).then_some(patched)
}

/// All else that is settled of a file.
pub(crate) fn settled_rest(db: &dyn Db, file: SourceFile) -> Option<&Arc<SettledRest>> {
    settled(db, file)?.rest(db).as_ref()
}

/// A function that is being edited.
#[salsa::input(debug)]
pub struct EditedFunction {
    /// What is written.
    #[returns(ref)]
    pub written: Arc<Written>,
    /// What others hang on.
    #[returns(ref)]
    pub facts: FunctionFacts,
}

/// What other functions hang on, of one that is being edited; it hardly ever changes.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct FunctionFacts {
    /// The names of functions that it mentions.
    pub names: Vec<Word>,
    /// The names of the kernels that it launches, with the numbers of the launches.
    pub launched: Vec<(u32, String)>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
}

/// What else a file says, beside its directives and its items.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct SettledRest {
    /// How often words stand outside of functions.
    pub outside: Arc<CountsOutside>,
    /// Its `__constant__` variables that hold their values themselves.
    pub constants: Arc<BTreeSet<String>>,
    /// What it sets the limit of pending launches to.
    pub limits: Arc<Vec<Option<u64>>>,
}
