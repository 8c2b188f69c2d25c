//! Applies rewrites one after the other, each to the result of the one before, as one edit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::db::{Db, SourceFile, Workspace};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::launch::{LaunchId, Launchers, launches};
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::host::Host;

use crate::api::assumption::Assumed;
use crate::api::copy::Copy;
use crate::api::refusal::Ineligible;
use crate::api::refusal::Reason;
use crate::api::refusal::refuse;
use crate::api::rewrite::{Options, Rewrite};
use crate::api::source_edit::SourceEdit;
use crate::api::source_edit::TextEdit;
use crate::api::source_edit::apply_to_text;
use crate::api::source_edit::map_range;

/// A launch to which rewrites are applied: the first one in the workspace itself, those behind it in a copy.
pub struct Sequence<'db> {
    db: &'db dyn Db,
    launch: LaunchId<'db>,
    /// What the first step does, as long as there is no other.
    first: Option<SourceEdit>,
    /// The copy, with what has been done so far. Made for the second step: most sequences end before it.
    copy: Option<Copy>,
    /// The file with the launch.
    path: PathBuf,
    /// Where the launch, or what it has become, stands now.
    target: TextRange,
    /// Where it stood.
    origin: FileRange,
    /// The kernel that it launched.
    child: Option<String>,
    creates: BTreeMap<PathBuf, Arc<str>>,
    assumptions: Vec<Assumed>,
    steps: usize,
    /// A step that assumes what the code contradicts is refused.
    only_what_fits: bool,
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
            launch,
            first: None,
            copy: None,
            path: file.path(db).to_path_buf(),
            target,
            origin: FileRange { file, range: target },
            child: facts.kernel_name.as_deref().map(without_arguments).map(str::to_owned),
            creates: BTreeMap::new(),
            assumptions: Vec::new(),
            steps: 0,
            only_what_fits: false,
        })
    }

    /// Begins with an edit that makes a launch of what stands at a place of a function, which has none there yet.
    pub fn of_place(db: &'db dyn Db, function: FunctionItem<'db>, place: FileRange, edit: SourceEdit) -> Sequence<'db> {
        Sequence {
            db,
            launch: LaunchId { function, index: 0 },
            first: Some(edit),
            copy: None,
            path: place.file.path(db).to_path_buf(),
            target: place.range,
            origin: place,
            child: None,
            creates: BTreeMap::new(),
            assumptions: Vec::new(),
            steps: 1,
            only_what_fits: false,
        }
    }

    /// Refuses each step that assumes what the code contradicts.
    pub fn only_what_fits(self) -> Sequence<'db> {
        Sequence {
            only_what_fits: true,
            ..self
        }
    }

    /// Begins with an edit that is no rewrite's.
    pub fn begin(&mut self, edit: SourceEdit) {
        self.first = Some(edit);
        self.steps = 1;
    }

    /// Applies one more rewrite; where it can't be, everything stays as it is.
    pub fn then(&mut self, rewrite: &'static Rewrite, options: &Options) -> Result<(), Ineligible> {
        if self.steps == 0 {
            self.first = Some(self.fitting(rewrite.edit(self.db, self.launch, options)?)?);
            self.steps = 1;
            return Ok(());
        }
        self.then_of(|db, launch, _| Ok((rewrite.edit(db, launch, options)?, ())))
    }

    /// The same behind another step, with what is worked out for the launch as it is now: the edit, and whatever else comes of it. The last
    /// argument makes reasons ones of the workspace itself.
    pub fn then_of<T>(
        &mut self,
        make: impl FnOnce(&dyn Db, LaunchId<'_>, &dyn Fn(&Reason) -> Reason) -> Result<(SourceEdit, T), Ineligible>,
    ) -> Result<T, Ineligible> {
        let origin = self.origin;
        let unfit = || refuse("the edits of the steps don't fit together", Some(origin));
        if let Some(first) = self.first.clone() {
            let mut copy = Copy::around(self.db, self.launch.function).ok_or_else(unfit)?;
            let target = perform(&mut copy.host, &self.path, self.target, &first);
            self.target = target.ok_or_else(unfit)?;
            self.copy = Some(copy);
            self.first = None;
            self.note(first);
        }
        let Some(Copy { host, .. }) = &self.copy else {
            return Err(unfit());
        };
        // The copy is another database, and a query of the first one may be running.
        let (edit, more) = salsa::attach_allow_change(host.db(), || self.next(host, make))?;
        let edit = self.fitting(edit)?;
        let target = self
            .copy
            .as_mut()
            .and_then(|copy| perform(&mut copy.host, &self.path, self.target, &edit));
        self.target = target.ok_or_else(unfit)?;
        self.note(edit);
        self.steps += 1;
        Ok(more)
    }

    /// The edit of a step, if it may be one.
    fn fitting(&self, edit: SourceEdit) -> Result<SourceEdit, Ineligible> {
        match self.only_what_fits {
            true => edit.unless_contradicted(),
            false => Ok(edit),
        }
    }

    /// What one more step does in the copy.
    fn next<T>(
        &self,
        host: &Host,
        make: impl FnOnce(&dyn Db, LaunchId<'_>, &dyn Fn(&Reason) -> Reason) -> Result<(SourceEdit, T), Ineligible>,
    ) -> Result<(SourceEdit, T), Ineligible> {
        let db = host.db();
        let file = host.file(&self.path);
        let launch = file.and_then(|file| launch_at(db, file, self.target));
        let launch = launch.ok_or_else(|| refuse("no launch is left", Some(self.origin)))?;
        let facts = launches(db, launch.function).get(launch.index as usize);
        let child = facts.and_then(|facts| facts.kernel_name.as_deref());
        let here = self.here(host, child);
        match make(db, launch, &here) {
            Ok((edit, more)) => {
                let assumptions = edit.assumptions.iter().map(|assumed| assumed.with(&here)).collect();
                Ok((SourceEdit { assumptions, ..edit }, more))
            }
            Err(Ineligible(reasons)) => Err(Ineligible(reasons.iter().map(here).collect())),
        }
    }

    /// Remembers what a step creates and takes for granted.
    fn note(&mut self, edit: SourceEdit) {
        self.creates.extend(edit.creates);
        for assumed in edit.assumptions {
            let is_known = |known: &Assumed| known.reason.text == assumed.reason.text;
            if !self.assumptions.iter().any(is_known) {
                self.assumptions.push(assumed);
            }
        }
    }

    /// Reasons of a step in the copy, with places, lines and the child's name in the workspace itself: later steps speak of texts
    /// that nobody has seen. `child`: the kernel that is launched now.
    fn here(&self, host: &Host, child: Option<&str>) -> impl Fn(&Reason) -> Reason {
        let renamed = child.map(without_arguments).zip(self.child.as_deref());
        let renamed = renamed.map(|(now, before)| (format!("`{now}`"), format!("`{before}`")));
        let (lines, origin) = (self.lines(host), self.origin);
        move |reason| {
            let text = with_lines(&reason.text, &lines);
            Reason {
                text: match &renamed {
                    Some((now, before)) => text.replace(now, before),
                    None => text,
                },
                place: reason.place.map(|_| origin),
            }
        }
    }

    /// The numbers of the lines that have stayed the same: as they are now, and as they were.
    fn lines(&self, host: &Host) -> BTreeMap<usize, usize> {
        let now = host.file(&self.path).map(|file| file.text(host.db()));
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
        match (self.first, self.copy) {
            (Some(only), _) => only,
            (None, Some(copy)) => SourceEdit {
                edits: copy.edits(),
                // A later step may have added to what an earlier one has created.
                creates: self
                    .creates
                    .into_keys()
                    .filter_map(|path| copy.text(&path).map(|text| (path.clone(), text)))
                    .collect(),
                assumptions: self.assumptions,
            },
            (None, None) => SourceEdit::default(),
        }
    }
}

/// Applies an edit to the files of a copy. The place of the launch behind it; `None`: the edit doesn't fit, and the copy is as it was.
fn perform(host: &mut Host, path: &Path, target: TextRange, edit: &SourceEdit) -> Option<TextRange> {
    let mut texts: Vec<(PathBuf, Arc<str>)> = Vec::new();
    for (path, edits) in &edit.edits {
        let before = host.file(path).map(|f| f.text(host.db()))?;
        texts.push((path.clone(), apply_to_text(path, &before, edits).ok()?.into()));
    }
    for (path, text) in texts.into_iter().chain(edit.creates.clone()) {
        host.set_file(&path, text);
    }
    Some(edit.edits.get(path).map_or(target, |edits| map_range(target, edits)))
}

/// The name of a template's instance.
fn without_arguments(name: &str) -> &str {
    name.split('<').next().unwrap_or(name).trim_end()
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
    let near = |function: &&FunctionItem<'_>| {
        let start = function.start(db);
        start < target.end && target.start < start + function.text(db).len() as u32
    };
    for function in items(db, file).functions.iter().filter(|f| f.has_body(db)).filter(near) {
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
