//! Which programs rewrites have made of which. `revert` can't see whether code was added since that relies on how things run now; where the
//! program is still what a rewrite has made, and becomes what it was made of, there is nothing to take for granted.
//!
//! Programs are known by numbers for the code of all files of the workspace, comments and white space aside, so that nothing at all can
//! have been edited.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::db::{Db, Workspace};
use gridfuse_codeactions::api::source_edit::{SourceEdit, apply_to_text};
use gridfuse_codeactions::runtime::Installed;

use crate::measure::fingerprint;
use crate::measure::state_directory;

/// No more than these are remembered: the last ones.
const MOST: usize = 2_048;

/// The file in which commands remember steps is written anew when it has more bytes.
const MOST_BYTES: u64 = 256 * 1024;

/// Steps from a program to what a rewrite made of it, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    steps: Vec<(u64, u64)>,
}

impl Made {
    /// What commands have remembered; nothing where that can't be read.
    pub fn read() -> Made {
        path().map_or_else(Made::default, |path| Made::read_from(&path))
    }

    fn read_from(path: &Path) -> Made {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut made = Made {
            steps: text.lines().filter_map(step).collect(),
        };
        made.forget_the_first();
        made
    }

    /// Remembers a step.
    pub fn remember(&mut self, before: u64, after: u64) {
        if before != after && !self.steps.contains(&(before, after)) {
            self.steps.push((before, after));
            self.forget_the_first();
        }
    }

    fn forget_the_first(&mut self) {
        let more = self.steps.len().saturating_sub(MOST);
        self.steps.drain(..more);
    }

    /// The program is what rewrites have made, and an edit leads back to what they have made it of.
    pub fn is_taken_back_by(&self, db: &dyn Db, edit: &SourceEdit) -> bool {
        if self.steps.is_empty() {
            return false;
        }
        let now = program(db, &BTreeMap::new());
        if !self.steps.iter().any(|(_, after)| *after == now) {
            return false;
        }
        after(db, edit).is_some_and(|after| self.leads(program(db, &after), now))
    }

    /// Rewrites have made the one program of the other, in some steps.
    fn leads(&self, before: u64, after: u64) -> bool {
        let mut reached = vec![after];
        let mut next = 0;
        while let Some(now) = reached.get(next).copied() {
            if now == before {
                return true;
            }
            next += 1;
            for (from, to) in &self.steps {
                if *to == now && !reached.contains(from) {
                    reached.push(*from);
                }
            }
        }
        false
    }
}

/// The step from the program to what an edit makes of it; `None`: it doesn't fit.
pub fn step_of(db: &dyn Db, edit: &SourceEdit) -> Option<(u64, u64)> {
    let after = after(db, edit)?;
    Some((program(db, &BTreeMap::new()), program(db, &after)))
}

/// Remembers a step for the next command. What can't be written is forgotten: then `revert` says what it assumes.
pub fn write(before: u64, after: u64) {
    if let Some(path) = path() {
        // Nobody needs to know.
        let _ = write_to(&path, before, after);
    }
}

/// One line for each step, at the end of what others have written meanwhile.
fn write_to(path: &Path, before: u64, after: u64) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(line(before, after).as_bytes())?;
    if file.metadata()?.len() <= MOST_BYTES {
        return Ok(());
    }
    let steps = Made::read_from(path).steps.into_iter();
    let text: String = steps.map(|(before, after)| line(before, after)).collect();
    let mut shorter = tempfile::NamedTempFile::new_in(directory)?;
    shorter.write_all(text.as_bytes())?;
    shorter.persist(path)?;
    Ok(())
}

fn line(before: u64, after: u64) -> String {
    format!("{before:016x} {after:016x}\n")
}

fn path() -> Option<PathBuf> {
    Some(state_directory::directory("rewrites")?.join("made"))
}

/// Understands a line of the file.
fn step(line: &str) -> Option<(u64, u64)> {
    let (before, after) = line.split_once(' ')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    Some((number(before)?, number(after)?))
}

/// The texts that an edit leaves behind; `None`: it doesn't fit.
fn after(db: &dyn Db, edit: &SourceEdit) -> Option<BTreeMap<PathBuf, Arc<str>>> {
    let files = Workspace::try_get(db)?.files(db);
    let mut texts = edit.creates.clone();
    for (path, list) in &edit.edits {
        let before = files.get(path)?.text(db);
        texts.insert(path.clone(), apply_to_text(path, &before, list).ok()?.into());
    }
    Some(texts)
}

/// The number of the program that a workspace holds, with these texts in the place of what it has. The runtime header says nothing, unless
/// somebody has edited it.
pub fn program(db: &dyn Db, texts: &BTreeMap<PathBuf, Arc<str>>) -> u64 {
    let files = Workspace::try_get(db).map(|workspace| workspace.files(db));
    let known = files.iter().flat_map(|files| files.iter());
    let known = known.filter(|(path, _)| !texts.contains_key(*path));
    let mut numbers: BTreeMap<&Path, u64> = known
        .filter(|(_, file)| !is_runtime(&file.text(db)))
        .map(|(path, file)| (path.as_path(), fingerprint::of_file(db, *file)))
        .collect();
    let new = texts.iter().filter(|(_, text)| !is_runtime(text));
    numbers.extend(new.map(|(path, text)| (path.as_path(), fingerprint::of_code(text))));
    let lines = numbers
        .iter()
        .map(|(path, number)| format!("{} {number:016x}\n", path.display()));
    fingerprint::of_text(&lines.collect::<String>())
}

fn is_runtime(text: &str) -> bool {
    text.contains("GRIDFUSE_") && Installed::read(text).is_some_and(|installed| installed.is_intact)
}

#[cfg(test)]
mod tests {
    use gridfuse_analysis::base::span::TextRange;
    use gridfuse_analysis::host::Host;
    use gridfuse_codeactions::api::source_edit::TextEdit;
    use gridfuse_codeactions::runtime::HEADER;

    use super::*;

    fn edit(length: usize, text: &str) -> SourceEdit {
        let whole = TextEdit {
            range: TextRange::new(0, length as u32),
            insert: text.to_owned(),
        };
        SourceEdit {
            edits: BTreeMap::from([(PathBuf::from("/p/a.cu"), vec![whole])]),
            creates: BTreeMap::from([(PathBuf::from("/p/gridfuse.cuh"), HEADER.clone())]),
            ..SourceEdit::default()
        }
    }

    #[test]
    fn what_nobody_touched_is_known() {
        let (plain, one, both) = ("int a;\n", "int a; int b;\n", "int a; int b; int c;\n");
        let mut host = Host::new();
        host.set_file("/p/a.cu".as_ref(), plain);
        host.set_file("/p/other.cu".as_ref(), "int other;\n");
        let mut made = Made::default();
        let mut remember = |host: &Host, edit: &SourceEdit| {
            let (before, after) = step_of(host.db(), edit).unwrap_or_default();
            made.remember(before, after);
        };
        remember(&host, &edit(plain.len(), one));
        host.set_file("/p/a.cu".as_ref(), one);
        host.set_file("/p/gridfuse.cuh".as_ref(), HEADER.clone());
        remember(&host, &edit(one.len(), both));
        host.set_file("/p/a.cu".as_ref(), both);
        let back = |host: &Host, text: &str| {
            let length = host
                .file("/p/a.cu".as_ref())
                .map_or(0, |file| file.text(host.db()).len());
            made.is_taken_back_by(host.db(), &edit(length, text))
        };
        // One step back, and two; spaces and comments aside.
        assert!(back(&host, one) && back(&host, plain) && back(&host, "int  a; // mine\n"));
        assert!(!back(&host, "int a; int c;\n"));
        // Somebody has edited it, another file, or the header.
        host.set_file("/p/a.cu".as_ref(), "int a; int b; int c = 1;\n");
        assert!(!back(&host, plain));
        host.set_file("/p/a.cu".as_ref(), both);
        assert!(back(&host, plain));
        host.set_file("/p/other.cu".as_ref(), "int another;\n");
        assert!(!back(&host, plain));
        host.set_file("/p/other.cu".as_ref(), "int other;\n");
        host.set_file("/p/gridfuse.cuh".as_ref(), format!("#define MINE\n{}", &**HEADER));
        assert!(!back(&host, plain));
    }

    #[test]
    fn commands_tell_each_other() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("rewrites/made");
        assert_eq!(Made::read_from(&path), Made::default());
        for number in 0..9_000 {
            write_to(&path, number, number + 1)?;
        }
        let length = std::fs::metadata(&path)?.len();
        assert!(length <= MOST_BYTES, "{length}");
        let made = Made::read_from(&path);
        assert!(made.leads(8_000, 9_000) && !made.leads(0, 9_000));
        Ok(())
    }

    #[test]
    fn the_last_steps_are_remembered() {
        let mut made = Made::default();
        for number in 0..MOST as u64 + 8 {
            made.remember(number, number + 1);
        }
        assert!(made.leads(8, 16) && !made.leads(7, 16) && !made.leads(16, 8));
        assert_eq!(step("00000000000000ff 1"), Some((255, 1)));
        assert_eq!(step("nonsense"), None);
    }
}
