//! Shows changes of several files as a difference, or writes them.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use super::project::Project;
use super::write::{NewText, WriteError, write_all};
use super::{CliError, diff};
use crate::changes::Change;

/// New files with more lines than this are only named where somebody reads the difference, and not a program.
const LONG: usize = 200;

/// Shows the changes as one unified diff.
pub fn show(project: &Project, changes: &BTreeMap<PathBuf, Change>, out: &mut dyn Write) -> Result<(), CliError> {
    // New files last: the changes are what one wants to read.
    let (edited, created): (Vec<_>, Vec<_>) = changes.iter().partition(|(_, change)| change.before.is_some());
    let read_by_someone = std::io::stdout().is_terminal();
    for (path, change) in edited.into_iter().chain(created) {
        let lines = change.after.lines().count();
        if read_by_someone && change.before.is_none() && lines > LONG {
            let path = project.show(path);
            writeln!(
                out,
                "{path} is created: {lines} lines, which are shown where the output is no terminal"
            )?;
            continue;
        }
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
