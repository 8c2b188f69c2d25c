//! The builder that collects edits of source files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;

use crate::api::assumption::Assumed;
use crate::api::refusal::Reason;
use crate::api::refusal::{Ineligible, refuse};
use crate::api::sequence::difference;
use crate::api::source_edit::{EditError, SourceEdit, TextEdit};
use crate::edit::branches;
use crate::edit::counted;
use crate::edit::defaulted;
use crate::edit::include::Header;
use crate::edit::macros;
use crate::edit::style::{self, Style, style_of};
use crate::runtime::PartSet;

/// Collects edits of several files, in any order.
pub struct EditBuilder<'db> {
    db: &'db dyn Db,
    files: BTreeMap<PathBuf, FileEdits>,
    creates: BTreeMap<PathBuf, Arc<str>>,
    assumptions: Vec<Assumed>,
    refused: Vec<Reason>,
    headers: Vec<Header>,
}

struct FileEdits {
    file: SourceFile,
    text: Arc<str>,
    style: Style,
    edits: Vec<TextEdit>,
    /// What stands directly in front of something: behind all else that is inserted there.
    directly: Vec<TextEdit>,
}

impl<'db> EditBuilder<'db> {
    /// No edits yet.
    pub fn new(db: &'db dyn Db) -> Self {
        EditBuilder {
            db,
            files: BTreeMap::new(),
            creates: BTreeMap::new(),
            assumptions: Vec::new(),
            refused: Vec::new(),
            headers: Vec::new(),
        }
    }

    fn file(&mut self, file: SourceFile) -> &mut FileEdits {
        let db = self.db;
        self.files
            .entry(file.path(db).to_path_buf())
            .or_insert_with(|| FileEdits {
                file,
                style: style_of(db, file).clone(),
                text: file.text(db),
                edits: Vec::new(),
                directly: Vec::new(),
            })
    }

    /// The database that the files are read from.
    pub fn db(&self) -> &'db dyn Db {
        self.db
    }

    /// The text of `file`, unedited.
    pub fn text(&mut self, file: SourceFile) -> Arc<str> {
        self.file(file).text.clone()
    }

    /// The formatting habits of `file`.
    pub fn style(&mut self, file: SourceFile) -> Style {
        self.file(file).style.clone()
    }

    /// Replaces `range` by `insert`, byte for byte.
    pub fn replace(&mut self, place: FileRange, insert: impl Into<String>) {
        let insert = insert.into();
        self.file(place.file).edits.push(TextEdit {
            range: place.range,
            insert,
        });
    }

    /// Inserts `text` at `offset`, byte for byte. Insertions at one place keep the order in which they were made.
    pub fn insert(&mut self, file: SourceFile, offset: u32, text: impl Into<String>) {
        let range = TextRange::empty(offset);
        self.replace(FileRange { file, range }, text);
    }

    /// The same, unless it has been inserted there before.
    pub fn insert_once(&mut self, file: SourceFile, offset: u32, text: impl Into<String>) {
        let edit = TextEdit {
            range: TextRange::empty(offset),
            insert: text.into(),
        };
        let edits = &mut self.file(file).edits;
        if !edits.contains(&edit) {
            edits.push(edit);
        }
    }

    /// Inserts generated code directly in front of what begins at `offset`, whatever else is inserted there before or after. Its last line
    /// ends where that begins.
    pub fn insert_directly(&mut self, file: SourceFile, offset: u32, generated: &str) {
        let file = self.file(file);
        let indent = style::indent_at(&file.text, offset as usize);
        let insert = format!("{}{indent}", file.style.fit(generated, indent));
        file.directly.push(TextEdit {
            range: TextRange::empty(offset),
            insert,
        });
    }

    /// Replaces `range` by generated code (`\n`, a tab a level), fitted to the file's habits and to the indentation of the
    /// line that holds `range`.
    pub fn replace_code(&mut self, place: FileRange, generated: &str) {
        let file = self.file(place.file);
        let indent = style::indent_at(&file.text, place.range.start as usize);
        let insert = file.style.fit(generated, indent);
        file.edits.push(TextEdit {
            range: place.range,
            insert,
        });
    }

    /// Deletes a statement, together with its line where nothing else stands there.
    pub fn delete_lines(&mut self, place: FileRange) {
        let file = self.file(place.file);
        let (start, end) = style::whole_lines(&file.text, place.range.start as usize, place.range.end as usize);
        file.edits.push(TextEdit {
            range: TextRange::new(start as u32, end as u32),
            insert: String::new(),
        });
    }

    /// Makes `text` of a file.
    pub fn rewrite(&mut self, file: SourceFile, text: &str) {
        let file = self.file(file);
        file.edits = difference(&file.text, text);
    }

    /// The inserted code uses a runtime header.
    pub fn uses(&mut self, header: &Header) {
        if !self.headers.contains(header) {
            self.headers.push(header.clone());
        }
    }

    /// Has the runtime headers hold what the inserted code names.
    fn provide(&mut self) {
        let inserted = self.files.values().flat_map(|file| &file.edits);
        let needed = inserted.fold(PartSet::NONE, |all, edit| all.with(PartSet::needed_by(&edit.insert)));
        if needed != PartSet::NONE {
            let replaced = self.files.values().find_map(|of| {
                let inserted = of.edits.iter().map(|edit| &*edit.insert);
                macros::in_the_way(self.db, of.file, inserted)
            });
            replaced.into_iter().for_each(|reason| self.refuse(reason));
        }
        for header in std::mem::take(&mut self.headers) {
            if let Err(reason) = header.provide(self, needed) {
                self.refuse(reason);
            }
        }
    }

    /// Creates a file.
    pub fn create(&mut self, path: PathBuf, content: impl Into<Arc<str>>) {
        self.creates.insert(path, content.into());
    }

    /// Notes something that the result takes for granted.
    pub fn assume(&mut self, assumed: Assumed) {
        if !self.assumptions.contains(&assumed) {
            self.assumptions.push(assumed);
        }
    }

    /// Something that has to be edited can't be.
    pub fn refuse(&mut self, reason: Reason) {
        if !self.refused.contains(&reason) {
            self.refused.push(reason);
        }
    }

    /// What can't be edited.
    pub fn refused(&self) -> &[Reason] {
        &self.refused
    }

    /// The finished edit; refused when two edits want the same bytes.
    pub fn finish(mut self) -> Result<SourceEdit, EditError> {
        for file in self.files.values_mut() {
            file.edits.append(&mut file.directly);
        }
        let ranges = |of: &FileEdits| of.edits.iter().map(|edit| edit.range).collect();
        let edited: Vec<_> = self.files.values().map(|of| (of.file, ranges(of))).collect();
        if let Some(assumed) = defaulted::assumption(self.db, &edited) {
            self.assume(assumed);
        }
        for assumed in branches::assumptions(self.db, &edited) {
            self.assume(assumed);
        }
        let mut edits = BTreeMap::new();
        for (path, file) in self.files {
            let merged = merge(&path, &file.text, file.edits)?;
            if !merged.is_empty() {
                edits.insert(path, merged);
            }
        }
        Ok(SourceEdit {
            edits,
            creates: self.creates,
            assumptions: self.assumptions,
        })
    }
}

/// The finished edit; edits that get in each other's way are a refusal.
pub(crate) fn finish(mut edit: EditBuilder<'_>) -> Result<SourceEdit, Ineligible> {
    edit.provide();
    let counted = edit.files.values();
    let counted = counted.filter_map(|of| counted::changed(edit.db, of.file, &of.text, &of.edits));
    let counted: Vec<Reason> = counted.collect();
    counted.into_iter().for_each(|reason| edit.refuse(reason));
    if !edit.refused().is_empty() {
        return Err(Ineligible(edit.refused().to_vec()));
    }
    edit.finish().map_err(|error| refuse(error.to_string(), None))
}

/// Sorts the edits; those that start at one place become one. An insertion stands before a replacement that starts there.
fn merge(path: &Path, text: &str, mut edits: Vec<TextEdit>) -> Result<Vec<TextEdit>, EditError> {
    edits.retain(|e| !(e.range.start == e.range.end && e.insert.is_empty()));
    edits.sort_by_key(|e| e.range);
    let mut merged: Vec<TextEdit> = Vec::new();
    for edit in edits {
        if text.get(edit.range.start as usize..edit.range.end as usize).is_none() {
            return Err(EditError::OutOfText {
                path: path.to_path_buf(),
                range: edit.range,
            });
        }
        match merged.last_mut() {
            Some(last) if edit.range.start < last.range.end => {
                return Err(EditError::Overlap {
                    path: path.to_path_buf(),
                    first: last.range,
                    second: edit.range,
                });
            }
            Some(last) if last.range.start == last.range.end && last.range.start == edit.range.start => {
                last.insert.push_str(&edit.insert);
                last.range = edit.range;
            }
            _ => merged.push(edit),
        }
    }
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use gridfuse_analysis::host::Host;

    use crate::api::source_edit::apply;

    use super::*;

    fn build(text: &str, make: impl Fn(&mut EditBuilder<'_>, SourceFile)) -> Result<String, EditError> {
        let mut host = Host::new();
        let file = host.set_file(Path::new("/a.cu"), text);
        let mut builder = EditBuilder::new(host.db());
        make(&mut builder, file);
        let edit = builder.finish()?;
        let texts = apply(&edit, |_| Some(text.to_owned()))?;
        Ok(texts.get(Path::new("/a.cu")).cloned().unwrap_or_default())
    }

    fn at(file: SourceFile, start: u32, end: u32) -> FileRange {
        FileRange {
            file,
            range: TextRange::new(start, end),
        }
    }

    #[test]
    fn order_and_same_place() {
        let text = build("abcdef", |b, f| {
            b.replace(at(f, 4, 5), "E");
            b.insert(f, 2, "1");
            b.replace(at(f, 2, 3), "C");
            b.insert(f, 2, "2");
            b.insert(f, 5, "!");
        });
        assert_eq!(text.as_deref(), Ok("ab12CdE!f"));
    }

    #[test]
    fn overlaps_are_refused() {
        let result = build("abcdef", |b, f| {
            b.replace(at(f, 1, 4), "x");
            b.replace(at(f, 3, 5), "y");
        });
        assert!(matches!(result, Err(EditError::Overlap { .. })));
        let result = build("abcdef", |b, f| {
            b.replace(at(f, 1, 4), "x");
            b.insert(f, 2, "y");
        });
        assert!(matches!(result, Err(EditError::Overlap { .. })));
    }

    #[test]
    fn ranges_outside_are_refused() {
        let result = build("aé", |b, f| b.replace(at(f, 2, 3), "x"));
        assert!(matches!(result, Err(EditError::OutOfText { .. })));
        let result = build("a", |b, f| b.replace(at(f, 2, 3), "x"));
        assert!(matches!(result, Err(EditError::OutOfText { .. })));
    }

    #[test]
    fn a_stale_text_is_an_error() {
        let edit = SourceEdit {
            edits: BTreeMap::from([(
                PathBuf::from("/a.cu"),
                vec![TextEdit {
                    range: TextRange::new(5, 6),
                    insert: String::new(),
                }],
            )]),
            ..SourceEdit::default()
        };
        assert!(apply(&edit, |_| Some("abc".to_owned())).is_err());
        assert!(apply(&edit, |_| None).is_err());
    }

    #[test]
    fn code_follows_the_file() {
        let text = build("void f() {\r\n\tx();\r\n\ty();\r\n}\r\n", |b, f| {
            b.replace_code(at(f, 13, 17), "if (a)\n\tb();\nelse\n\tc();");
            b.delete_lines(at(f, 20, 24));
        });
        assert_eq!(
            text.as_deref(),
            Ok("void f() {\r\n\tif (a)\r\n\t\tb();\r\n\telse\r\n\t\tc();\r\n}\r\n")
        );
    }
}
