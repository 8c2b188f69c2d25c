//! Changes of several files: collected while they are made in memory, then shown or written.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_codeactions::edit::{SourceEdit, apply_to_text};

use super::project::Project;
use super::write::{NewText, WriteError, write_all};
use super::{CliError, diff};
use crate::creates::{Exists, to_create};
use crate::files::{MAX_NAMED_BYTES, read};

/// Text of a file before and after; `None` before: it is created.
pub struct Change {
    /// What was there at first.
    pub before: Option<Arc<str>>,
    /// What shall be there.
    pub after: String,
}

/// Changes by path.
#[derive(Default)]
pub struct Changes(pub BTreeMap<PathBuf, Change>);

/// The texts that an edit leads to: path, text before, text after.
pub fn texts_after(project: &Project, edit: &SourceEdit) -> Result<Vec<(PathBuf, Option<Arc<str>>, String)>, String> {
    let unfit = |path: &Path| {
        format!(
            "internal error: the edit of {} does not fit; please report it",
            path.display()
        )
    };
    let mut texts = Vec::new();
    for (edited, list) in &edit.edits {
        let before = project.host.file(edited).map(|file| file.text(project.host.db()));
        let before = before.ok_or_else(|| unfit(edited))?;
        let after = apply_to_text(edited, &before, list).map_err(|_| unfit(edited))?;
        texts.push((edited.clone(), Some(before), after));
    }
    let existing = |path: &Path| {
        let known = project.host.file(path).map(|file| file.text(project.host.db()));
        known
            .or_else(|| read(path, MAX_NAMED_BYTES).ok())
            .map(|text| text.to_string())
    };
    let creates = to_create(&edit.creates, existing).map_err(|Exists(path)| Exists::message(&project.show(&path)))?;
    texts.extend(creates.into_iter().map(|(created, text)| (created, None, text)));
    Ok(texts)
}

impl Changes {
    /// Makes an edit in memory.
    pub fn apply(&mut self, project: &mut Project, edit: &SourceEdit) -> Result<(), String> {
        for (path, before, after) in texts_after(project, edit)? {
            project.host.set_file(&path, after.as_str());
            self.record(path, before, after);
        }
        Ok(())
    }

    /// Notes a change that is made in memory.
    pub fn record(&mut self, path: PathBuf, before: Option<Arc<str>>, after: String) {
        match self.0.get_mut(&path) {
            Some(change) => change.after = after,
            None => {
                self.0.insert(path, Change { before, after });
            }
        }
    }

    /// Forgets those that led to what was there before.
    pub fn drop_unchanged(&mut self) {
        self.0
            .retain(|_, change| change.before.as_deref() != Some(&change.after));
    }

    /// Shows the changes as one diff.
    pub fn diff(&self, project: &Project, out: &mut dyn Write) -> Result<(), CliError> {
        // New files last: the changes are what one wants to read.
        let (edited, created): (Vec<_>, Vec<_>) = self.0.iter().partition(|(_, change)| change.before.is_some());
        for (path, change) in edited.into_iter().chain(created) {
            let text = diff::unified(&project.show(path), change.before.as_deref(), &change.after);
            out.write_all(text.as_bytes())?;
        }
        Ok(())
    }

    /// Writes all files, or none.
    pub fn write(self) -> Result<Vec<NewText>, CliError> {
        let files: Vec<NewText> = self
            .0
            .into_iter()
            .map(|(path, change)| NewText {
                path,
                text: change.after,
                replaces: change.before.map(|text| text.to_string()),
            })
            .collect();
        write_all(&files).map_err(|WriteError(message)| message)?;
        Ok(files)
    }
}
