//! Between the analyses' data and the protocol's types.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::severity::Severity;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::diagnostics::diagnostic::{self};
use gridfuse_codeactions::api::source_edit::SourceEdit;
use tower_lsp_server::ls_types::*;

use super::state::Snapshot;
use crate::line_index::{LineIndex, line_index};

/// How columns count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units: what every client understands.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// The best that the client offers.
    pub fn negotiate(offered: Option<&[PositionEncodingKind]>) -> Encoding {
        let offers = |kind: PositionEncodingKind| offered.is_some_and(|offered| offered.contains(&kind));
        if offers(PositionEncodingKind::UTF8) {
            Encoding::Utf8
        } else if offers(PositionEncodingKind::UTF32) && !offers(PositionEncodingKind::UTF16) {
            Encoding::Utf32
        } else {
            Encoding::Utf16
        }
    }

    /// The protocol's name.
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
            Encoding::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    fn width(self, character: char) -> u32 {
        match self {
            Encoding::Utf8 => character.len_utf8() as u32,
            Encoding::Utf16 => character.len_utf16() as u32,
            Encoding::Utf32 => 1,
        }
    }
}

/// Offset to position. An offset inside a character counts as its start.
pub fn position(text: &str, index: &LineIndex, offset: u32, encoding: Encoding) -> Position {
    let offset = text.floor_char_boundary(offset as usize);
    let (line, start) = index.line(offset as u32);
    let before = text.get(start as usize..offset).unwrap_or_default();
    let character = before.chars().map(|character| encoding.width(character)).sum();
    Position { line, character }
}

/// Position to offset. Behind the end of a line means its end; behind the last line, the end of the text; inside a character,
/// its start.
pub fn offset(text: &str, index: &LineIndex, position: Position, encoding: Encoding) -> u32 {
    let Some((start, end)) = index.content(text, position.line) else {
        return text.len() as u32;
    };
    let line = text.get(start as usize..end as usize).unwrap_or_default();
    let mut column = 0;
    for (at, character) in line.char_indices() {
        column += encoding.width(character);
        if column > position.character {
            return start + at as u32;
        }
    }
    end
}

/// Range to byte range; the ends in order.
pub fn text_range(text: &str, index: &LineIndex, range: Range, encoding: Encoding) -> TextRange {
    let start = offset(text, index, range.start, encoding);
    let end = offset(text, index, range.end, encoding);
    TextRange::new(start.min(end), start.max(end))
}

/// Path under which a document is known: that of a file, else the whole URI (`untitled:Untitled-1`).
pub fn path_of(uri: &Uri) -> PathBuf {
    let file = uri.scheme().as_str().eq_ignore_ascii_case("file");
    match uri.to_file_path() {
        Some(path) if file => path.into_owned(),
        _ => PathBuf::from(uri.as_str()),
    }
}

impl Snapshot {
    /// URI of a file, as the client spells it where it is open.
    pub fn uri(&self, path: &Path) -> Option<Uri> {
        if let Some(document) = self.documents.get(path) {
            return Some(document.uri.clone());
        }
        if path.is_absolute() {
            Uri::from_file_path(path)
        } else {
            Uri::from_str(path.to_str()?).ok()
        }
    }

    /// Byte range to range.
    pub fn range(&self, place: FileRange) -> Range {
        let text = place.file.text(&self.db);
        let index = line_index(&self.db, place.file);
        let encoding = self.session.encoding;
        Range {
            start: position(&text, index, place.range.start, encoding),
            end: position(&text, index, place.range.end, encoding),
        }
    }

    /// Range to byte range.
    pub fn text_range(&self, file: SourceFile, range: Range) -> TextRange {
        let text = file.text(&self.db);
        text_range(&text, line_index(&self.db, file), range, self.session.encoding)
    }

    /// Position to offset.
    pub fn offset(&self, file: SourceFile, position: Position) -> u32 {
        let text = file.text(&self.db);
        offset(&text, line_index(&self.db, file), position, self.session.encoding)
    }

    /// Place to location.
    pub fn location(&self, place: FileRange) -> Option<Location> {
        Some(Location {
            uri: self.uri(place.file.path(&self.db))?,
            range: self.range(place),
        })
    }

    /// A finding.
    pub fn diagnostic(&self, diagnostic: &diagnostic::Diagnostic) -> Diagnostic {
        let related: Vec<DiagnosticRelatedInformation> = diagnostic
            .related
            .iter()
            .filter_map(|related| {
                Some(DiagnosticRelatedInformation {
                    location: self.location(related.place)?,
                    message: related.message.clone(),
                })
            })
            .collect();
        let message = match &diagnostic.help {
            Some(help) => format!("{}\nhelp: {help}", diagnostic.message),
            None => diagnostic.message.clone(),
        };
        Diagnostic {
            range: self.range(diagnostic.place),
            severity: Some(match diagnostic.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
                Severity::Info => DiagnosticSeverity::INFORMATION,
            }),
            code: Some(NumberOrString::String(diagnostic.id.to_string())),
            code_description: self
                .session
                .code_description
                .then(|| self.pages.diagnostic(diagnostic.id))
                .flatten()
                .map(|href| CodeDescription { href }),
            source: Some("gridfuse".to_string()),
            message,
            related_information: (self.session.related_information && !related.is_empty()).then_some(related),
            ..Diagnostic::default()
        }
    }

    /// An edit; `creates` are the files that aren't there yet, `deletes` those that nobody needs afterwards. With versions and creation of files where the client can, and with
    /// what it is `assumed` to need, under the name `label`. `None` when the edit is of a file that isn't known.
    pub fn workspace_edit(
        &self,
        edit: &SourceEdit,
        creates: &BTreeMap<PathBuf, Arc<str>>,
        deletes: &[PathBuf],
        assumed: &[&str],
        label: &str,
    ) -> Option<WorkspaceEdit> {
        let mut edits: Vec<(Uri, Option<i32>, Vec<TextEdit>)> = Vec::new();
        for (path, list) in &edit.edits {
            let file = self.file(path)?;
            let list = list.iter().map(|edit| TextEdit {
                range: self.range(FileRange {
                    file,
                    range: edit.range,
                }),
                new_text: edit.insert.clone(),
            });
            edits.push((self.uri(path)?, self.version(path), list.collect()));
        }
        let mut new = Vec::new();
        for (path, text) in creates {
            let insert = TextEdit {
                range: Range::default(),
                new_text: text.to_string(),
            };
            new.push((self.uri(path)?, insert));
        }
        if !self.session.document_changes || (!new.is_empty() && !self.session.create_files) {
            let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
            for (uri, insert) in new {
                changes.insert(uri, vec![insert]);
            }
            for (uri, _, list) in edits {
                changes.insert(uri, list);
            }
            return Some(WorkspaceEdit {
                changes: Some(changes),
                ..WorkspaceEdit::default()
            });
        }
        let annotated = self.session.change_annotations && !assumed.is_empty();
        let mut operations = Vec::new();
        for (uri, insert) in new {
            operations.push(DocumentChangeOperation::Op(ResourceOp::Create(CreateFile {
                uri: uri.clone(),
                options: Some(CreateFileOptions {
                    overwrite: Some(false),
                    ignore_if_exists: Some(false),
                }),
                annotation_id: None,
            })));
            operations.push(document_edit(uri, None, vec![insert], annotated));
        }
        operations.extend(
            edits
                .into_iter()
                .map(|(uri, version, list)| document_edit(uri, version, list, annotated)),
        );
        // Last, when nothing includes them any more.
        for path in deletes {
            operations.push(DocumentChangeOperation::Op(ResourceOp::Delete(DeleteFile {
                uri: self.uri(path)?,
                options: Some(DeleteFileOptions {
                    recursive: Some(false),
                    ignore_if_not_exists: Some(true),
                }),
                annotation_id: None,
            })));
        }
        Some(WorkspaceEdit {
            document_changes: Some(DocumentChanges::Operations(operations)),
            change_annotations: annotated.then(|| {
                let annotation = ChangeAnnotation {
                    label: label.to_string(),
                    needs_confirmation: Some(false),
                    description: Some(format!("assumes {}", listed(assumed))),
                };
                HashMap::from([(ASSUMPTIONS.to_string(), annotation)])
            }),
            ..WorkspaceEdit::default()
        })
    }
}

/// Sentences, each with its number where there are several: there may be semicolons in them.
fn listed(sentences: &[&str]) -> String {
    match sentences {
        [only] => (*only).to_owned(),
        several => {
            let numbered = several
                .iter()
                .enumerate()
                .map(|(index, text)| format!("({}) {text}", index + 1));
            numbered.collect::<Vec<String>>().join("; ")
        }
    }
}

/// Name of the annotation that tells what an edit assumes.
const ASSUMPTIONS: &str = "assumptions";

fn document_edit(uri: Uri, version: Option<i32>, edits: Vec<TextEdit>, annotated: bool) -> DocumentChangeOperation {
    let edit = |text_edit: TextEdit| match annotated {
        true => OneOf::Right(AnnotatedTextEdit {
            text_edit,
            annotation_id: ASSUMPTIONS.to_string(),
        }),
        false => OneOf::Left(text_edit),
    };
    DocumentChangeOperation::Edit(TextDocumentEdit {
        text_document: OptionalVersionedTextDocumentIdentifier { uri, version },
        edits: edits.into_iter().map(edit).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENCODINGS: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn columns_by_encoding() {
        // ü: 2 bytes, 1 unit; 😀: 4 bytes, 2 units; a tab is one of each.
        let text = "\tü😀x\r\nz";
        let index = LineIndex::new(text);
        let x = text.find('x').unwrap_or_default() as u32;
        let columns = ENCODINGS.map(|encoding| position(text, &index, x, encoding).character);
        assert_eq!(columns, [7, 4, 3]);
        for (encoding, column) in ENCODINGS.into_iter().zip(columns) {
            assert_eq!(offset(text, &index, at(0, column), encoding), x);
        }
    }

    #[test]
    fn every_boundary_survives() {
        let text = "aé\r\n\r\n\t😀\n日本\rend\n";
        let index = LineIndex::new(text);
        for encoding in ENCODINGS {
            for (at, _) in text
                .char_indices()
                .filter(|(at, c)| *c != '\n' || !text[..*at].ends_with('\r'))
            {
                let there = position(text, &index, at as u32, encoding);
                assert_eq!(
                    offset(text, &index, there, encoding),
                    at as u32,
                    "{encoding:?} {there:?}"
                );
            }
        }
    }

    #[test]
    fn positions_outside_are_moved_inside() {
        let text = "ab\r\n😀c";
        let index = LineIndex::new(text);
        assert_eq!(offset(text, &index, at(0, 99), Encoding::Utf16), 2);
        assert_eq!(offset(text, &index, at(9, 0), Encoding::Utf16), text.len() as u32);
        // Between the two halves of a surrogate pair, and inside a character's bytes.
        assert_eq!(offset(text, &index, at(1, 1), Encoding::Utf16), 4);
        assert_eq!(offset(text, &index, at(1, 3), Encoding::Utf8), 4);
        assert_eq!(position(text, &index, 6, Encoding::Utf16), at(1, 0));
        assert_eq!(position(text, &index, 999, Encoding::Utf16), at(1, 3));
        let backwards = Range {
            start: at(1, 0),
            end: at(0, 1),
        };
        assert_eq!(
            text_range(text, &index, backwards, Encoding::Utf8),
            TextRange::new(1, 4)
        );
    }

    #[test]
    fn negotiation() {
        let [utf8, utf16, utf32] = ENCODINGS.map(Encoding::kind);
        assert_eq!(Encoding::negotiate(None), Encoding::Utf16);
        assert_eq!(Encoding::negotiate(Some(&[])), Encoding::Utf16);
        assert_eq!(Encoding::negotiate(Some(&[utf16.clone(), utf8])), Encoding::Utf8);
        assert_eq!(Encoding::negotiate(Some(&[utf32.clone(), utf16])), Encoding::Utf16);
        assert_eq!(Encoding::negotiate(Some(&[utf32])), Encoding::Utf32);
    }

    #[test]
    fn paths() {
        let path = |uri: &str| Uri::from_str(uri).map(|uri| path_of(&uri)).unwrap_or_default();
        assert_eq!(path("file:///a%20b/%C3%BC.cu"), Path::new("/a b/ü.cu"));
        assert_eq!(path("untitled:Untitled-1"), Path::new("untitled:Untitled-1"));
        assert_eq!(path("vscode-vfs://github/x.cu"), Path::new("vscode-vfs://github/x.cu"));
    }
}
