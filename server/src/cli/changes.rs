//! Shows changes of several files as a difference, or writes them.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use super::project::Project;
use super::write::{NewText, WriteError, write_all};
use super::{CliError, diff};
use crate::changes::Change;

/// Shows the changes as one unified diff.
pub fn show(project: &Project, changes: &BTreeMap<PathBuf, Change>, out: &mut dyn Write) -> Result<(), CliError> {
    // New files last: the changes are what one wants to read.
    let (edited, created): (Vec<_>, Vec<_>) = changes.iter().partition(|(_, change)| change.before.is_some());
    for (path, change) in edited.into_iter().chain(created) {
        let text = diff::unified(&project.show(path), change.before.as_deref(), &change.after);
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Writes all files, or none.
pub fn write(changes: BTreeMap<PathBuf, Change>) -> Result<Vec<NewText>, CliError> {
    let files: Vec<NewText> = changes
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
