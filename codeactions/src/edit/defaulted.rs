//! Macros whose value is the one that the program gives them where nobody else does: `#ifndef X`, `#define X 32`. A command line that isn't
//! known may say another one.

use std::collections::BTreeSet;

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::preprocess::preprocessed;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::items::items;

use crate::api::refusal::Reason;
use crate::edit::names::words_with_macros;

/// What an edit takes for granted of such macros: those that the functions use in which something is edited.
pub fn assumption(db: &dyn Db, edited: &[(SourceFile, Vec<TextRange>)]) -> Option<Reason> {
    let mut names = BTreeSet::new();
    for (file, ranges) in edited {
        let defaulted = &preprocessed(db, *file).defaulted;
        if defaulted.is_empty() {
            continue;
        }
        for function in &items(db, *file).functions {
            let text = function.text(db);
            let whole = TextRange::new(function.start(db), function.start(db) + text.len() as u32);
            if ranges
                .iter()
                .any(|range| whole.start <= range.end && range.start < whole.end)
            {
                let words = words_with_macros(db, *file, &text);
                names.extend(defaulted.iter().filter(|name| words.contains(*name)));
            }
        }
    }
    let list: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    (!list.is_empty()).then(|| Reason {
        text: format!(
            "no command line defines {}: the value that the program gives it counts",
            list.join(" or ")
        ),
        place: None,
    })
}
