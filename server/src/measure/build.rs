//! Building a program in a scratch directory, beside its other variants and far from the user's files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::build_messages::{self, Message, real_path};
use super::place::Place;
use crate::manifest::ProjectBuild;

/// What nvcc is called with.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// nvcc.
    pub nvcc: PathBuf,
    /// Directories with its libraries where it may not look by itself.
    pub libraries: Vec<PathBuf>,
    /// `sm_90` or `native`.
    pub arch: String,
    /// What the user adds.
    pub flags: Vec<String>,
    /// Include directories.
    pub include_dirs: Vec<PathBuf>,
    /// Files that are included before the first line.
    pub forced_includes: Vec<PathBuf>,
    /// The project's own command, in place of all this.
    pub project: Option<ProjectBuild>,
    /// Limit of one build.
    pub limit: Duration,
}

/// What a compiler said that has built nothing.
#[derive(Clone, Debug, Default)]
pub struct BuildFailure {
    /// The last lines.
    pub message: String,
    /// Those with a place, by the paths of the user's tree and the lines of what was compiled.
    pub messages: Vec<Message>,
}

impl From<String> for BuildFailure {
    fn from(message: String) -> Self {
        BuildFailure {
            message,
            messages: Vec::new(),
        }
    }
}

/// Writes the texts below `scratch`, placed as they are in the user's tree, and builds `main`. Returns the program, or what the
/// compiler said.
pub fn build(
    place: &Place,
    compiler: &Compiler,
    texts: &BTreeMap<PathBuf, String>,
    main: &Path,
    header: &Path,
    scratch: &Path,
) -> Result<PathBuf, BuildFailure> {
    let failed = |path: &Path, error: std::io::Error| format!("cannot write {}: {error}", path.display());
    let tree = scratch.join("tree");
    for (path, text) in texts {
        let copy = below(&tree, path);
        if let Some(directory) = copy.parent() {
            std::fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
        }
        std::fs::write(&copy, text).map_err(|error| failed(&copy, error))?;
    }
    let program = scratch.join(if cfg!(windows) { "program.exe" } else { "program" });
    let mut command = Command::new(&compiler.nvcc);
    if !compiler
        .flags
        .iter()
        .any(|flag| flag.trim_start_matches('-').starts_with("std"))
    {
        command.arg("-std=c++17");
    }
    command
        .args(["-O3", "-lineinfo", "-rdc=true"])
        .arg(format!("-arch={}", compiler.arch))
        .arg("-include")
        .arg(header);
    for file in &compiler.forced_includes {
        let copy = below(&tree, file);
        command.arg("-include").arg(if copy.is_file() { &copy } else { file });
    }
    for directory in &compiler.include_dirs {
        command.arg("-I").arg(below(&tree, directory)).arg("-I").arg(directory);
    }
    // Headers that aren't copied are found beside the originals.
    for directory in texts.keys().filter_map(|path| path.parent()) {
        command.arg("-I").arg(directory);
    }
    for directory in &compiler.libraries {
        command.arg("-L").arg(directory);
    }
    command
        .args(&compiler.flags)
        .arg(below(&tree, main))
        .arg("-lcudadevrt")
        .arg("-o")
        .arg(&program);
    let done = place
        .run(&mut command, scratch, compiler.limit, Some(&tree), &[])
        .map_err(|error| format!("{} cannot be run: {error}", compiler.nvcc.display()))?;
    if done.success() && place.is_file(&program) {
        return Ok(program);
    }
    if done.status.is_none() {
        return Err(format!("the compiler did not finish in {} s", compiler.limit.as_secs()).into());
    }
    // The user knows the file by its own name.
    let prefix = tree.display().to_string();
    let mut messages = build_messages::parse(&done.stderr);
    for message in &mut messages {
        message.path = real_path(&tree, &message.path, texts);
    }
    Err(BuildFailure {
        message: done.last_words().replace(&prefix, ""),
        messages,
    })
}

/// Where an absolute path lies in a copy of the whole tree.
pub fn below(tree: &Path, path: &Path) -> PathBuf {
    use std::path::Component;
    let mut copy = tree.to_path_buf();
    for part in path.components() {
        match part {
            Component::Normal(name) => copy.push(name),
            // Above the root there is nothing: the copy stays below the tree.
            Component::ParentDir if copy != tree => {
                copy.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {}
        }
    }
    copy
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn copies_stay_in_the_tree() {
        let tree = Path::new("/t");
        assert_eq!(below(tree, Path::new("/a/b.cu")), Path::new("/t/a/b.cu"));
        assert_eq!(below(tree, Path::new("/a/./c/b.cu")), Path::new("/t/a/c/b.cu"));
    }
}
