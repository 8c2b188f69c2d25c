//! Macros whose value is the one that the program gives them where nobody else does: `#ifndef X`, `#define X 32`. A command line that isn't
//! known may say another one.

use std::collections::{BTreeSet, HashSet};

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::preprocess::preprocessed;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::extents::functions_near;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::mentions::functions_mentioning;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::launch_sites_of;
use gridfuse_analysis::hir::runtime_header::is_runtime_header;

use crate::api::assumption::{self, Assumed};
use crate::api::refusal::Reason;
use crate::edit::lex;
use crate::edit::names::words_with_macros;

/// What an edit takes for granted of such macros: those that the functions use in which something is edited, or who launches these.
pub fn assumption(db: &dyn Db, edited: &[(SourceFile, Vec<TextRange>)]) -> Option<Assumed> {
    let mut todo: Vec<FunctionItem<'_>> = Vec::new();
    for (file, ranges) in edited {
        for range in ranges {
            let near = functions_near(db, *file, *range).into_iter();
            todo.extend(near.filter(|f| range.start < f.start(db) + f.text(db).len() as u32));
        }
    }
    let mut names = BTreeSet::new();
    let mut seen = HashSet::new();
    // Overloads are mentioned by the same functions.
    let mut asked = HashSet::new();
    while let Some(function) = todo.pop() {
        // What the runtime's header defines for itself is nothing that the program takes for granted.
        if !seen.insert(function) || is_runtime_header(db, function.file(db)) {
            continue;
        }
        let (file, text) = (function.file(db), function.text(db));
        let defaulted = &preprocessed(db, file).defaulted;
        if !defaulted.is_empty() {
            // As it is written: macros in front of its name are left out of the function's text.
            let (start, whole) = (function.start(db) as usize, file.text(db));
            let words = words_with_macros(db, file, whole.get(start..start + text.len()).unwrap_or(&text));
            names.extend(defaulted.iter().filter(|name| words.contains(*name)));
        }
        // How large the grids are that run it is said where it is launched, or called.
        let signature = function.signature(db);
        if signature.kernel {
            todo.extend(launch_sites_of(db, function).into_iter().map(|launch| launch.function));
        } else if signature.device && asked.insert((file, unqualified(function.name(db)))) {
            todo.extend(mentioned_by(db, file, unqualified(function.name(db)).to_owned()));
        }
    }
    let list: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    (!list.is_empty()).then(|| {
        assumption::MACRO_VALUES.of(Reason {
            text: format!(
                "no command line defines {}: the value that the program gives it counts",
                list.join(" or ")
            ),
            place: None,
        })
    })
}

/// The functions of a file in whose text the name of one of its functions stands. Every rewrite asks for them, and whoever calls them in
/// their turn.
#[salsa::tracked]
fn mentioned_by<'db>(db: &'db dyn Db, file: SourceFile, name: String) -> Vec<FunctionItem<'db>> {
    let all = functions_mentioning(db, file, &name).iter().copied();
    // Where a macro has the name, it doesn't stand there.
    all.filter(|f| lex::identifiers(&f.text(db)).any(|word| word == name))
        .collect()
}
