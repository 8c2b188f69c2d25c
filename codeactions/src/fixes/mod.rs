//! The table of fixes: edits at a place of the text that need no launch as written there. One file each.

mod add_threshold;
mod check_launch_error;
mod destroy_stream;
mod guard_empty_grid;
mod pending_launch_limit;
pub(crate) mod replace_device_sync;
mod retune;
mod revert;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::launch::{LaunchId, Launchers, launches};
use gridfuse_analysis::hir::items::{FunctionItem, items};

use crate::edit::SourceEdit;
use crate::rewrite::{Ineligible, OptionSpec, Options};
use crate::site::{Site, refuse};

/// An edit at a place: one entry of the table [`FIXES`].
pub struct Fix {
    /// Its id, kebab-case: `guard-empty-grid`.
    pub id: &'static str,
    /// Imperative title for a menu.
    pub title: &'static str,
    /// Markdown: what it does, `## Before` and `## After` with a CUDA program each, what it needs.
    pub doc: &'static str,
    /// Its options.
    pub options: &'static [OptionSpec],
    /// Offered wherever it can be applied, and not only where a diagnostic names it.
    pub everywhere: bool,
    /// The edit for what stands at the place: of a diagnostic, of a selection.
    pub apply: for<'db> fn(&'db dyn Db, FileRange, &Options) -> Result<SourceEdit, Ineligible>,
}

/// Every fix.
pub static FIXES: &[Fix] = &[
    guard_empty_grid::FIX,
    check_launch_error::FIX,
    pending_launch_limit::RAISE,
    pending_launch_limit::RESTORE,
    destroy_stream::FIX,
    replace_device_sync::FIX,
    add_threshold::FIX,
    retune::GRID,
    retune::GRID_STREAM,
    retune::GRID_HOST,
    retune::MULTIBLOCK,
    retune::BLOCK,
    retune::WARP,
    revert::FIX,
];

/// The fix with this id.
pub fn fix_by_id(id: &str) -> Option<&'static Fix> {
    FIXES.iter().find(|fix| fix.id == id)
}

/// The function around a place.
pub(crate) fn function_around(db: &dyn Db, place: FileRange) -> Option<FunctionItem<'_>> {
    let functions = items(db, place.file).functions.iter().copied();
    functions
        .filter(|f| {
            let start = f.start(db);
            f.has_body(db) && start <= place.range.start && place.range.end <= start + f.text(db).len() as u32
        })
        .min_by_key(|f| f.text(db).len())
}

/// The launch by device code at a place: the smallest one around it, or the first one in it.
fn site_at(db: &dyn Db, place: FileRange) -> Result<Site<'_>, Ineligible> {
    let nothing = || refuse("no kernel launch by device code stands here", Some(place));
    let function = function_around(db, place).ok_or_else(nothing)?;
    let found = launches(db, function)
        .iter()
        .enumerate()
        .filter(|(_, facts)| facts.launchers != Launchers::Host)
        .filter(|(_, facts)| {
            let range = facts.span.shift(function.start(db));
            range.start <= place.range.end && place.range.start <= range.end
        })
        .min_by_key(|(_, facts)| {
            let range = facts.span.shift(function.start(db));
            (!range.contains(place.range), range.end - range.start, range.start)
        });
    let (index, _) = found.ok_or_else(nothing)?;
    let index = index as u32;
    Site::new(db, LaunchId { function, index })
}
