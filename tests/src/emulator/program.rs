//! The texts of a CUDA program: its translation units and what they include.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use gridfuse_codeactions::runtime::HEADER;

use super::translate::include_of_line;

/// The runtime header in this repository, which includes its parts: a program gets it as a project would.
const RUNTIME: &str = "codeactions/runtime/gridfuse.cuh";

/// A program's own files. Paths are relative to a root that need not exist; they name the files in messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    files: BTreeMap<PathBuf, Arc<str>>,
    units: Vec<PathBuf>,
    include_dirs: Vec<PathBuf>,
}

impl Program {
    /// A program of one translation unit that includes nothing of its own so far.
    pub fn new(unit: impl AsRef<Path>, text: impl Into<Arc<str>>) -> Program {
        let unit = normal(unit.as_ref());
        Program {
            files: BTreeMap::from([(unit.clone(), text.into())]),
            units: vec![unit],
            include_dirs: Vec::new(),
        }
    }

    /// Reads translation units under `root` and, recursively, what they include by quoted names. An included file that
    /// isn't found is left to the compiler: it may be a header of CUDA's.
    pub fn load(root: &Path, units: &[impl AsRef<Path>], include_dirs: &[impl AsRef<Path>]) -> io::Result<Program> {
        let mut program = Program {
            include_dirs: include_dirs.iter().map(|dir| normal(dir.as_ref())).collect(),
            ..Program::default()
        };
        let mut wanted = Vec::new();
        for unit in units {
            let unit = normal(unit.as_ref());
            program.files.insert(unit.clone(), read(&root.join(&unit))?);
            program.units.push(unit.clone());
            wanted.push(unit);
        }
        while let Some(path) = wanted.pop() {
            let Some(text) = program.files.get(&path).cloned() else {
                continue;
            };
            for (name, quoted) in text.lines().filter_map(include_of_line) {
                for candidate in program.candidates(&path, name, quoted) {
                    if program.files.contains_key(&candidate) {
                        break;
                    }
                    let there = root.join(&candidate);
                    if there.is_file() {
                        let text = match candidate.ends_with(RUNTIME) {
                            true => HEADER.clone(),
                            false => read(&there)?,
                        };
                        program.files.insert(candidate.clone(), text);
                        wanted.push(candidate);
                        break;
                    }
                }
            }
        }
        Ok(program)
    }

    /// The same program with one more file, or with another text for a file that it has.
    pub fn with_file(mut self, path: impl AsRef<Path>, text: impl Into<Arc<str>>) -> Program {
        self.files.insert(normal(path.as_ref()), text.into());
        self
    }

    /// The translation units.
    pub fn units(&self) -> &[PathBuf] {
        &self.units
    }

    /// All files with their texts.
    pub fn files(&self) -> &BTreeMap<PathBuf, Arc<str>> {
        &self.files
    }

    /// Where `#include <…>` of the program's own files looks, and quoted names after the including file's directory.
    pub fn include_dirs(&self) -> &[PathBuf] {
        &self.include_dirs
    }

    /// The file of the program that an `#include` in `from` means.
    pub fn included(&self, from: &Path, name: &str, quoted: bool) -> Option<&Path> {
        let candidates = self.candidates(from, name, quoted);
        let found = candidates.iter().find_map(|path| self.files.get_key_value(path));
        found.map(|(path, _)| path.as_path())
    }

    fn candidates(&self, from: &Path, name: &str, quoted: bool) -> Vec<PathBuf> {
        let beside = quoted.then(|| from.parent().unwrap_or(Path::new("")));
        let places = beside.into_iter().chain(self.include_dirs.iter().map(PathBuf::as_path));
        places.map(|place| normal(&place.join(name))).collect()
    }
}

fn read(path: &Path) -> io::Result<Arc<str>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.into()),
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
    }
}

/// The path without `.` and without `name/..`.
fn normal(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(found.components().next_back(), Some(Component::Normal(_))) => {
                found.pop();
            }
            part => found.push(part),
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::cli::directory;

    #[test]
    fn includes_are_read_recursively() {
        let files: [(&str, &[u8]); 4] = [
            (
                "src/main.cu",
                b"#include \"../inc/a.cuh\"\n#include <b.cuh>\n#include <vector>\n",
            ),
            ("inc/a.cuh", b"  #  include \"c.cuh\" // c\n"),
            ("inc/c.cuh", b"#include \"missing.h\"\n"),
            ("other/b.cuh", b""),
        ];
        let directory = directory(&files);
        let program = Program::load(directory.path(), &["src/main.cu"], &["other"]).unwrap();
        let names: Vec<_> = program.files().keys().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(names, ["inc/a.cuh", "inc/c.cuh", "other/b.cuh", "src/main.cu"]);
        let main = &program.units()[0];
        assert_eq!(program.included(main, "b.cuh", false), Some(Path::new("other/b.cuh")));
        assert_eq!(program.included(main, "c.cuh", false), None);
        assert_eq!(
            program.included(main, "../inc/a.cuh", true),
            Some(Path::new("inc/a.cuh"))
        );
    }

    #[test]
    fn a_missing_unit_is_named() {
        let error = Program::load(Path::new("nowhere"), &["x.cu"], &[""; 0]).unwrap_err();
        assert!(error.to_string().contains("x.cu"), "{error}");
    }

    #[test]
    fn normal_paths() {
        assert_eq!(normal(Path::new("a/./b/../../../c")), Path::new("../c"));
    }
}
