//! A baseline: findings that were there before, and are not to block anybody.
//!
//! An entry names the file, the diagnostic, the function and the code, and no line: so it goes along when code above it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gridfuse_analysis::diagnostics::diagnostic::Diagnostic;
use serde::{Deserialize, Serialize};

use super::CliError;
use super::output::note;
use super::project::{Project, canonical};
use super::write::{NewText, WriteError, write_all};
use crate::launches::function_at;
use crate::schema;

/// Characters of code that an entry has at most.
const MOST_CODE: usize = 160;

/// A baseline file.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    findings: Vec<Entry>,
}

/// A finding that was there.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Relative to the baseline's directory, with `/`.
    path: String,
    id: String,
    /// The function in which it is.
    function: String,
    /// What stands there, with single blanks.
    code: String,
    /// How many such findings there are.
    count: usize,
}

/// What was there before.
pub struct Baseline {
    path: PathBuf,
    /// The baseline's directory.
    directory: PathBuf,
    /// How many findings of each kind are left out; their own counts are 0.
    known: BTreeMap<Entry, usize>,
}

impl Baseline {
    /// One in which nothing is, at this path.
    pub fn new(path: &Path) -> Result<Baseline, CliError> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        Ok(Baseline {
            path: path.to_path_buf(),
            directory: canonical(directory.unwrap_or(Path::new(".")))?,
            known: BTreeMap::new(),
        })
    }

    /// Reads one.
    pub fn read(path: &Path) -> Result<Baseline, CliError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            format!(
                "cannot read the baseline {}: {error}; --write-baseline makes one",
                path.display()
            )
        })?;
        let wrong = |reason: String| {
            format!(
                "{} is no baseline: {reason}; --write-baseline writes it anew",
                path.display()
            )
        };
        let file: File = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if file.schema != schema::VERSION {
            return Err(wrong(format!("its form is {}, and not {}", file.schema, schema::VERSION)).into());
        }
        let mut baseline = Baseline::new(path)?;
        for entry in file.findings {
            let count = entry.count;
            *baseline.known.entry(Entry { count: 0, ..entry }).or_default() += count;
        }
        Ok(baseline)
    }

    /// Takes out what it has, and returns how many findings that were.
    pub fn leave_out<T>(&mut self, project: &Project, found: &mut Vec<(Diagnostic, T)>) -> usize {
        let before = found.len();
        found.retain(
            |(diagnostic, _)| match self.known.get_mut(&self.entry(project, diagnostic)) {
                Some(left) if *left > 0 => {
                    *left -= 1;
                    false
                }
                _ => true,
            },
        );
        before - found.len()
    }

    /// Tells of entries for the checked files that nothing has matched.
    pub fn tell_what_is_gone(&self, project: &Project) {
        let checked: BTreeSet<String> = project.files.iter().map(|path| self.name(path)).collect();
        let gone = self.known.iter().filter(|(entry, _)| checked.contains(&entry.path));
        let gone: usize = gone.map(|(_, left)| left).sum();
        if gone > 0 {
            let findings = super::output::count(gone, "finding", "findings");
            let path = self.path.display();
            note(&format!(
                "{findings} of {path} are gone: --write-baseline takes them out"
            ));
        }
    }

    /// Writes it with these findings.
    pub fn write<T>(mut self, project: &Project, found: &[(Diagnostic, T)]) -> Result<PathBuf, CliError> {
        self.known.clear();
        for (diagnostic, _) in found {
            *self.known.entry(self.entry(project, diagnostic)).or_default() += 1;
        }
        let file = File {
            schema: schema::VERSION,
            findings: self
                .known
                .iter()
                .map(|(entry, count)| Entry {
                    count: *count,
                    ..entry.clone()
                })
                .collect(),
        };
        let text = serde_json::to_string_pretty(&file)
            .map_err(|error| format!("cannot turn the baseline into JSON: {error}"))?;
        let new = NewText {
            replaces: std::fs::read_to_string(&self.path).ok(),
            path: self.path.clone(),
            text: text + "\n",
        };
        write_all(&[new]).map_err(|WriteError(message)| CliError::Message(message))?;
        Ok(self.path)
    }

    /// A path as the file has it: relative where it lies below.
    fn name(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.directory).unwrap_or(path);
        below.display().to_string().replace('\\', "/")
    }

    fn entry(&self, project: &Project, diagnostic: &Diagnostic) -> Entry {
        let db = project.host.db();
        let place = diagnostic.place;
        let text = place.file.text(db);
        let code: Vec<&str> = place.range.text(&text).split_whitespace().collect();
        let function = function_at(db, place.file, place.range.start);
        Entry {
            path: self.name(place.file.path(db)),
            id: diagnostic.id.to_owned(),
            function: function.map_or(String::new(), |function| function.name(db).to_string()),
            code: code.join(" ").chars().take(MOST_CODE).collect(),
            count: 0,
        }
    }
}
