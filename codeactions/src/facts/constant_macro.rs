//! Macros that are numbers: `#define BLOCK 128`.

use gridfuse_analysis::base::db::{SourceFile, Workspace};
use gridfuse_analysis::base::preprocess::{MacroState, preprocessed};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::macros::macro_at;

use crate::edit::lex;
use crate::facts::site::Site;

/// Whether a word is a macro that stands for a number, and for the same one wherever code of the program sees it.
pub fn is_constant(site: &Site<'_>, name: &str) -> bool {
    let Some(MacroState::Defined(item)) = macro_at(site.db, site.parent, site.facts.span.start, name) else {
        return false;
    };
    let words = lex::code_words(&item.body);
    let is_number = |word: &&str| word.bytes().next().is_some_and(|first| first.is_ascii_digit());
    let is_operator = |word: &&str| matches!(*word, "(" | ")" | "+" | "-" | "*" | "/" | "%");
    let is_plain = item.params.is_none() && words.iter().all(|word| is_number(word) || is_operator(word));
    if !is_plain || !words.iter().any(is_number) {
        return false;
    }
    let files = Workspace::try_get(site.db).map(|workspace| workspace.files(site.db));
    let mut files = files
        .iter()
        .flat_map(|files| files.values())
        .copied()
        .chain([site.file]);
    // Other programs may call something else so.
    let apart = |file: SourceFile| file != site.file && !included_files(site.db, file).contains(&site.file);
    files.all(|file| {
        !file.text(site.db).contains(name)
            || apart(file)
            || preprocessed(site.db, file).states.get(name).is_none_or(|states| {
                let states = states.iter().map(|(_, state)| state);
                // Before its definition it is no macro, and neither code of ours is there.
                let mut rest = states.skip_while(|state| **state == MacroState::Undefined);
                rest.all(|state| matches!(state, MacroState::Defined(other) if other == item))
            })
    })
}

/// Whether a function's own lines see that macro, too: not where it is defined below them, or in a file that includes theirs.
pub fn is_seen_by(site: &Site<'_>, function: FunctionItem<'_>, name: &str) -> bool {
    let own = macro_at(site.db, site.parent, site.facts.span.start, name);
    matches!(own, Some(MacroState::Defined(_))) && macro_at(site.db, function, 0, name) == own
}
