//! `gridfuse doctor`: what there is on this machine to build and measure programs with, what is missing, and how to get it.
//!
//! It runs two programs at most: `nvcc --version` and `nvidia-smi`, where they lie outside of the user's project, so that nothing that a
//! project brings along is run. The same goes for the driver's library.

#[cfg(unix)]
mod driver;
mod gpu;
mod project;
mod toolkit;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::files::workspace_root;
use crate::measure::process;
use crate::schema::{Check, CheckStatus, DoctorReport, VERSION};

/// So long a program may take to say what it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where it's asked.
pub struct Surroundings<'a> {
    /// The current directory.
    pub directory: PathBuf,
    /// A variable of the environment; `None`: it isn't set, or empty.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// A directory for what programs print.
    pub scratch: PathBuf,
}

impl Surroundings<'_> {
    /// A program that lies on the `PATH`.
    fn on_path(&self, name: &str) -> Option<PathBuf> {
        let path = (self.variable)("PATH")?;
        std::env::split_paths(&path)
            .map(|directory| directory.join(name))
            .find(|program| program.is_file())
    }

    /// A program belongs to the machine, and not to the project that one stands in.
    fn may_run(&self, program: &Path) -> bool {
        let Ok(real) = program.canonicalize() else { return false };
        program.is_absolute() && !self.is_in_project(program) && !self.is_in_project(&real)
    }

    fn is_in_project(&self, path: &Path) -> bool {
        let project = workspace_root(&self.directory).unwrap_or_else(|| self.directory.clone());
        // Everything lies below the root of the disk.
        project.parent().is_some() && path.starts_with(&project)
    }

    /// Libraries are those of the machine: the dynamic linker is told of no directory in the project.
    #[cfg(unix)]
    fn may_load(&self) -> bool {
        ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"]
            .iter()
            .all(|name| {
                let paths = (self.variable)(name).unwrap_or_default();
                let mut directories = std::env::split_paths(&paths).filter(|_| !paths.is_empty());
                // An empty part is the current directory. One that isn't there has no library.
                directories
                    .all(|directory| directory.is_absolute() && (!directory.exists() || self.may_run(&directory)))
            })
    }

    /// What a program prints when it succeeds; else what it says of its failure.
    fn ask(&self, program: &Path, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(program);
        // Whatever it looks for in its current directory, it doesn't find in the project.
        command.args(arguments).current_dir(&self.scratch);
        let finished = process::run(&mut command, &self.scratch, PATIENCE)
            .map_err(|error| format!("it cannot be run: {error}"))?;
        match finished.status {
            None => Err(format!("it did not answer in {} s", PATIENCE.as_secs())),
            Some(status) if status.success() => Ok(finished.stdout),
            Some(_) => Err(match finished.last_words() {
                words if words.is_empty() => "it fails and says nothing".to_owned(),
                words => words.replace('\n', " "),
            }),
        }
    }
}

/// Looks at everything.
pub fn examine(surroundings: &Surroundings<'_>) -> DoctorReport {
    let mut checks = toolkit::checks(surroundings);
    let (of_gpus, gpus) = gpu::checks(surroundings);
    checks.extend(of_gpus);
    let (of_project, runner) = project::checks(&surroundings.directory);
    checks.extend(of_project);
    let missing = |check: &&Check| check.status == CheckStatus::Missing;
    let missing: Vec<&'static str> = checks.iter().filter(missing).map(|check| check.name).collect();
    DoctorReport {
        schema: VERSION,
        version: env!("CARGO_PKG_VERSION"),
        measures: missing.is_empty(),
        missing,
        runner,
        checks,
        gpus,
    }
}

fn ok(name: &'static str, found: impl Into<String>) -> Check {
    Check {
        name,
        status: CheckStatus::Ok,
        found: found.into(),
        help: None,
    }
}

fn note(name: &'static str, found: impl Into<String>, help: impl Into<String>) -> Check {
    Check {
        status: CheckStatus::Note,
        help: Some(help.into()),
        ..ok(name, found)
    }
}

fn missing(name: &'static str, found: impl Into<String>, help: impl Into<String>) -> Check {
    Check {
        status: CheckStatus::Missing,
        ..note(name, found, help)
    }
}
