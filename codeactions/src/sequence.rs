//! Applies rewrites one after the other, each to the result of the one before, as one edit.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use gridfuse_analysis::db::{Db, Host, SourceFile, Workspace};
use gridfuse_analysis::items::items;
use gridfuse_analysis::launch::{LaunchId, Launchers, launches};
use gridfuse_analysis::span::{FileRange, TextRange};

use crate::edit::{SourceEdit, TextEdit, apply_to_text, map_range};
use crate::rewrite::{Ineligible, Options, Reason, Rewrite};
use crate::site::refuse;

/// A launch in a copy of the workspace, to which rewrites are applied.
pub struct Sequence<'db> {
    db: &'db dyn Db,
    host: Host,
    /// The file with the launch.
    path: PathBuf,
    /// Where the launch, or what it has become, stands now.
    target: TextRange,
    /// Where it stood.
    origin: FileRange,
    /// The kernel that it launched.
    child: Option<String>,
    creates: BTreeMap<PathBuf, String>,
    assumptions: Vec<Reason>,
    steps: usize,
}

impl<'db> Sequence<'db> {
    /// The launch as it is.
    pub fn new(db: &'db dyn Db, launch: LaunchId<'db>) -> Result<Sequence<'db>, Ineligible> {
        let gone = || refuse("there is no such launch any more", None);
        let function = launch.function;
        let file = function.file(db);
        let facts = launches(db, function).get(launch.index as usize).ok_or_else(gone)?;
        let target = facts.span.shift(function.start(db));
        Ok(Sequence {
            db,
            host: copy_of(db).ok_or_else(gone)?,
            path: file.path(db).to_path_buf(),
            target,
            origin: FileRange { file, range: target },
            child: facts.kernel_name.as_deref().map(without_arguments).map(str::to_owned),
            creates: BTreeMap::new(),
            assumptions: Vec::new(),
            steps: 0,
        })
    }

    /// Applies one more rewrite; where it can't be, everything stays as it is.
    pub fn then(&mut self, rewrite: &Rewrite, options: &Options) -> Result<(), Ineligible> {
        let edit = {
            let db = self.host.db();
            let file = self.host.file(&self.path);
            let launch = file.and_then(|file| launch_at(db, file, self.target));
            let launch = launch.ok_or_else(|| refuse("no launch is left", Some(self.origin)))?;
            let facts = launches(db, launch.function).get(launch.index as usize);
            let child = facts.and_then(|facts| facts.kernel_name.as_deref());
            match (rewrite.apply)(db, launch, options) {
                Ok(edit) => SourceEdit {
                    assumptions: self.here(&edit.assumptions, child),
                    ..edit
                },
                Err(Ineligible(reasons)) => return Err(Ineligible(self.here(&reasons, child))),
            }
        };
        let unfit = || refuse("the edits of the steps don't fit together", Some(self.origin));
        let mut texts = Vec::new();
        for (path, edits) in &edit.edits {
            let before = self.host.file(path).map(|f| f.text(self.host.db())).ok_or_else(unfit)?;
            texts.push((path.clone(), apply_to_text(path, &before, edits).map_err(|_| unfit())?));
        }
        if let Some(edits) = edit.edits.get(&self.path) {
            self.target = map_range(self.target, edits);
        }
        for (path, text) in texts.into_iter().chain(edit.creates.clone()) {
            self.host.set_file(&path, text);
        }
        self.creates.extend(edit.creates);
        for reason in edit.assumptions {
            if !self.assumptions.iter().any(|known| known.text == reason.text) {
                self.assumptions.push(reason);
            }
        }
        self.steps += 1;
        Ok(())
    }

    /// Reasons with places, lines and the child's name in the workspace itself: later steps speak of texts that nobody has seen.
    /// `child`: the kernel that is launched now.
    fn here(&self, reasons: &[Reason], child: Option<&str>) -> Vec<Reason> {
        let renamed = child.map(without_arguments).zip(self.child.as_deref());
        let renamed = renamed.map(|(now, before)| (format!("`{now}`"), format!("`{before}`")));
        let lines = if self.steps > 0 { self.lines() } else { BTreeMap::new() };
        let files = Workspace::try_get(self.db)
            .map(|w| w.files(self.db))
            .unwrap_or_default();
        let place = |place: FileRange| {
            if self.steps > 0 {
                return Some(self.origin);
            }
            let file = *files.get(place.file.path(self.host.db()))?;
            Some(FileRange { file, ..place })
        };
        let map = |reason: &Reason| Reason {
            text: match self.steps {
                0 => reason.text.clone(),
                _ => {
                    let text = with_lines(&reason.text, &lines);
                    match &renamed {
                        Some((now, before)) => text.replace(now, before),
                        None => text,
                    }
                }
            },
            place: reason.place.and_then(place),
        };
        reasons.iter().map(map).collect()
    }

    /// The numbers of the lines that have stayed the same: as they are now, and as they were.
    fn lines(&self) -> BTreeMap<usize, usize> {
        let now = self.host.file(&self.path).map(|file| file.text(self.host.db()));
        let before = self.origin.file.text(self.db);
        let now = now.unwrap_or_else(|| before.clone());
        let (old, new): (Vec<&str>, Vec<&str>) = (
            before.split_inclusive('\n').collect(),
            now.split_inclusive('\n').collect(),
        );
        anchors(&old, &new)
            .into_iter()
            .map(|(old, new)| (new + 1, old + 1))
            .collect()
    }

    /// All steps as one edit.
    pub fn finish(self) -> SourceEdit {
        SourceEdit {
            edits: edit_between(self.db, &self.host),
            creates: self.creates,
            assumptions: self.assumptions,
        }
    }
}

/// The name of a template's instance.
fn without_arguments(name: &str) -> &str {
    name.split('<').next().unwrap_or(name).trim_end()
}

/// A workspace of its own with the same files.
pub fn copy_of(db: &dyn Db) -> Option<Host> {
    let workspace = Workspace::try_get(db)?;
    let mut host = Host::new();
    host.set_include_dirs(workspace.include_dirs(db).as_ref().clone());
    host.set_settings(workspace.settings(db).as_ref().clone());
    host.set_commands(workspace.commands(db).as_ref().clone());
    let files = workspace.files(db);
    let texts: Vec<(PathBuf, Arc<str>)> = files.iter().map(|(p, f)| (p.clone(), f.text(db))).collect();
    host.set_files(texts);
    Some(host)
}

/// The edits that make of the files of `db` what they are in `host`.
pub fn edit_between(db: &dyn Db, host: &Host) -> BTreeMap<PathBuf, Vec<TextEdit>> {
    let files = Workspace::try_get(db).map(|w| w.files(db)).unwrap_or_default();
    let mut edits = BTreeMap::new();
    for (path, file) in files.iter() {
        let Some(now) = host.file(path) else { continue };
        let (before, after) = (file.text(db), now.text(host.db()));
        if before != after {
            edits.insert(path.clone(), difference(&before, &after));
        }
    }
    edits
}

/// A text with other numbers where it speaks of lines of the launch's file; of a line that wasn't there, it says so.
fn with_lines(text: &str, lines: &BTreeMap<usize, usize>) -> String {
    let mut pieces = text.split("line ");
    let mut result = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let digits = piece.len() - piece.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = piece.split_at(digits);
        // Not a part of a longer word.
        let is_word = !result.ends_with(|c: char| c.is_alphanumeric());
        result += &match number.parse::<usize>() {
            // `line 12 of kernels.cuh` is another file's.
            Ok(now) if is_word && !rest.starts_with(" of ") => match lines.get(&now) {
                Some(before) => format!("line {before}"),
                None => format!("line {now} of the rewritten code"),
            },
            _ => format!("line {number}"),
        };
        result += rest;
    }
    result
}

fn launch_at<'a>(db: &'a dyn Db, file: SourceFile, target: TextRange) -> Option<LaunchId<'a>> {
    let mut found = None;
    for function in items(db, file).functions.iter().filter(|f| f.has_body(db)) {
        for (index, facts) in launches(db, *function).iter().enumerate() {
            let range = facts.span.shift(function.start(db));
            let overlaps = range.start < target.end && target.start < range.end;
            if facts.launchers == Launchers::Host || !overlaps {
                continue;
            }
            let id = LaunchId {
                function: *function,
                index: index as u32,
            };
            if range == target {
                return Some(id);
            }
            found = found.or(Some(id));
        }
    }
    found
}

/// The edits that make `after` of `before`: whole lines, found from both ends and, in between, by lines that occur once in both.
pub fn difference(before: &str, after: &str) -> Vec<TextEdit> {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let mut edits = Vec::new();
    let mut at = 0;
    let mut next = 0;
    let mut offset = 0;
    for (old_line, new_line) in anchors(&old, &new).into_iter().chain([(old.len(), new.len())]) {
        let removed: usize = old[at..old_line].iter().map(|l| l.len()).sum();
        let inserted = new[next..new_line].concat();
        if removed > 0 || !inserted.is_empty() {
            let range = TextRange::new(offset as u32, (offset + removed) as u32);
            edits.push(TextEdit {
                range,
                insert: inserted,
            });
        }
        offset += removed + old.get(old_line).map_or(0, |l| l.len());
        (at, next) = (old_line + 1, new_line + 1);
    }
    edits
}

/// Lines that are the same in both, in order: those at the beginning and the end, and a longest chain of those that occur once.
fn anchors(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let front = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - front;
    let back = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(rest)
        .take_while(|(a, b)| a == b)
        .count();
    let mut count: BTreeMap<&str, (usize, usize, usize, usize)> = BTreeMap::new();
    for (index, line) in old.iter().enumerate().take(old.len() - back).skip(front) {
        let entry = count.entry(line).or_default();
        (entry.0, entry.2) = (entry.0 + 1, index);
    }
    for (index, line) in new.iter().enumerate().take(new.len() - back).skip(front) {
        let entry = count.entry(line).or_default();
        (entry.1, entry.3) = (entry.1 + 1, index);
    }
    let once = count.values().filter(|(a, b, ..)| *a == 1 && *b == 1);
    let mut pairs: Vec<(usize, usize)> = once.map(|(_, _, old, new)| (*old, *new)).collect();
    pairs.sort_unstable();
    // The longest chain that ascends in both.
    let mut best: Vec<(usize, Option<usize>)> = Vec::new();
    for (index, (_, new)) in pairs.iter().enumerate() {
        let before = (0..index).filter(|b| pairs[*b].1 < *new).max_by_key(|b| best[*b].0);
        best.push((before.map_or(1, |b| best[b].0 + 1), before));
    }
    let mut chain = Vec::new();
    let mut last = (0..best.len()).max_by_key(|b| best[*b].0);
    while let Some(index) = last {
        chain.push(pairs[index]);
        last = best[index].1;
    }
    chain.reverse();
    let first = (0..front).map(|i| (i, i));
    let end = (0..back).map(|i| (old.len() - back + i, new.len() - back + i));
    first.chain(chain).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn lines_of_the_original() {
        let lines = BTreeMap::from([(12, 7)]);
        for (text, wanted) in [
            (
                "line 12 writes `*out`, line 13 reads it",
                "line 7 writes `*out`, line 13 of the rewritten code reads it",
            ),
            (
                "an underline 12, a line of code; line 12",
                "an underline 12, a line of code; line 7",
            ),
            ("the guideline line", "the guideline line"),
            ("line 12 of a.cuh", "line 12 of a.cuh"),
        ] {
            assert_eq!(with_lines(text, &lines), wanted);
        }
    }

    #[test]
    fn differences() {
        for (before, after, edits) in [
            ("a\nb\nc\n", "a\nb\nc\n", 0),
            ("a\nb\nc\n", "a\nx\nc\n", 1),
            ("a\nb\nc\nd\ne\n", "x\nb\nc\ny\ne", 2),
            ("a\na\nb\n", "a\nb\na\nb\n", 1),
            ("", "a\n", 1),
            ("a\n", "", 1),
            ("a\nb\nc\nd\n", "c\nd\na\nb\n", 2),
        ] {
            let found = difference(before, after);
            assert_eq!(found.len(), edits, "{before:?} {after:?} {found:?}");
            let result = apply_to_text(Path::new("/a"), before, &found);
            assert_eq!(result.as_deref(), Ok(after));
        }
    }
}
