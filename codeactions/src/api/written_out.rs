//! Launches out of macros: they are written out first, as a person would do, and rewritten then.

use std::collections::BTreeMap;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::span::{Span, TextRange};
use gridfuse_analysis::facts::launch::{LaunchId, Launchers, launches};
use gridfuse_analysis::facts::unseen::misses_header;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::launch_sites_of;
use gridfuse_analysis::hir::written_out::launch_written_out;

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Options, Rewrite};
use crate::api::sequence::Sequence;
use crate::api::source_edit::{SourceEdit, TextEdit};

/// What a rewrite does to a launch: `plain` in the text as it is. A launch out of a macro is written out first; where the rewrite is
/// refused then, the other launches of the function that come out of macros are, and those by which the host launches the function.
///
/// # Errors
/// The reasons why it can't be applied.
pub fn rewritten<'db>(
    db: &'db dyn Db,
    launch: LaunchId<'db>,
    rewrite: &'static Rewrite,
    options: &Options,
    plain: impl FnOnce() -> Result<SourceEdit, Ineligible>,
) -> Result<SourceEdit, Ineligible> {
    let function = launch.function;
    let known = launches(db, function);
    let Some(own) = known.get(launch.index as usize) else {
        return plain();
    };
    if own.launchers == Launchers::Host {
        return plain();
    }
    // In what comes of that, the same is asked again.
    let behind = |edit: SourceEdit| {
        let mut sequence = Sequence::new(db, launch)?;
        sequence.begin(edit);
        sequence.then(rewrite, options)?;
        Ok(sequence.finish())
    };
    if own.from_macro {
        return match itself(db, launch) {
            Some(edit) => behind(edit),
            None => plain(),
        };
    }
    let outcome = plain();
    let Err(why) = outcome else { return outcome };
    let others = match known.iter().any(|facts| facts.from_macro) {
        true => write_out(db, function, |_| true),
        false => by_host_written_out(db, function),
    };
    match others {
        Some(edit) => behind(edit),
        None => Err(why),
    }
}

/// Writes a launch out that comes out of a macro. `None`: it doesn't, or that can't be done.
pub fn itself<'db>(db: &'db dyn Db, launch: LaunchId<'db>) -> Option<SourceEdit> {
    let own = launches(db, launch.function).get(launch.index as usize)?;
    own.from_macro
        .then(|| write_out(db, launch.function, |at| at == own.span))
        .flatten()
}

/// Writes the launches out by which the host launches a kernel in macros. `None`: there are none, or it can't be done for all.
fn by_host_written_out<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> Option<SourceEdit> {
    let mut all = SourceEdit::default();
    for id in launch_sites_of(db, kernel) {
        let facts = launches(db, id.function).get(id.index as usize);
        let Some(facts) = facts.filter(|facts| facts.from_macro && id.function != kernel) else {
            continue;
        };
        let edit = write_out(db, id.function, |at| at == facts.span)?;
        for (path, edits) in edit.edits {
            let known = all.edits.entry(path).or_default();
            known.extend(edits);
            known.sort_by_key(|edit| edit.range.start);
        }
    }
    (!all.edits.is_empty()).then_some(all)
}

/// Writes the launches of a function out that come out of macros, those for whose place `wanted` holds. `None`: that can't be done for all.
fn write_out(db: &dyn Db, function: FunctionItem<'_>, wanted: impl Fn(Span) -> bool) -> Option<SourceEdit> {
    let known = launches(db, function);
    let start = function.start(db);
    let all_in_sight = !misses_header(db, function.file(db));
    let mut edits: BTreeMap<u32, TextEdit> = BTreeMap::new();
    for facts in known.iter().filter(|facts| facts.from_macro && wanted(facts.span)) {
        let written = launch_written_out(db, function, facts.span, all_in_sight)?;
        let range = TextRange::new(start + written.range.start, start + written.range.end);
        let insert = written.text;
        // Of several launches in one use it isn't known any more which is which.
        if edits.insert(range.start, TextEdit { range, insert }).is_some() {
            return None;
        }
    }
    let path = function.file(db).path(db).to_path_buf();
    Some(SourceEdit {
        edits: BTreeMap::from([(path, edits.into_values().collect())]),
        ..SourceEdit::default()
    })
}
