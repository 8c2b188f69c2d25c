//! Applying rewrites to a loaded project, in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_codeactions::api::refusal::Reason;
use gridfuse_codeactions::api::rewrite::{Options, Rewrite};
use gridfuse_codeactions::api::source_edit::SourceEdit;
use gridfuse_codeactions::api::source_edit::apply_to_text;

use crate::cli::Project;
use crate::creates::{Exists, to_create};
use crate::files::{MAX_NAMED_BYTES, read};
use crate::launches::{LaunchSite, overlapping};

/// Text of a file before and after; `None` before: it is created.
pub struct Change {
    /// Before all rewrites.
    pub before: Option<Arc<str>>,
    /// Now.
    pub after: String,
}

/// Why no edit came out of a rewrite.
pub enum NoEdit {
    /// The file isn't there.
    Unreadable,
    /// No device-side launch is at the place.
    NoLaunch,
    /// The rewrite refuses this launch.
    Refused(FileRange, Vec<Reason>),
}

/// The edit of a rewrite for the launch at `target` in the file `path`, and the place of that launch.
pub fn edit_of(
    project: &Project,
    path: &Path,
    target: TextRange,
    rewrite: &'static Rewrite,
    options: &Options,
) -> Result<(FileRange, SourceEdit), NoEdit> {
    let db = project.host.db();
    let file = project.host.file(path).ok_or(NoEdit::Unreadable)?;
    let sites = overlapping(db, file, target);
    let device: Vec<&LaunchSite<'_>> = sites.iter().filter(|site| site.device_side()).collect();
    let site = device
        .iter()
        .find(|site| site.place.range == target)
        .or_else(|| device.first())
        .ok_or(NoEdit::NoLaunch)?;
    match rewrite.apply(db, site.id, options) {
        Ok(edit) => Ok((site.place, edit)),
        Err(refusal) => Err(NoEdit::Refused(site.place, refusal.0)),
    }
}

/// The edit of a rewrite for what stands at `target`.
pub fn edit_at_place(
    project: &Project,
    path: &Path,
    target: TextRange,
    rewrite: &'static Rewrite,
    options: &Options,
) -> Result<(FileRange, SourceEdit), NoEdit> {
    let file = project.host.file(path).ok_or(NoEdit::Unreadable)?;
    let place = FileRange { file, range: target };
    match rewrite.apply(project.host.db(), place, options) {
        Ok(edit) => Ok((place, edit)),
        Err(refusal) => Err(NoEdit::Refused(place, refusal.0)),
    }
}

/// A file's path, its text before an edit (`None`: it is created), and its text after it.
pub type Edited = (PathBuf, Option<Arc<str>>, String);

/// The texts that an edit leads to. An error is a sentence.
pub fn texts_after(project: &Project, edit: &SourceEdit) -> Result<Vec<Edited>, String> {
    let unfit = |path: &Path| {
        format!(
            "internal error: the edit of {} does not fit; please report it",
            path.display()
        )
    };
    let mut texts: Vec<Edited> = Vec::new();
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
    for (created, text) in creates {
        texts.push((created, None, text.to_string()));
    }
    Ok(texts)
}

/// Notes that a text was changed.
pub fn record(changes: &mut BTreeMap<PathBuf, Change>, (path, before, after): Edited) {
    match changes.get_mut(&path) {
        Some(change) => change.after = after,
        None => {
            changes.insert(path, Change { before, after });
        }
    }
}

/// Takes an edit into the project's texts and notes what changed. An error is a sentence.
pub fn take(project: &mut Project, edit: &SourceEdit, changes: &mut BTreeMap<PathBuf, Change>) -> Result<(), String> {
    for edited in texts_after(project, edit)? {
        project.host.set_file(&edited.0, edited.2.as_str());
        record(changes, edited);
    }
    Ok(())
}
