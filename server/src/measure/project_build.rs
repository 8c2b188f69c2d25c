//! Building a program by the project's own command, in a copy of the project.
//!
//! nvcc reads more flags from the environment variable `NVCC_APPEND_FLAGS`: that is how the program comes to measure itself,
//! whichever tool calls nvcc.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ignore::WalkBuilder;

use super::build::BuildFailure;
use super::build_messages;
use super::place::Place;
use crate::files::is_build_directory;
use crate::manifest::ProjectBuild;

/// Larger projects aren't copied: there are two copies for each variant.
const MOST_BYTES: u64 = 512 << 20;

/// Copies the project below `scratch`, with `texts` in place of what is in the files, and runs its command there. Returns the
/// program, or what the command said.
pub fn build(
    place: &Place,
    build: &ProjectBuild,
    nvcc: &Path,
    texts: &BTreeMap<PathBuf, String>,
    header: &Path,
    scratch: &Path,
    limit: Duration,
) -> Result<PathBuf, BuildFailure> {
    let tree = scratch.join("project");
    copy(&build.root, &tree)?;
    for (path, text) in texts {
        let Ok(below) = path.strip_prefix(&build.root) else {
            continue;
        };
        let copy = tree.join(below);
        let written = copy
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&copy, text));
        written.map_err(|error| format!("cannot write {}: {error}", copy.display()))?;
    }
    let mut command = shell(&build.command);
    command.current_dir(&tree);
    let header = header.display().to_string();
    if header.contains(char::is_whitespace) {
        return Err(format!("nvcc's flags can't hold the path {header}: set TMPDIR to one without spaces").into());
    }
    let before = std::env::var("NVCC_APPEND_FLAGS").unwrap_or_default();
    command.env("NVCC_APPEND_FLAGS", format!("{before} -include {header}").trim());
    // The command finds the same nvcc.
    if let Some(directory) = nvcc.parent() {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(directory.to_path_buf()).chain(std::env::split_paths(&others));
        if let Ok(path) = std::env::join_paths(all) {
            command.env("PATH", path);
        }
    }
    let done = place
        .run(&mut command, scratch, limit, Some(&tree), &[])
        .map_err(|error| format!("the command `{}` cannot be run: {error}", build.command))?;
    if done.status.is_none() {
        return Err(format!("`{}` did not finish in {} s", build.command, limit.as_secs()).into());
    }
    let program = tree.join(&build.program);
    if done.success() && place.is_file(&program) {
        return Ok(program);
    }
    if done.success() {
        let message = format!("`{}` has made no {}", build.command, build.program.display());
        return Err(message.into());
    }
    let real = |path: &Path| match path.strip_prefix(&tree) {
        Ok(below) => build.root.join(below),
        // As the compiler was given it: from the directory in which the command runs, mostly.
        Err(_) if path.is_relative() && tree.join(path).is_file() => build.root.join(path),
        Err(_) => path.to_path_buf(),
    };
    let mut messages = build_messages::parse(&done.stderr);
    for message in &mut messages {
        message.path = real(&message.path);
    }
    let copied = tree.display().to_string();
    let original = build.root.display().to_string();
    Err(BuildFailure {
        message: done.last_words().replace(&copied, &original),
        messages,
    })
}

#[cfg(unix)]
fn shell(line: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]);
    command
}

#[cfg(not(unix))]
fn shell(line: &str) -> Command {
    let mut command = Command::new("cmd");
    command.args(["/C", line]);
    command
}

/// Copies what belongs to a project: neither what it ignores nor what builds have made. Hidden files are copied.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("cannot copy {}: {error}", path.display());
    let mut bytes = 0;
    let walk = WalkBuilder::new(from)
        .hidden(false)
        .filter_entry(|entry| {
            let directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            let git = entry.file_name() == ".git";
            entry.depth() == 0 || !(directory && (git || is_build_directory(entry.file_name())))
        })
        .build();
    for entry in walk.filter_map(Result::ok) {
        let Ok(below) = entry.path().strip_prefix(from) else {
            continue;
        };
        let target = to.join(below);
        if entry.path().is_dir() {
            std::fs::create_dir_all(&target).map_err(|error| failed(entry.path(), error))?;
        } else if entry.path().is_file() {
            bytes += std::fs::copy(entry.path(), &target).map_err(|error| failed(entry.path(), error))?;
            if bytes > MOST_BYTES {
                return Err(format!(
                    "{} is larger than {} MiB: what the build doesn't need can be named in .gitignore",
                    from.display(),
                    MOST_BYTES >> 20
                ));
            }
        }
    }
    Ok(())
}
