//! Which fixes may be applied without anybody looking at them: by `gridfuse check --fix`, and by an editor that applies preferred
//! actions on its own.
//!
//! A rewrite has to be proven right (eligible without assumptions), and to be one that leaves the program's structure as it is:
//! the next reader must not wonder where the code has gone. So aggregation, thresholding and coarsening are never among them; they are
//! worth it, but they are decisions. A wait for children is replaced, even if what follows moves to a kernel behind it: there is nothing
//! to decide about code that doesn't compile. Edits that a diagnostic brings along change nothing that a compiler sees.

use std::collections::BTreeMap;

use gridfuse_analysis::base::db::Database;
use gridfuse_analysis::diagnostics::diagnostic::Diagnostic;
use gridfuse_codeactions::api::source_edit::SourceEdit;
use gridfuse_codeactions::api::source_edit::TextEdit;
use gridfuse_codeactions::handlers::rewrite_by_id;

/// The rewrite may be applied unattended where it is eligible.
pub fn unattended(id: &str) -> bool {
    rewrite_by_id(id).is_some_and(|rewrite| rewrite.unattended)
}

/// The edit that a diagnostic brings along.
pub fn small_edit(db: &Database, diagnostic: &Diagnostic) -> Option<SourceEdit> {
    let edit = diagnostic.edit.as_ref()?;
    let text = TextEdit {
        range: edit.range,
        insert: edit.insert.clone(),
    };
    Some(SourceEdit {
        edits: BTreeMap::from([(diagnostic.place.file.path(db).to_path_buf(), vec![text])]),
        ..SourceEdit::default()
    })
}
