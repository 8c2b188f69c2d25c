//! Text that the compiler counts: each `__COUNTER__` is another number, so that one more of them, or one at another place, changes those
//! that follow.

use std::collections::BTreeSet;

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::preprocess::{MacroState, preprocessed};

use crate::api::refusal::Reason;
use crate::api::source_edit::TextEdit;
use crate::edit::lex;

const COUNTER: &str = "__COUNTER__";

/// Why edits of a file change what `__COUNTER__` gives: one of them makes more of it, or less, than was there.
pub(super) fn changed(db: &dyn Db, file: SourceFile, text: &str, edits: &[TextEdit]) -> Option<Reason> {
    let counting = counting(db, file);
    let count = |code: &str| lex::identifiers(code).filter(|word| counting.contains(*word)).count();
    let differs = |edit: &&TextEdit| {
        let replaced = text.get(edit.range.start as usize..edit.range.end as usize);
        count(replaced.unwrap_or("")) != count(&edit.insert)
    };
    edits.iter().find(differs).map(|_| Reason {
        text: format!("the program uses `{COUNTER}`, which would give other numbers; give them names first"),
        place: None,
    })
}

/// The words of a file that count: `__COUNTER__`, and macros that use it, also by way of others.
#[salsa::tracked(returns(ref))]
fn counting(db: &dyn Db, file: SourceFile) -> BTreeSet<String> {
    let states = &preprocessed(db, file).states;
    let mut found = BTreeSet::from([COUNTER.to_owned()]);
    loop {
        let before = found.len();
        for (name, meanings) in states {
            let counts = |state: &MacroState| match state {
                MacroState::Defined(item) => lex::identifiers(&item.body).any(|word| found.contains(word)),
                _ => false,
            };
            if meanings.iter().any(|(_, state)| counts(state)) {
                found.insert(name.clone());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}
