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

/// The rewrite that changes a launch's config and nothing else, and the one without which the program doesn't compile.
const UNATTENDED: &[&str] = &["fire-and-forget", "replace-device-sync"];

/// The rewrite may be applied unattended where it is eligible.
pub fn unattended(rewrite: &str) -> bool {
    UNATTENDED.contains(&rewrite)
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

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_unattended_exists() {
        for id in super::UNATTENDED {
            let fix = gridfuse_codeactions::fixes::fix_by_id(id);
            assert!(crate::describe::rewrite(id).is_some() || fix.is_some(), "{id}");
        }
    }
}
