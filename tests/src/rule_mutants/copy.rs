//! A copy of the sources in which the rules are choices. The user's own files are only read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::switch::{MODULE, MODULE_NAME, with_choices};
use super::{Rule, Rules};
use crate::workspace;

/// The copy, and where it is built. Both are kept, so that the next build is a small one.
#[derive(Debug)]
pub struct Copy {
    home: PathBuf,
}

impl Copy {
    /// Makes the copy in a directory, or brings it up to date.
    ///
    /// # Errors
    /// When a rule doesn't fit the sources, or the disk says no.
    pub fn make(home: &Path, rules: &Rules) -> Result<Copy> {
        let copy = Copy {
            home: home.to_path_buf(),
        };
        let mut changed: BTreeSet<String> = rules.rule.iter().map(|rule| rule.file.clone()).collect();
        let module = format!("analysis/src/{MODULE_NAME}.rs");
        let library = "analysis/src/lib.rs".to_owned();
        let root = workspace::root();
        let files = files(root)?;
        for file in &files {
            let path = root.join(file);
            let mut content = fs::read(&path).with_context(|| format!("{} can't be read", path.display()))?;
            if changed.remove(file) || *file == library {
                let text = String::from_utf8(content).with_context(|| format!("{file} is no text"))?;
                let numbered = (1..).zip(&rules.rule).filter(|(_, rule)| rule.file == *file);
                let numbered: Vec<(usize, &Rule)> = numbered.collect();
                let mut text = with_choices(file, &text, &numbered)?;
                if *file == library {
                    text.push_str(&format!("\n#[allow(missing_docs)]\npub mod {MODULE_NAME};\n"));
                }
                content = text.into_bytes();
            }
            copy.write(file, &content)?;
        }
        if let Some(file) = changed.first() {
            bail!("there is no {file}, which tests/rule-mutants/rules.toml names");
        }
        copy.write(&module, MODULE.as_bytes())?;
        let mut all: BTreeSet<PathBuf> = files.iter().map(|file| copy.sources().join(file)).collect();
        all.insert(copy.sources().join(module));
        remove_others(&copy.sources(), &all)?;
        Ok(copy)
    }

    /// Where the sources are.
    pub fn sources(&self) -> PathBuf {
        self.home.join("sources")
    }

    /// Where they are built.
    pub fn target(&self) -> PathBuf {
        self.home.join("target")
    }

    /// Cargo, run in the copy.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .current_dir(self.sources())
            .env("CARGO_TARGET_DIR", self.target())
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// Builds something of it.
    ///
    /// # Errors
    /// When it doesn't compile.
    pub fn build(&self, arguments: &[&str]) -> Result<()> {
        let output = self.cargo(arguments).output().context("cargo can't be started")?;
        ensure!(
            output.status.success(),
            "the sources don't compile with the rules as choices; see {}\n{}",
            self.sources().display(),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// A program that was built.
    pub fn program(&self, name: &str) -> PathBuf {
        self.target().join("debug").join(name)
    }

    /// Writes a file where it is another one: what stays as it is isn't compiled again.
    fn write(&self, file: &str, content: &[u8]) -> Result<()> {
        let path = self.sources().join(file);
        if fs::read(&path).is_ok_and(|before| before == content) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("{} can't be made", parent.display()))?;
        }
        fs::write(&path, content).with_context(|| format!("{} can't be written", path.display()))
    }
}

/// The files of the repository, also new ones, but for what git ignores.
fn files(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .stdin(Stdio::null())
        .output()
        .context("git can't be started")?;
    ensure!(
        output.status.success(),
        "git doesn't list the files of {}: {}",
        root.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    let list = String::from_utf8(output.stdout).context("a file's name is no text")?;
    let names = list.split('\0').filter(|name| !name.is_empty());
    Ok(names
        .filter(|name| root.join(name).is_file())
        .map(str::to_owned)
        .collect())
}

/// Takes away what an earlier copy had.
fn remove_others(directory: &Path, kept: &BTreeSet<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(directory).with_context(|| format!("{} can't be read", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, kept)?;
        } else if !kept.contains(&path) {
            fs::remove_file(&path).with_context(|| format!("{} can't be removed", path.display()))?;
        }
    }
    Ok(())
}
