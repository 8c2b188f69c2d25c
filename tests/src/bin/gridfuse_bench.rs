//! `gridfuse-bench`: measures how fast language servers answer, gridfuse and others with the same script.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<ExitCode> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("gridfuse-bench reads processor times and memory from Linux");
    ExitCode::FAILURE
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::ExitCode;

    use anyhow::{Context, Result, bail};
    use clap::{Args, Parser, Subcommand};
    use gridfuse_tests::lsp_bench::inputs::{self, Input};
    use gridfuse_tests::lsp_bench::record::{Report, Settings};
    use gridfuse_tests::lsp_bench::run::{Plan, run};
    use gridfuse_tests::lsp_bench::servers::Program;
    use gridfuse_tests::lsp_bench::{echo, page};
    use gridfuse_tests::workspace;

    /// Measure how fast language servers answer: gridfuse, clangd and others, with one script
    #[derive(Debug, Parser)]
    struct Cli {
        #[command(subcommand)]
        command: Command,
    }

    #[derive(Debug, Subcommand)]
    enum Command {
        /// Measure, and write JSON
        Run(Run),
        /// Print the tables of a JSON file
        Tables {
            /// The file
            file: PathBuf,
        },
        /// Make docs/responsiveness.md and its plots from tests/responsiveness/results.json
        Docs {
            /// Change nothing; fail when something is stale
            #[arg(long)]
            check: bool,
        },
        /// Write an input into a directory
        Input {
            /// Its name, such as lines-1000
            name: String,
            /// The directory
            directory: PathBuf,
        },
        /// List the inputs
        Inputs,
        /// Be a server that does nothing
        #[command(hide = true)]
        Echo,
    }

    #[derive(Debug, Args)]
    struct Run {
        /// The servers: gridfuse, clangd, gridfuse=PATH, or NAME=COMMAND WITH ARGUMENTS
        #[arg(long = "server", default_values = ["gridfuse", "clangd"])]
        servers: Vec<String>,
        /// The inputs, in this order; all without
        #[arg(long = "input", value_delimiter = ',')]
        inputs: Vec<String>,
        /// Where the JSON goes
        #[arg(long, default_value = "tests/responsiveness/results.json")]
        out: PathBuf,
        /// Sessions of each server with each input
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// How often the file is opened in a server that was just started, for each session
        #[arg(long, default_value_t = 3)]
        opens: usize,
        /// Edits of each function in a session
        #[arg(long, default_value_t = 20)]
        edits: usize,
        /// Requests of each kind and situation in a session
        #[arg(long, default_value_t = 5)]
        requests: usize,
        /// Keystrokes in a session
        #[arg(long, default_value_t = 500)]
        keystrokes: usize,
        /// Milliseconds between two keystrokes
        #[arg(long, default_value_t = 80)]
        pace: u64,
        /// Edits over which the memory is looked at, in each session
        #[arg(long, default_value_t = 100)]
        memory_edits: usize,
        /// Seconds of processor time after which a request is given up
        #[arg(long, default_value_t = 30)]
        limit: u64,
        /// Seconds that a server has to become idle after its start
        #[arg(long, default_value_t = 300)]
        index_limit: u64,
        /// Seconds after which no more requests of a kind are sent in a session
        #[arg(long, default_value_t = 60)]
        budget: u64,
        /// Seconds after which no new round begins with an input
        #[arg(long, default_value_t = 600)]
        input_budget: u64,
        /// Milliseconds for which a server has to be idle before something new is asked
        #[arg(long, default_value_t = 100)]
        quiet: u64,
        /// The most files of a workspace that clangd is given
        #[arg(long, default_value_t = 20)]
        peer_files: usize,
    }

    pub fn main() -> Result<ExitCode> {
        match Cli::parse().command {
            Command::Run(arguments) => measure(arguments),
            Command::Tables { file } => {
                let report = read(&file)?;
                print!("{}", page::tables(&report));
                Ok(ExitCode::SUCCESS)
            }
            Command::Docs { check } => docs(check),
            Command::Input { name, directory } => {
                fs::create_dir_all(&directory)?;
                let prepared = Input::named(&name)?.prepare(&directory.canonicalize()?)?;
                println!("{}", prepared.file.display());
                Ok(ExitCode::SUCCESS)
            }
            Command::Inputs => {
                println!("{}", inputs::names().join("\n"));
                Ok(ExitCode::SUCCESS)
            }
            Command::Echo => echo::serve().map(|()| ExitCode::SUCCESS),
        }
    }

    fn read(file: &Path) -> Result<Report> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        serde_json::from_str(&text).with_context(|| file.display().to_string())
    }

    fn measure(arguments: Run) -> Result<ExitCode> {
        let mut names = arguments.inputs;
        if names.is_empty() {
            names = inputs::names();
        }
        let plan = Plan {
            inputs: names.iter().map(|name| Input::named(name)).collect::<Result<_>>()?,
            programs: arguments
                .servers
                .iter()
                .map(|server| Program::parse(server))
                .collect::<Result<_>>()?,
            settings: Settings {
                rounds: arguments.rounds,
                opens: arguments.opens,
                edits: arguments.edits,
                requests: arguments.requests,
                keystrokes: arguments.keystrokes,
                pace_ms: arguments.pace,
                memory_edits: arguments.memory_edits,
                limit_s: arguments.limit,
                index_s: arguments.index_limit,
                budget_s: arguments.budget,
                input_budget_s: arguments.input_budget,
                quiet_ms: arguments.quiet,
            },
            peer_files: arguments.peer_files,
            echo: Some(std::env::current_exe()?),
        };
        let out = arguments.out;
        let save = |report: &Report| -> Result<()> {
            let text = report.to_json()?;
            fs::write(&out, text).with_context(|| out.display().to_string())
        };
        let report = run(&plan, command_line(), &save)?;
        print!("{}", page::tables(&report));
        Ok(match report.problems.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }

    /// The command line, without directories.
    fn command_line() -> String {
        let mut words = vec!["gridfuse-bench".to_owned()];
        for word in std::env::args().skip(1) {
            let parts = word.split(' ').map(|part| {
                let (name, path) = part.split_once('=').map_or(("", part), |(name, path)| (name, path));
                match Path::new(path).file_name() {
                    Some(file) if path.starts_with('/') && name.is_empty() => file.to_string_lossy().into_owned(),
                    Some(file) if path.starts_with('/') => format!("{name}={}", file.to_string_lossy()),
                    _ => part.to_owned(),
                }
            });
            words.push(parts.collect::<Vec<_>>().join(" "));
        }
        words.join(" ")
    }

    fn docs(check: bool) -> Result<ExitCode> {
        let pages = page::pages(&read(&workspace::root().join(page::RESULTS))?)?;
        let directory = workspace::root().join("docs");
        let mut stale = 0;
        for (name, text) in &pages {
            let path = directory.join(name);
            if fs::read_to_string(&path).is_ok_and(|old| old.replace("\r\n", "\n") == *text) {
                continue;
            }
            stale += 1;
            if check {
                eprintln!("docs/{name} is stale");
            } else {
                fs::write(&path, text).with_context(|| path.display().to_string())?;
            }
        }
        if check && stale > 0 {
            bail!("run: cargo run -p gridfuse-tests --bin gridfuse-bench -- docs");
        }
        println!("{} pages, {stale} changed", pages.len());
        Ok(ExitCode::SUCCESS)
    }
}
