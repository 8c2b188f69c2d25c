//! What a fix is. The fixes themselves are one file each in [`crate::fixes`].

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{OptionSpec, Options};
use crate::api::source_edit::SourceEdit;

/// An edit at a place: one entry of the table [`crate::fixes::FIXES`].
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
    /// It may be applied where nobody looks: see [`Rewrite::unattended`](crate::api::rewrite::Rewrite::unattended).
    pub unattended: bool,
    /// The edit for what stands at the place: of a diagnostic, of a selection.
    pub apply: for<'db> fn(&'db dyn Db, FileRange, &Options) -> Result<SourceEdit, Ineligible>,
}
