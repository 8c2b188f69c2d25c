//! What `measure` and `tune` have in common: the program, how it is built and how it is run.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use crate::cli::project::{Project, canonical, is_standard_input};
use crate::cli::site::NamedAt;
use crate::cli::{CliError, Includes};
use crate::measure::served::Unsaved;
use crate::measure::{Progress, Reports, Request, Tolerance, process};

/// What a shell says of a program that Ctrl-C has ended.
pub const GIVEN_UP: u8 = 130;

/// A program, and how it's built and run.
#[derive(Debug, Args)]
pub struct ProgramArgs {
    /// File with the program's `main`; where gridfuse.toml says how the project is built, the one whose launches are rewritten;
    /// without either, one with a kernel and its run specification
    pub file: PathBuf,
    /// Rewrite the launch at this place only, or the launches of the function whose head is there
    #[arg(long, value_name = "[FILE:]LINE[:COL]")]
    pub at: Option<NamedAt>,
    /// Arguments of the program, quoted as in a shell
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    args: String,
    /// How often each program runs, after one run that warms up
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Seconds after which a run is given up
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    timeout: u32,
    /// Greatest relative difference of floating point results [default: 1e-5 for float, 1e-12 for double]
    #[arg(long, value_name = "REL")]
    tolerance: Option<f64>,
    /// Results may stand in any order in their buffers
    #[arg(long)]
    unordered: bool,
    /// The CUDA compiler [default: from PATH, CUDA_HOME, CUDA_PATH]
    #[arg(long, value_name = "FILE")]
    nvcc: Option<PathBuf>,
    /// More arguments for nvcc, quoted as in a shell
    #[arg(long, value_name = "FLAGS", default_value = "", allow_hyphen_values = true)]
    nvcc_flags: String,
    /// Architecture to build for [default: arch in gridfuse.toml, else the GPU's]
    #[arg(long, value_name = "sm_NN")]
    arch: Option<String>,
    /// Build and run through this command: `ssh host`, `srun --gpus=1`; empty: here [default: runner in gridfuse.toml]
    #[arg(long, value_name = "COMMAND")]
    runner: Option<String>,
    #[command(flatten)]
    includes: Includes,
}

impl ProgramArgs {
    /// Loads the program's sources, with what an editor shows in place of what is on disk.
    pub fn load(&self, unsaved: &Unsaved) -> Result<Project, CliError> {
        if is_standard_input(&self.file) {
            return Err("a program is built from files: name one instead of -".to_owned().into());
        }
        Project::load_with(std::slice::from_ref(&self.file), &self.includes, unsaved)
    }

    /// What is to be measured, without any rewrite.
    pub fn request(&self, project: &Project) -> Result<Request, CliError> {
        let words = |name: &str, text: &str| {
            shlex::split(text).ok_or_else(|| CliError::Message(format!("{name}: a quote is not closed in `{text}`")))
        };
        Ok(Request {
            file: canonical(&self.file)?,
            host: None,
            within: None,
            recipes: Vec::new(),
            also: Vec::new(),
            set: Vec::new(),
            args: words("--args", &self.args)?,
            repeat: usize::from(self.repeat),
            timeout: Duration::from_secs(u64::from(self.timeout)),
            tolerance: self.tolerance()?,
            nvcc: self.nvcc.clone(),
            nvcc_flags: words("--nvcc-flags", &self.nvcc_flags)?,
            arch: self
                .arch
                .clone()
                .or_else(|| project.arch.map(|arch| format!("sm_{arch}"))),
            include_dirs: project.search_dirs.clone(),
            runner: self
                .runner
                .clone()
                .or_else(|| project.runner.clone())
                .filter(|line| !line.trim().is_empty()),
        })
    }

    fn tolerance(&self) -> Result<Tolerance, CliError> {
        let mut tolerance = Tolerance {
            unordered: self.unordered,
            ..Tolerance::default()
        };
        if let Some(relative) = self.tolerance {
            if !(0.0..1.0).contains(&relative) {
                return Err(format!("--tolerance must be from 0 to 1, not {relative}").into());
            }
            (tolerance.f32, tolerance.f64) = (relative, relative);
        }
        Ok(tolerance)
    }
}

/// An error as a sentence.
pub fn sentence(error: CliError) -> String {
    match error {
        CliError::Message(message) => message,
        CliError::Output(error) => error.to_string(),
    }
}

/// Ctrl-C must not leave a program running that keeps the GPU busy.
pub fn end_on_interrupt() {
    // Without a handler it's only less tidy.
    let _ = ctrlc::set_handler(|| {
        if process::given_up() {
            std::process::exit(i32::from(GIVEN_UP));
        }
        process::give_up();
    });
}

/// Shows how far something is: on a terminal in one line, else a line for each step.
pub fn with_spinner<T>(work: impl FnOnce(Progress<'_>) -> T) -> T {
    let spinner = std::io::stderr().is_terminal().then(|| {
        let spinner = indicatif::ProgressBar::new_spinner();
        spinner.enable_steady_tick(Duration::from_millis(120));
        spinner
    });
    let begun = Instant::now();
    let result = work(&Reports::new(|percent, what: &str| match &spinner {
        Some(spinner) => spinner.set_message(format!("{percent:3} % {what}")),
        None => {
            let seconds = begun.elapsed().as_secs_f64();
            // Who doesn't listen misses nothing of the result.
            let _ = writeln!(io::stderr(), "{seconds:7.1} s {percent:3} % {what}");
        }
    }));
    if let Some(spinner) = &spinner {
        spinner.finish_and_clear();
    }
    result
}
