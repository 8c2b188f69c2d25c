//! The files that have changed since a commit, as git tells.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::CliError;

/// The absolute paths of what differs from where the current branch has left a commit: committed, or not yet, and what git doesn't know of yet.
pub fn since(reference: &str, repository: Option<&Path>) -> Result<BTreeSet<PathBuf>, CliError> {
    let Some(root) = repository.filter(|root| root.join(".git").exists()) else {
        return Err("--changed-since needs a git repository, and the files are in none"
            .to_owned()
            .into());
    };
    let Some(program) = git(root) else {
        return Err("--changed-since needs git, which is not on the PATH: install git"
            .to_owned()
            .into());
    };
    let git = |arguments: &[&str]| ask(&program, root, arguments);
    let named = format!("{reference}^{{commit}}");
    let commit = git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &named])?;
    let said = String::from_utf8_lossy(&commit.stderr).trim().to_owned();
    if !commit.status.success() && !said.is_empty() {
        return Err(format!("git cannot look for the commit `{reference}`: {said}").into());
    }
    if !commit.status.success() {
        return Err(format!(
            "git knows no commit `{reference}`: fetch it first (`git fetch origin`; in a pipeline, check out with the whole history)"
        )
        .into());
    }
    let commit = line(&commit);
    // What others have done to the other branch meanwhile is not what has changed here. A shallow clone may not know where they parted.
    let parted = git(&["merge-base", &commit, "HEAD"])?;
    let from = if parted.status.success() { line(&parted) } else { commit };
    let mut changed = BTreeSet::new();
    for arguments in [
        &[
            "diff",
            "--name-only",
            "-z",
            "--no-ext-diff",
            "--no-renames",
            "--diff-filter=d",
            &from,
            "--",
        ][..],
        &["ls-files", "-z", "--others", "--exclude-standard"],
    ] {
        let output = git(arguments)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(format!("git {} failed: {said}", arguments[0]).into());
        }
        let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        changed.extend(names.map(|name| root.join(&*String::from_utf8_lossy(name))));
    }
    Ok(changed)
}

/// The program belongs to the machine, and not to the repository.
fn git(root: &Path) -> Option<PathBuf> {
    let name = if cfg!(windows) { "git.exe" } else { "git" };
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute() && !directory.starts_with(root))
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
}

fn ask(program: &Path, root: &Path, arguments: &[&str]) -> Result<Output, CliError> {
    let output = Command::new(program)
        .current_dir(root)
        // A repository may name programs that git is to call when it looks for changes.
        .args(["-c", "core.fsmonitor=false", "--no-optional-locks"])
        .args(arguments)
        .output();
    output.map_err(|error| format!("git cannot be run: {error}").into())
}

fn line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
