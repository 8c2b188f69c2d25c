//! The `gridfuse` command line as tests use it, and what they need around it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::Value;

use crate::workspace;

/// What a run of `gridfuse` gave.
#[derive(Debug, Clone)]
pub struct Run {
    /// The command line, for messages.
    pub command: String,
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Run {
    /// The output as JSON.
    ///
    /// # Panics
    /// When it is none.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.story()))
    }

    /// This run, whose exit code has to be `code`.
    ///
    /// # Panics
    /// When it is another one.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Run {
        assert_eq!(self.code, Some(code), "{}", self.story());
        self
    }

    /// Everything about the run.
    pub fn story(&self) -> String {
        format!(
            "{} gave {:?}\n--- stdout\n{}\n--- stderr\n{}",
            self.command, self.code, self.stdout, self.stderr
        )
    }
}

/// Runs `gridfuse` in a directory.
///
/// # Panics
/// When it can't be started.
#[track_caller]
pub fn gridfuse(directory: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(workspace::gridfuse_bin());
    command.current_dir(directory).args(arguments).stdin(Stdio::null());
    run_of(command.env("XDG_STATE_HOME", state_home()))
}

/// What gridfuse remembers in tests, instead of in the user's directory.
pub fn state_home() -> PathBuf {
    workspace::target_dir().join("test-state")
}

/// Runs `gridfuse` with this text on its standard input.
///
/// # Panics
/// When it can't be started.
#[track_caller]
pub fn gridfuse_reading(directory: &Path, arguments: &[&str], input: &[u8]) -> Run {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(input).expect("what is read");
    file.rewind().expect("the start");
    let mut command = Command::new(workspace::gridfuse_bin());
    command.current_dir(directory).args(arguments).stdin(file);
    run_of(command.env("XDG_STATE_HOME", state_home()))
}

/// Runs a command to its end.
///
/// # Panics
/// When it can't be started.
#[track_caller]
pub fn run_of(command: &mut Command) -> Run {
    let output = command.output().expect("it starts");
    let arguments: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    Run {
        command: format!("gridfuse {}", arguments.join(" ")),
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A temporary directory with these files. Its path is a real one, without links.
///
/// # Panics
/// When the disk says no.
pub fn directory(files: &[(&str, &[u8])]) -> Directory {
    let directory = Directory::new();
    for (name, content) in files {
        directory.write(name, content);
    }
    directory
}

/// A temporary directory.
#[derive(Debug)]
pub struct Directory {
    _own: tempfile::TempDir,
    path: PathBuf,
}

impl Directory {
    /// An empty one.
    #[allow(clippy::new_without_default, reason = "it makes a directory")]
    pub fn new() -> Directory {
        let own = tempfile::tempdir().expect("a temporary directory");
        let path = own.path().canonicalize().expect("its real path");
        Directory { _own: own, path }
    }

    /// A copy of `from`, with all that is in it.
    pub fn copy_of(from: &Path) -> Directory {
        let directory = Directory::new();
        copy(from, &directory.path);
        directory
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file, with the directories above it.
    pub fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.file(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(&path, content).expect("a file");
        path
    }

    /// The text of a file in it.
    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        let path = self.file(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

/// Copies a directory's content.
///
/// # Panics
/// When the disk says no.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// All files under a directory as relative paths with `/`, sorted, and their bytes.
///
/// # Panics
/// When the disk says no.
pub fn files_of(directory: &Path) -> Vec<(String, Vec<u8>)> {
    fn collect(root: &Path, directory: &Path, found: &mut Vec<(String, Vec<u8>)>) {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                collect(root, &path, found);
            } else {
                let name = path.strip_prefix(root).expect("a path below").to_string_lossy();
                found.push((name.replace('\\', "/"), fs::read(&path).expect("a file")));
            }
        }
    }
    let mut found = Vec::new();
    collect(directory, directory, &mut found);
    found.sort();
    found
}

/// Does `work` for every item on two threads, and returns the results in the items' order. A panic of one of them is a panic here.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = Mutex::new(0);
    let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let index = {
                        let mut next = next.lock().unwrap_or_else(|poison| poison.into_inner());
                        *next += 1;
                        *next - 1
                    };
                    let Some(item) = items.get(index) else { return };
                    let result = work(item);
                    let mut results = results.lock().unwrap_or_else(|poison| poison.into_inner());
                    results.push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(|poison| poison.into_inner());
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
