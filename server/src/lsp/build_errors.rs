//! What the compiler said in the last measurement, as diagnostics of the lines that it's about. They hold for the texts that were
//! measured: an edit takes them away, and undoing it brings them back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use tower_lsp_server::ls_types::{Diagnostic, DiagnosticSeverity};

use super::state::Snapshot;
use crate::line_index::{LineIndex, line_index};
use crate::measure::report::{BuildMessage, Outcome, Report};
use crate::measure::served::Unsaved;

/// As the diagnostics name where they are from.
const SOURCE: &str = "gridfuse measure";

/// An error at a line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BuildError {
    /// From 1.
    line: u32,
    message: String,
    /// The rewritten line that it's about, and the variants in which it is there; `None`: it's the user's own line.
    rewritten: Option<(String, Vec<String>)>,
}

/// The errors of one file, and the text that has them.
#[derive(Clone, Debug)]
struct FileErrors {
    text: Arc<str>,
    errors: Vec<BuildError>,
}

/// The errors of the last measurement.
#[derive(Debug, Default)]
pub struct BuildErrors(BTreeMap<PathBuf, FileErrors>);

impl BuildErrors {
    /// Those of a report, whose paths count from `directory`. `measured`: what the editor showed.
    pub fn of(report: &Report, directory: &Path, measured: &Unsaved) -> BuildErrors {
        let mut found = BuildErrors::default();
        let variants = report.variants.iter();
        let outcomes = variants.map(|variant| (variant.rewrites.as_str(), &variant.outcome));
        for (name, outcome) in std::iter::once(("original", &report.original)).chain(outcomes) {
            let Outcome::NotBuilt { messages, .. } = outcome else {
                continue;
            };
            for message in messages.iter().filter(|message| message.severity == "error") {
                found.add(name, message, directory, measured);
            }
        }
        found
    }

    fn add(&mut self, variant: &str, message: &BuildMessage, directory: &Path, measured: &Unsaved) {
        let path = directory.join(&message.path);
        // The measuring process knows files by their real paths.
        let open = measured
            .iter()
            .find(|(open, _)| **open == path || open.canonicalize().is_ok_and(|real| real == path));
        // Of what isn't open, nobody is told.
        let Some((path, text)) = open else { return };
        let errors = &mut self
            .0
            .entry(path.clone())
            .or_insert_with(|| FileErrors {
                text: text.clone(),
                errors: Vec::new(),
            })
            .errors;
        let same = |known: &&mut BuildError| {
            let code = known.rewritten.as_ref().map(|(code, _)| code);
            known.line == message.line && known.message == message.message && code == message.rewritten.as_ref()
        };
        match errors.iter_mut().find(same) {
            Some(known) => {
                if let Some((_, variants)) = &mut known.rewritten {
                    variants.push(variant.to_owned());
                }
            }
            None => errors.push(BuildError {
                line: message.line,
                message: message.message.clone(),
                rewritten: message.rewritten.clone().map(|code| (code, vec![variant.to_owned()])),
            }),
        }
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The diagnostics of a file, as long as it's the one that was measured.
    pub fn diagnostics(&self, snapshot: &Snapshot, path: &Path) -> Vec<Diagnostic> {
        let Some((found, file)) = self.0.get(path).zip(snapshot.file(path)) else {
            return Vec::new();
        };
        let text = file.text(&snapshot.db);
        if text != found.text {
            return Vec::new();
        }
        let index = line_index(&snapshot.db, file);
        found
            .errors
            .iter()
            .map(|error| {
                let range = whole_line(index, &text, error.line.saturating_sub(1));
                let mut message = error.message.clone();
                if let Some((code, variants)) = &error.rewritten {
                    message += &format!("\nin what {} makes of this: {code}", variants.join(", "));
                }
                Diagnostic {
                    range: snapshot.range(FileRange { file, range }),
                    severity: Some(DiagnosticSeverity::ERROR),
                    source: Some(SOURCE.to_owned()),
                    message,
                    ..Diagnostic::default()
                }
            })
            .collect()
    }
}

/// What stands on a line, from 0, without the blanks around it.
fn whole_line(index: &LineIndex, text: &str, line: u32) -> TextRange {
    let (start, end) = index.content(text, line).unwrap_or_default();
    let content = text.get(start as usize..end as usize).unwrap_or_default();
    let blanks = content.len() - content.trim_start().len();
    let start = start + u32::try_from(blanks).unwrap_or_default();
    let length = u32::try_from(content.trim().len()).unwrap_or_default();
    TextRange::new(start, start + length)
}
