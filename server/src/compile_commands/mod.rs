//! `compile_commands.json`: how each file of a project is compiled.

mod flags;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::command::CompileCommand;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::files::{self, MAX_NAMED_BYTES, normalize};
use crate::line_index::LineIndex;
use crate::manifest::ManifestError;

/// Its name.
pub const NAME: &str = "compile_commands.json";

/// The commands of a project by file, and what could not be understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompileCommands {
    /// The file that they come from.
    pub path: Option<PathBuf>,
    /// By absolute path.
    pub commands: BTreeMap<PathBuf, Vec<Arc<CompileCommand>>>,
    /// What is wrong in it, with places.
    pub problems: Vec<ManifestError>,
}

#[derive(Deserialize)]
struct Entry {
    directory: PathBuf,
    file: PathBuf,
    command: Option<String>,
    arguments: Option<Vec<String>>,
}

/// The `compile_commands.json` of a directory or of the nearest one above it that has one: in it, or in its `build*/`.
pub fn find(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().find_map(|directory| {
        let own = directory.join(NAME);
        if own.is_file() {
            return Some(own);
        }
        let mut builds: Vec<PathBuf> = std::fs::read_dir(directory)
            .ok()?
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with("build")))
            .map(|entry| entry.path().join(NAME))
            .filter(|path| path.is_file())
            .collect();
        builds.sort();
        builds.into_iter().next()
    })
}

/// The file that a path names: the file, or the directory that it is in.
pub fn file_at(path: &Path) -> PathBuf {
    if path.is_dir() {
        path.join(NAME)
    } else {
        path.to_path_buf()
    }
}

/// Reads a file.
pub fn read(path: &Path) -> CompileCommands {
    match files::read(path, MAX_NAMED_BYTES) {
        Ok(text) => parse(path, &text),
        Err(error) => CompileCommands {
            path: Some(path.to_path_buf()),
            commands: BTreeMap::new(),
            problems: vec![ManifestError {
                path: path.to_path_buf(),
                position: None,
                message: format!("cannot read it: {error}"),
            }],
        },
    }
}

/// Understands the text of the file at `path`. What is wrong in one entry leaves the others alone.
pub fn parse(path: &Path, text: &str) -> CompileCommands {
    let mut found = CompileCommands {
        path: Some(path.to_path_buf()),
        ..CompileCommands::default()
    };
    let lines = LineIndex::new(text);
    let problem = |line: u32, column: u32, message: String| ManifestError {
        path: path.to_path_buf(),
        position: Some((line.max(1), column.max(1))),
        message,
    };
    // The part behind ` at line …` says what the position says.
    let what = |error: &serde_json::Error| {
        let text = error.to_string();
        text.split(" at line ").next().unwrap_or(&text).to_owned()
    };
    let entries: Vec<&RawValue> = match serde_json::from_str(text) {
        Ok(entries) => entries,
        Err(error) => {
            let (line, column) = (error.line() as u32, error.column() as u32);
            found.problems.push(problem(line, column, what(&error)));
            return found;
        }
    };
    let home = path.parent().unwrap_or(Path::new(""));
    for raw in entries {
        // The raw value borrows from `text`.
        let start = (raw.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        let (line, column) = lines.line_column(start as u32);
        let entry: Entry = match serde_json::from_str(raw.get()) {
            Ok(entry) => entry,
            Err(error) => {
                let (inner_line, inner_column) = (error.line().max(1) as u32, error.column() as u32);
                let column = if inner_line == 1 {
                    column + inner_column
                } else {
                    inner_column
                };
                found.problems.push(problem(line + inner_line, column, what(&error)));
                continue;
            }
        };
        let mut wrong = |message: String| found.problems.push(problem(line + 1, column + 1, message));
        let words = match (entry.arguments, entry.command) {
            (Some(arguments), _) => arguments,
            (None, Some(command)) => match shlex::split(&command) {
                Some(words) => words,
                None => {
                    wrong(format!(
                        "a quote is not closed in the command of {}",
                        entry.file.display()
                    ));
                    continue;
                }
            },
            (None, None) => {
                wrong(format!(
                    "{} has neither `command` nor `arguments`",
                    entry.file.display()
                ));
                continue;
            }
        };
        let directory = normalize(&home.join(&entry.directory));
        let file = normalize(&directory.join(&entry.file));
        let (command, problems) = flags::parse(&directory, words);
        for message in problems {
            wrong(format!("{}: {message}", entry.file.display()));
        }
        let command = Arc::new(command);
        let commands = found.commands.entry(real(&file)).or_default();
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    found
}

/// Files are known by their real paths; one that doesn't exist is taken as written.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfuse_analysis::base::command::MacroFlag;

    fn parsed(text: &str) -> CompileCommands {
        parse(Path::new("/none/build/compile_commands.json"), text)
    }

    fn positions(text: &str) -> Vec<(u32, u32)> {
        parsed(text).problems.iter().filter_map(|p| p.position).collect()
    }

    #[test]
    fn arguments_and_commands() {
        let found = parsed(
            r#"[{"directory": "/none/build", "file": "../a.cu", "command": "nvcc -DX='a b' -c ../a.cu"},
                {"directory": ".", "file": "/none/b.cu", "arguments": ["nvcc", "-DY", "-Iinc"], "output": "b.o"},
                {"directory": "/none/build", "file": "../a.cu", "command": "nvcc -DZ -c ../a.cu"},
                {"directory": "/none/build", "file": "../a.cu", "command": "nvcc -DZ -c ../a.cu"}]"#,
        );
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        let a = &found.commands[Path::new("/none/a.cu")];
        assert_eq!(a.len(), 2);
        assert_eq!(a[0].macros, [MacroFlag::Define("X a b".to_owned())]);
        let b = &found.commands[Path::new("/none/b.cu")];
        assert_eq!(b[0].include_dirs, [PathBuf::from("/none/build/inc")]);
    }

    #[test]
    fn mistakes_have_a_place_and_leave_the_others_alone() {
        assert_eq!(positions("[{]"), [(1, 3)]);
        assert_eq!(positions("{}"), [(1, 1)]);
        assert_eq!(positions(""), [(1, 1)]);
        let text = "[\n  {\"directory\": \"/none\",\n   \"file\": 3},\n  {\"directory\": \"/none\", \"file\": \"a.cu\"},\n  \
                    {\"directory\": \"/none\", \"file\": \"b.cu\", \"command\": \"nvcc 'x\"},\n  \
                    {\"directory\": \"/none\", \"file\": \"c.cu\", \"command\": \"nvcc -rdc=x\"}]";
        assert_eq!(positions(text), [(3, 12), (4, 3), (5, 3), (6, 3)]);
        assert_eq!(parsed(text).commands.len(), 1);
    }

    #[test]
    fn is_found_in_build_directories() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let source = dir.path().join("src/deep");
        std::fs::create_dir_all(&source)?;
        assert_eq!(find(&source).filter(|p| p.starts_with(dir.path())), None);
        let build = dir.path().join("build-release").join(NAME);
        std::fs::create_dir_all(dir.path().join("build-release"))?;
        std::fs::write(&build, "[]")?;
        assert_eq!(find(&source), Some(build));
        std::fs::write(dir.path().join(NAME), "[]")?;
        assert_eq!(find(&source), Some(dir.path().join(NAME)));
        Ok(())
    }
}
