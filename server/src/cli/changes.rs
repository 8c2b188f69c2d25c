//! Shows changes of several files as a difference, or writes them.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_codeactions::runtime::HEADER_NAME;

use super::CliError;
use super::output::note;
use super::project::Project;
use super::write::{NewText, WriteError, write_all};
use crate::changes::Change;
use crate::diff;
use crate::leftover::{self, Edited};

/// New files with more lines than this, and the runtime header, are only named where somebody reads the difference, and not a program.
const LONG: usize = 200;

/// Shows the changes as one unified diff: all of it for a file or a pipe, which a program may apply.
pub fn show(project: &Project, changes: &BTreeMap<PathBuf, Change>, out: &mut dyn Write) -> Result<(), CliError> {
    let path = |path: &Path| project.show(path);
    difference(&path, changes, std::io::stdout().is_terminal(), out)?;
    Ok(())
}

fn difference(
    show: &dyn Fn(&Path) -> String,
    changes: &BTreeMap<PathBuf, Change>,
    read_by_someone: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    // New files last: the changes are what one wants to read.
    let (edited, created): (Vec<_>, Vec<_>) = changes.iter().partition(|(_, change)| change.before.is_some());
    for (path, change) in edited.into_iter().chain(created) {
        let lines = change.after.lines().count();
        let runtime = path.file_name().is_some_and(|name| name == HEADER_NAME);
        let shown = show(path);
        let what = match &change.before {
            None => format!("is created: {lines} lines"),
            Some(_) => format!("gets what the rewrite needs: it then has {lines} lines"),
        };
        if read_by_someone && (runtime || change.before.is_none() && lines > LONG) {
            writeln!(
                out,
                "{shown} {what}, left out on a terminal; a file or a pipe gets them"
            )?;
            continue;
        }
        let text = diff::unified(&shown, change.before.as_deref(), &change.after);
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// The runtime headers that nobody needs once the changes are made, with their texts.
pub fn left_over(project: &Project, changes: &BTreeMap<PathBuf, Change>) -> Vec<(PathBuf, Arc<str>)> {
    let edited = changes.iter().filter_map(|(path, change)| {
        Some(Edited {
            path,
            before: change.before.as_deref()?,
            after: &change.after,
        })
    });
    let edited: Vec<Edited<'_>> = edited.collect();
    leftover::headers(project.host.db(), &edited)
}

/// Shows that files are deleted: as a difference, or, where somebody reads it, in a word.
pub fn show_deleted(project: &Project, deleted: &[(PathBuf, Arc<str>)], out: &mut dyn Write) -> Result<(), CliError> {
    for (path, text) in deleted {
        let shown = project.show(path);
        match std::io::stdout().is_terminal() {
            true => writeln!(out, "{shown} is deleted: nothing includes it any more")?,
            false => write!(out, "{}", diff::deletion(&shown, text))?,
        }
    }
    Ok(())
}

/// Deletes files that still have these texts. Those outside of the workspace stay.
pub fn delete(project: &Project, files: &[(PathBuf, Arc<str>)]) -> Vec<PathBuf> {
    let mut deleted = Vec::new();
    for (path, text) in files {
        let is_same = std::fs::read(path).is_ok_and(|now| now == text.as_bytes());
        if !is_same || project.bounds.check(path).is_err() {
            continue;
        }
        match std::fs::remove_file(path) {
            Ok(()) => deleted.push(path.clone()),
            Err(error) => note(&format!(
                "{} can go, as nothing includes it any more, but cannot be deleted: {error}",
                project.show(path)
            )),
        }
    }
    deleted
}

/// Writes all files, or none: none where one lies outside of the workspace.
pub fn write(project: &Project, changes: BTreeMap<PathBuf, Change>) -> Result<Vec<NewText>, CliError> {
    for path in changes.keys() {
        let shown = |path: &Path| project.show(path);
        project
            .bounds
            .check(path)
            .map_err(|outside| format!("{}; no file was changed", outside.message(shown)))?;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(read_by_someone: bool) -> io::Result<String> {
        let long = "line\n".repeat(LONG + 1);
        let change = |before: Option<&str>, after: &str| Change {
            before: before.map(Into::into),
            after: after.to_string(),
        };
        let changes = BTreeMap::from([
            // First by name: it still comes behind what is changed.
            (PathBuf::from("a.cuh"), change(None, &long)),
            (PathBuf::from("b.cuh"), change(None, "short\n")),
            (PathBuf::from(HEADER_NAME), change(Some("old\n"), "new\n")),
            (PathBuf::from("x.cu"), change(Some(""), &long)),
        ]);
        let mut out = Vec::new();
        let show = |path: &Path| path.display().to_string();
        difference(&show, &changes, read_by_someone, &mut out)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn long_new_files_are_only_named_on_a_terminal() -> io::Result<()> {
        let text = shown(true)?;
        let named = "gridfuse.cuh gets what the rewrite needs: it then has 1 lines, left out on a terminal";
        let (first, rest) = text.split_once('\n').unwrap_or_default();
        assert!(first.starts_with(named), "{text}");
        assert!(rest.starts_with("--- a/x.cu\n+++ b/x.cu\n"), "{text}");
        assert!(
            text.contains(&format!("\na.cuh is created: {} lines", LONG + 1)),
            "{text}"
        );
        // What is short, and what is changed, is shown.
        assert_eq!(text.matches("+line\n").count(), LONG + 1);
        assert!(text.contains("+++ b/b.cuh\n@@ -0,0 +1 @@\n+short\n"), "{text}");
        Ok(())
    }

    #[test]
    fn a_program_gets_the_whole_difference() -> io::Result<()> {
        let text = shown(false)?;
        assert_eq!(text.matches("+line\n").count(), 2 * (LONG + 1));
        assert!(text.contains("--- /dev/null\n+++ b/a.cuh\n"), "{text}");
        assert!(!text.contains("is created"), "{text}");
        Ok(())
    }
}
