//! The command line.

mod baseline;
mod changed;
mod changes;
mod check;
mod color;
mod completions;
mod doctor;
mod explain;
mod fitted_snippet;
mod fitted_table;
mod fix;
mod github;
mod graph;
mod list;
mod man;
mod measure;
mod output;
mod project;
mod region;
mod repository;
mod rewrite;
mod sarif;
mod sarif_fixes;
mod schema;
mod site;
mod snippet;
mod tune;
mod wrapped;
mod write;

pub use crate::diff::unified;
pub use project::Project;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use color::Color;

/// No finding at or above the limit.
pub const CLEAN: u8 = 0;
/// Findings at or above the limit, or a refused rewrite.
pub const FINDINGS: u8 = 1;
/// Wrong use, or a file that cannot be read or written.
pub const USAGE_OR_IO: u8 = 2;

/// Language server and command line for CUDA dynamic parallelism: kernels that launch kernels.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, after_help = AFTER_HELP)]
struct Cli {
    /// When to colour
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    color: Color,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Exit codes: 0 nothing found, 1 findings at or above --deny or a refused rewrite, 2 wrong use, or a file or directory that cannot be read or has nothing in it.
Lines and columns count from 1, columns in bytes of UTF-8.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Speak the language server protocol on standard input and output
    Lsp {
        /// Accepted because editors pass it; there is no other way to connect
        #[arg(long)]
        stdio: bool,
    },
    /// Find slow and wrong device-side launches
    Check(check::CheckArgs),
    /// Show everything known about each launch site
    Explain(explain::ExplainArgs),
    /// Draw which function launches which kernel, and how often
    Graph(graph::GraphArgs),
    /// Rewrite a device-side launch
    Rewrite(rewrite::RewriteArgs),
    /// Take back what a rewrite made
    Revert(rewrite::RevertArgs),
    /// Build and run a program as it is and rewritten, on a GPU: do they compute the same, and how fast are they?
    Measure(measure::MeasureArgs),
    /// Find the threshold, the coarsening factor and the granularity that are fastest on a GPU
    Tune(tune::TuneArgs),
    /// Clean up after a measurement that is killed
    #[cfg(unix)]
    #[command(hide = true, name = crate::measure::guard::COMMAND)]
    Guard,
    /// List the diagnostics and the rewrites, or print the pages about them
    List(list::ListArgs),
    /// Print the JSON schema of what a command prints as JSON
    Schema(schema::SchemaArgs),
    /// Check compiler, driver and GPU: what is missing, and how to get it
    Doctor(doctor::DoctorArgs),
    /// Print what a shell needs to complete the command line
    Completions(completions::CompletionsArgs),
    /// Print a page of the manual, for `man`
    Man(man::ManArgs),
}

/// Where `#include` looks, and where the text on standard input belongs.
#[derive(Clone, Debug, Args)]
pub struct Includes {
    /// Treat standard input (-) as this file when looking for includes and settings, and in messages; the file itself isn't read, and
    /// need not exist
    #[arg(long, value_name = "FILE")]
    pub stdin_path: Option<PathBuf>,
    /// Directory in which #include looks after the including file's own
    #[arg(short = 'I', value_name = "DIR")]
    pub include_dirs: Vec<PathBuf>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// What stops a command: wrong use, or a file that cannot be read or written.
#[derive(Debug)]
pub enum CliError {
    /// A sentence that says what to do.
    Message(String),
    /// Standard output cannot be written.
    Output(io::Error),
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        CliError::Output(error)
    }
}

impl From<String> for CliError {
    fn from(message: String) -> Self {
        CliError::Message(message)
    }
}

/// Exit code of a command, or why it stopped.
pub type CliResult = Result<u8, CliError>;

/// Runs the command line.
pub fn main() -> ExitCode {
    Color::of(std::env::args_os()).apply();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way, too. A closed pipe is no reason to complain.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE_OR_IO));
        }
    };
    if let Command::Lsp { stdio: _ } = cli.command {
        return crate::lsp::main();
    }
    let mut out = io::BufWriter::new(anstream::stdout().lock());
    let result = match &cli.command {
        Command::Lsp { .. } => Ok(CLEAN),
        Command::Check(args) => check::run(args, &mut out),
        Command::Explain(args) => explain::run(args, &mut out),
        Command::Graph(args) => graph::run(args, &mut out),
        Command::Rewrite(args) => rewrite::run(args, &mut out),
        Command::Revert(args) => rewrite::revert(args.clone(), &mut out),
        Command::Measure(args) => measure::run(args, &mut out),
        Command::Tune(args) => tune::run(args, &mut out),
        #[cfg(unix)]
        Command::Guard => {
            crate::measure::guard::watch();
            Ok(CLEAN)
        }
        Command::List(args) => list::run(args, &mut out),
        Command::Schema(args) => schema::run(args, &mut out),
        Command::Doctor(args) => doctor::run(args, &mut out),
        Command::Completions(args) => completions::run(args, Cli::command(), &mut out),
        Command::Man(args) => man::run(args, Cli::command(), &mut out),
    };
    let result = result.and_then(|code| out.flush().map(|()| code).map_err(CliError::from));
    match result {
        Ok(code) => ExitCode::from(code),
        Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(CLEAN),
        Err(CliError::Output(error)) => {
            output::error(&format!("cannot write the output: {error}"));
            ExitCode::from(USAGE_OR_IO)
        }
        Err(CliError::Message(message)) => {
            output::error(&message);
            ExitCode::from(USAGE_OR_IO)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
