//! What rewrites have changed: while nobody has edited it, `revert` gives back what was there, to the byte and for any rewrite, also for
//! those whose result doesn't say what it was made of. Commands keep it in the user's state directory, the server in memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::db::{Database, Db, Workspace};
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;
use gridfuse_codeactions::api::assumption::{self, Assumed};
use gridfuse_codeactions::api::refusal::Reason;
use gridfuse_codeactions::api::source_edit::{SourceEdit, TextEdit, apply_to_text};
use gridfuse_codeactions::runtime::HEADER_NAME;
use serde::{Deserialize, Serialize};
use similar::{ChangeTag, DiffOp, TextDiff};

use crate::changes::Change;
use crate::launches::function_at;
use crate::measure::fingerprint;
use crate::measure::state_directory;

/// Version of the files; another one's are left alone.
const VERSION: u32 = 1;

/// Older steps than so many are forgotten.
const MOST: usize = 64;

/// A step that changed files of more bytes isn't kept.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// What one command has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    version: u32,
    files: Vec<Before>,
}

/// A file that it has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Before {
    path: PathBuf,
    /// What was there.
    text: String,
    /// The number of the text that the command left.
    after: u64,
}

impl Step {
    /// The step that changes are. The runtime header isn't part of it: what else includes it may need what it has.
    pub fn of(changes: &BTreeMap<PathBuf, Change>) -> Option<Step> {
        let changed = changes.iter().filter(|(path, _)| !is_header(path));
        let files =
            changed.filter_map(|(path, change)| Some(Before::of(path, change.before.as_deref()?, &change.after)));
        Step::with(files.collect())
    }

    /// The step that an edit is where it is applied to what is known; `None`: it doesn't fit.
    pub fn of_edit(db: &dyn Db, edit: &SourceEdit) -> Option<Step> {
        let changed = edit.edits.iter().filter(|(path, _)| !is_header(path));
        let files = changed.map(|(path, list)| {
            let before = text_of(db, path)?;
            let after = apply_to_text(path, &before, list).ok()?;
            Some(Before::of(path, &before, &after))
        });
        Step::with(files.collect::<Option<_>>()?)
    }

    fn with(files: Vec<Before>) -> Option<Step> {
        let step = Step {
            version: VERSION,
            files,
        };
        (!step.files.is_empty() && step.bytes() <= MOST_BYTES).then_some(step)
    }

    /// The length of the texts that it keeps.
    pub fn bytes(&self) -> usize {
        self.files.iter().map(|file| file.text.len()).sum()
    }

    /// Keeps it for the next command. What can't be written is forgotten: then `revert` knows what the code says.
    pub fn keep(&self) {
        if let Some(directory) = directory() {
            // Nobody needs to know.
            let _ = self.keep_in(&directory);
        }
    }

    fn keep_in(&self, directory: &Path) -> std::io::Result<()> {
        std::fs::create_dir_all(directory)?;
        let numbers = self
            .files
            .iter()
            .map(|file| format!("{} {:016x}\n", file.path.display(), file.after));
        let name = format!("{:016x}.json", fingerprint::of_text(&numbers.collect::<String>()));
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        serde_json::to_writer(&mut file, self)?;
        file.persist(directory.join(name))?;
        let mut all = stored(directory)?;
        let more = all.len().saturating_sub(MOST);
        for (_, path) in all.drain(..more) {
            std::fs::remove_file(path)?;
        }
        Ok(())
    }

    /// All that it has changed is as it left it.
    fn fits(&self, text: &dyn Fn(&Path) -> Option<Arc<str>>) -> bool {
        let mut files = self.files.iter();
        files.all(|file| text(&file.path).is_some_and(|text| fingerprint::of_text(&text) == file.after))
    }

    /// All that it has changed is in a workspace as it left it.
    pub fn was_last(&self, db: &dyn Db) -> bool {
        self.fits(&|path| text_of(db, path))
    }
}

impl Before {
    fn of(path: &Path, before: &str, after: &str) -> Before {
        Before {
            path: path.to_path_buf(),
            text: before.to_owned(),
            after: fingerprint::of_text(after),
        }
    }
}

/// The text of a file of the workspace.
fn text_of(db: &dyn Db, path: &Path) -> Option<Arc<str>> {
    let file = Workspace::try_get(db)?.files(db).get(path).copied()?;
    Some(file.text(db))
}

/// The steps that commands have kept, the last one at the end; none where they can't be read.
pub fn kept() -> Vec<Step> {
    directory().map_or_else(Vec::new, |directory| read(&directory))
}

/// What leads back from what steps have made of the function around a place: all those that have changed it, the last one first.
/// `None`: there is none, or somebody has edited one of the files.
pub fn back(db: &Database, steps: &[Step], path: &Path, place: TextRange) -> Option<SourceEdit> {
    let known = |path: &Path| text_of(db, path);
    let now = known(path)?;
    // Most programs are none that a rewrite has made: one number tells.
    let number = fingerprint::of_text(&now);
    let left_it = |step: &Step| step.files.iter().any(|file| file.path == path && file.after == number);
    if !steps.iter().any(left_it) {
        return None;
    }
    let function = function_at(db, Workspace::try_get(db)?.files(db).get(path).copied()?, place.start);
    let mut lines = match function {
        Some(function) => lines_of(
            &now,
            TextRange::new(function.start(db), function.start(db) + function.text(db).len() as u32),
        ),
        None => lines_of(&now, place),
    };
    let mut texts: BTreeMap<PathBuf, Arc<str>> = BTreeMap::new();
    // Each step leads to another program: none is taken twice.
    let mut left: Vec<&Step> = steps.iter().collect();
    loop {
        let now = |path: &Path| texts.get(path).cloned().or_else(|| known(path));
        let next = left.iter().rposition(|step| {
            let own = step.files.iter().find(|file| file.path == path);
            step.fits(&now)
                && own
                    .zip(now(path))
                    .is_some_and(|(own, now)| changes_lines(&own.text, &now, &lines))
        });
        let Some(index) = next else { break };
        let step = left.remove(index);
        texts.extend(
            step.files
                .iter()
                .map(|file| (file.path.clone(), file.text.as_str().into())),
        );
        // What the step has made is gone with it.
        let before = function.and_then(|function| lines_of_function(path, texts.get(path)?, function.name(db)));
        let Some(before) = before else { break };
        lines = before;
    }
    let edits = texts.into_iter().filter_map(|(path, text)| {
        let edits = edits(&known(&path)?, &text);
        (!edits.is_empty()).then_some((path, edits))
    });
    let edits: BTreeMap<PathBuf, Vec<TextEdit>> = edits.collect();
    (!edits.is_empty()).then(|| SourceEdit {
        edits,
        ..SourceEdit::default()
    })
}

/// What taking a step back takes for granted where something else has changed since.
pub fn others_need_nothing() -> Assumed {
    assumption::OTHER_EDITS.of(Reason {
        text: "what has changed in other files since then doesn't need the code as the rewrite left it".to_owned(),
        place: None,
    })
}

/// The lines of the first function of a text that has this name and a body.
fn lines_of_function(path: &Path, text: &str, name: &str) -> Option<Range<usize>> {
    let mut host = Host::new();
    let file = host.set_file(path, text);
    let db = host.db();
    let mut functions = items(db, file).functions.iter();
    let function = functions.find(|function| function.has_body(db) && function.name(db) == name)?;
    let start = function.start(db);
    Some(lines_of(
        text,
        TextRange::new(start, start + function.text(db).len() as u32),
    ))
}

/// The lines that a part of a text covers.
fn lines_of(text: &str, range: TextRange) -> Range<usize> {
    let line = |at: u32| text.get(..at as usize).map_or(0, |before| before.matches('\n').count());
    line(range.start)..line(range.end) + 1
}

/// One of the lines of a place is one that the last of these steps has changed in this file.
pub fn has_changed(db: &dyn Db, steps: &[Step], path: &Path, place: TextRange) -> bool {
    let Some(now) = text_of(db, path) else { return false };
    let number = fingerprint::of_text(&now);
    let lines = lines_of(&now, place);
    let own = |step: &Step| {
        step.files
            .iter()
            .find(|file| file.path == path && file.after == number)
            .cloned()
    };
    let last = steps.iter().rev().find_map(own);
    last.is_some_and(|last| changes_lines(&last.text, &now, &lines))
}

/// Whether some of these lines of the text after are new, or others stood between them before.
fn changes_lines(before: &str, after: &str, lines: &Range<usize>) -> bool {
    let diff = TextDiff::from_lines(before, after);
    diff.ops().iter().any(|op| {
        let new = op.new_range();
        let overlaps = new.start < lines.end && new.end > lines.start
            || new.is_empty() && lines.start < new.start && new.start < lines.end;
        overlaps && !matches!(op, DiffOp::Equal { .. })
    })
}

/// The edits that make one text of another, whole lines each.
fn edits(from: &str, to: &str) -> Vec<TextEdit> {
    let mut found: Vec<TextEdit> = Vec::new();
    let mut at = 0u32;
    for change in TextDiff::from_lines(from, to).iter_all_changes() {
        let length = change.value().len() as u32;
        let (gone, insert) = match change.tag() {
            ChangeTag::Equal => {
                at += length;
                continue;
            }
            ChangeTag::Delete => (length, ""),
            ChangeTag::Insert => (0, change.value()),
        };
        match found.last_mut().filter(|last| last.range.end == at) {
            Some(last) => {
                last.range = TextRange::new(last.range.start, at + gone);
                last.insert.push_str(insert);
            }
            None => found.push(TextEdit {
                range: TextRange::new(at, at + gone),
                insert: insert.to_owned(),
            }),
        }
        at += gone;
    }
    found
}

fn is_header(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == HEADER_NAME)
}

fn directory() -> Option<PathBuf> {
    Some(state_directory::directory("rewrites")?.join("steps"))
}

/// The steps that are kept, the last one at the end; none where they can't be read.
fn read(directory: &Path) -> Vec<Step> {
    let stored = stored(directory).unwrap_or_default();
    let steps = stored.iter().filter_map(|(_, path)| {
        let text = std::fs::read_to_string(path).ok()?;
        let step: Step = serde_json::from_str(&text).ok()?;
        (step.version == VERSION).then_some(step)
    });
    steps.collect()
}

/// The files of steps, the oldest first.
fn stored(directory: &Path) -> std::io::Result<Vec<(std::time::SystemTime, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            found.push((entry.metadata()?.modified()?, path));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(before: &str, after: &str) -> Step {
        let change = Change {
            before: Some(before.into()),
            after: after.to_owned(),
        };
        let header = Change {
            before: None,
            after: "header".to_owned(),
        };
        let changes = BTreeMap::from([("/p/a.cu".into(), change), ("/p/gridfuse.cuh".into(), header)]);
        Step::of(&changes).unwrap_or(Step {
            version: 0,
            files: Vec::new(),
        })
    }

    #[test]
    fn a_step_fits_what_it_left() {
        let step = step("a\n", "b\n");
        assert_eq!(step.files.len(), 1);
        assert!(step.fits(&|_| Some("b\n".into())));
        assert!(!step.fits(&|_| Some("b \n".into())) && !step.fits(&|_| None));
    }

    #[test]
    fn lines_are_new_or_not() {
        let (before, after) = ("1\n2\n3\n4\n5\n", "0\n1\n2\n3a\n3b\n4\n5\n");
        // The first line of it is new, but isn't theirs.
        assert!(!changes_lines(before, after, &(5..7)));
        assert!(changes_lines(before, after, &(2..5)) && changes_lines(before, after, &(4..7)));
        assert!(changes_lines("1\n2\n3\n", "1\n3\n", &(0..2)));
    }

    #[test]
    fn functions_are_found_by_name() {
        let text = "__global__ void a();\n__global__ void b() {\n}\n__global__ void a() {\n    b<<<1, 1>>>();\n}\n";
        assert_eq!(lines_of_function("/p/a.cu".as_ref(), text, "a"), Some(3..6));
        assert_eq!(lines_of_function("/p/a.cu".as_ref(), text, "c"), None);
    }

    #[test]
    fn edits_are_of_whole_lines() {
        let (from, to) = ("1\n2\n3\n4\n", "1\nb\nc\n3\n4\n5\n");
        let mut text = from.to_owned();
        for edit in edits(from, to).iter().rev() {
            text.replace_range(edit.range.start as usize..edit.range.end as usize, &edit.insert);
        }
        assert_eq!(text, to);
        assert_eq!(edits(from, from), []);
    }

    #[test]
    fn the_last_steps_are_kept() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        for number in 0..MOST + 3 {
            step(&number.to_string(), &(number + 1).to_string()).keep_in(directory.path())?;
        }
        let kept = read(directory.path());
        assert_eq!(kept.len(), MOST);
        assert!(kept.contains(&step(&(MOST + 2).to_string(), &(MOST + 3).to_string())));
        std::fs::write(directory.path().join("broken.json"), "{")?;
        assert!(read(directory.path()).len() <= MOST);
        assert!(read(&directory.path().join("none")).is_empty());
        Ok(())
    }
}
