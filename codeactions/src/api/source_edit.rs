//! Edits of source files as plain data.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::span::TextRange;

use crate::api::assumption::Assumed;
use crate::api::refusal::{Ineligible, refuse};

/// Replacement of one range of the original text.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct TextEdit {
    /// Byte range in the original text.
    pub range: TextRange,
    /// What takes its place.
    pub insert: String,
}

/// An edit of several files. Edits of one file are sorted and don't overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub struct SourceEdit {
    /// Edits of known files.
    pub edits: BTreeMap<PathBuf, Vec<TextEdit>>,
    /// Files to create (not overwritten where they exist with the same content).
    pub creates: BTreeMap<PathBuf, Arc<str>>,
    /// What the result takes for granted; shown with the action.
    pub assumptions: Vec<Assumed>,
}

impl SourceEdit {
    /// Both leave the same texts behind, whatever they take for granted.
    pub fn is_twin_of(&self, other: &SourceEdit) -> bool {
        self.edits == other.edits && self.creates == other.creates
    }

    /// The edit, unless it assumes what the code [contradicts](Assumed::contradicted).
    ///
    /// # Errors
    /// What is contradicted, and by what.
    pub fn unless_contradicted(self) -> Result<SourceEdit, Ineligible> {
        let wrong = self.assumptions.iter().find(|assumed| assumed.contradicted);
        match wrong.map(|assumed| &assumed.reason) {
            Some(reason) => Err(refuse(format!("it would assume that {}", reason.text), reason.place)),
            None => Ok(self),
        }
    }
}

/// Why an edit can't be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// Two edits want the same bytes.
    Overlap {
        /// The file.
        path: PathBuf,
        /// One of the ranges.
        first: TextRange,
        /// The other one.
        second: TextRange,
    },
    /// A range that doesn't lie in the text, or not on character boundaries.
    OutOfText {
        /// The file.
        path: PathBuf,
        /// The range.
        range: TextRange,
    },
    /// A file that is to be edited can't be read.
    Unreadable(PathBuf),
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditError::Overlap { path, first, second } => write!(
                f,
                "edits of {} overlap: bytes {}..{} and {}..{}",
                path.display(),
                first.start,
                first.end,
                second.start,
                second.end
            ),
            EditError::OutOfText { path, range } => {
                write!(
                    f,
                    "{} has changed: no bytes {}..{}",
                    path.display(),
                    range.start,
                    range.end
                )
            }
            EditError::Unreadable(path) => write!(f, "{} can't be read", path.display()),
        }
    }
}

impl std::error::Error for EditError {}

/// The new texts of all files that `edit` touches or creates. `read` gives a file's present text.
pub fn apply(
    edit: &SourceEdit,
    read: impl Fn(&Path) -> Option<String>,
) -> Result<BTreeMap<PathBuf, String>, EditError> {
    let created = edit.creates.iter();
    let mut texts: BTreeMap<PathBuf, String> = created.map(|(p, text)| (p.clone(), text.to_string())).collect();
    for (path, edits) in &edit.edits {
        let text = read(path).ok_or_else(|| EditError::Unreadable(path.clone()))?;
        texts.insert(path.clone(), apply_to_text(path, &text, edits)?);
    }
    Ok(texts)
}

/// The new text of the file `path`, whose present text is `text`. Fails when an edit doesn't fit it.
pub fn apply_to_text(path: &Path, text: &str, edits: &[TextEdit]) -> Result<String, EditError> {
    let mut out = String::with_capacity(text.len());
    let mut done = TextRange::empty(0);
    for edit in edits {
        let out_of_text = || EditError::OutOfText {
            path: path.to_path_buf(),
            range: edit.range,
        };
        if edit.range.start < done.end {
            return Err(EditError::Overlap {
                path: path.to_path_buf(),
                first: done,
                second: edit.range,
            });
        }
        text.get(edit.range.start as usize..edit.range.end as usize)
            .ok_or_else(out_of_text)?;
        out.push_str(
            text.get(done.end as usize..edit.range.start as usize)
                .ok_or_else(out_of_text)?,
        );
        out.push_str(&edit.insert);
        done = edit.range;
    }
    out.push_str(text.get(done.end as usize..).unwrap_or(""));
    Ok(out)
}

/// Where `range` is after the edits. What is inserted directly before or behind it stays outside; an edit that reaches into
/// it widens it to the inserted text.
pub fn map_range(range: TextRange, edits: &[TextEdit]) -> TextRange {
    let (mut start, mut end) = (i64::from(range.start), i64::from(range.end));
    let (mut before, mut through) = (0, 0);
    for edit in edits {
        let grows = edit.insert.len() as i64 - i64::from(edit.range.end - edit.range.start);
        if edit.range.end <= range.start {
            before += grows;
            through += grows;
        } else if edit.range.start < range.end {
            start = start.min(i64::from(edit.range.start));
            end = end.max(i64::from(edit.range.end));
            through += grows;
        }
    }
    let clamp = |offset: i64| u32::try_from(offset.max(0)).unwrap_or(u32::MAX);
    TextRange::new(clamp(start + before), clamp(end + through))
}
