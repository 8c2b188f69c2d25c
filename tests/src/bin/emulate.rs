//! Runs a CUDA program on the CPU under one or more schedules, and shows what is wrong with it.
//!
//!     cargo run -p gridfuse-tests --bin emulate -- FILE.cu [--apply ID[,ID] --at LINE] [--seeds N] [-- ARGUMENTS]
//!
//! The program's output is printed as it is; faults and facts that the emulator reports follow on standard error, with the
//! source lines that they speak of. Exit codes: the program's, 70 for a fault, 2 when it can't be built, 1 when runs with
//! different seeds print different things.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;
use gridfuse_tests::emulator::build::Emulator;
use gridfuse_tests::emulator::program::Program;
use gridfuse_tests::emulator::report::Event;
use gridfuse_tests::emulator::rewritten::{device_launches, rewrite};
use gridfuse_tests::emulator::run::{End, FAULT_CODE, Outcome, RunOptions};
use gridfuse_tests::emulator::translate;
use gridfuse_tests::workspace;

/// Runs a CUDA program on the CPU
#[derive(Debug, Parser)]
struct Arguments {
    /// The program
    file: PathBuf,
    /// Where to look for included files; gridfuse.cuh is found anyway
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Rewrites to apply first, in order
    #[arg(long, value_name = "ID", value_delimiter = ',', requires = "at")]
    apply: Vec<String>,
    /// Line of the launch that is rewritten
    #[arg(long, value_name = "LINE", requires = "apply")]
    at: Option<usize>,
    /// Seed of the schedule
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Run with this many seeds, beginning with --seed, and compare what is printed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: u64,
    /// When children run: eager, late, lifo or random (default: as the seed says)
    #[arg(long, value_name = "ORDER")]
    schedule: Option<String>,
    /// How many blocks are resident at most (default: as the seed says)
    #[arg(long, value_name = "N")]
    resident: Option<u32>,
    /// Kernels may wait for their children by cudaDeviceSynchronize(), as they could before CUDA 12
    #[arg(long)]
    device_sync: bool,
    /// Limit of the scheduler's steps
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Seconds that a run may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// Write the translated sources into a directory
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The program's arguments
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// What can't be built is no result of the program.
const NOT_BUILT: u8 = 2;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("emulate: {error:#}");
            ExitCode::from(NOT_BUILT)
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let program = program(arguments)?;
    if let Some(directory) = &arguments.keep {
        keep(&program, directory)?;
    }
    let emulator = Emulator::try_get().map_err(|message| anyhow!(message))?;
    let executable = emulator.build(&program)?;
    let mut first: Option<Outcome> = None;
    let mut code = 0;
    for seed in arguments.seed..arguments.seed.saturating_add(arguments.seeds.max(1)) {
        let options = RunOptions {
            seed,
            arguments: arguments.arguments.clone(),
            timeout: Duration::from_secs(arguments.timeout),
            steps: arguments.steps,
            schedule: arguments.schedule.clone(),
            resident: arguments.resident,
            device_sync: arguments.device_sync,
        };
        let outcome = executable.run(&options)?;
        let same = first
            .as_ref()
            .is_some_and(|first| first.stdout == outcome.stdout && first.end == outcome.end);
        if !same {
            show(&program, seed, &outcome, arguments.seeds > 1)?;
            if first.is_some() {
                code = code.max(1);
            }
        }
        code = match outcome.end {
            End::Code(FAULT_CODE) => FAULT_CODE,
            End::Code(own) if code != FAULT_CODE => code.max(own),
            End::Code(_) => code,
            End::Signal(signal) => code.max(128 + signal),
            End::TimedOut => code.max(124),
        };
        first.get_or_insert(outcome);
    }
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

fn program(arguments: &Arguments) -> Result<Program> {
    let file = arguments
        .file
        .canonicalize()
        .with_context(|| format!("{}", arguments.file.display()))?;
    let (Some(root), Some(name)) = (file.parent(), file.file_name()) else {
        bail!("{} is not a file", file.display());
    };
    let mut directories = Vec::new();
    for directory in &arguments.include {
        directories.push(
            directory
                .canonicalize()
                .with_context(|| format!("{}", directory.display()))?,
        );
    }
    directories.push(workspace::root().join("codeactions/runtime"));
    let mut program = Program::load(root, &[name], &directories)?;
    let Some(line) = arguments.at else {
        return Ok(program);
    };
    let sites = device_launches(&program);
    let here: Vec<_> = sites
        .iter()
        .filter(|site| site.file == Path::new(name) && site.line == line)
        .collect();
    let [site] = here.as_slice() else {
        let lines: Vec<String> = sites
            .iter()
            .map(|site| format!("{}:{}", site.file.display(), site.line))
            .collect();
        bail!(
            "there are {} launches by kernels at line {line}; there are launches at {}",
            here.len(),
            lines.join(", ")
        );
    };
    let mut ids = arguments.apply.iter();
    let Some(id) = ids.next() else { return Ok(program) };
    let mut rewritten = rewrite(&program, site, id).map_err(|reason| anyhow!("{id} is refused: {reason}"))?;
    for id in ids {
        rewritten = rewritten
            .and(id)
            .map_err(|reason| anyhow!("{id} is refused: {reason}"))?;
    }
    for assumption in &rewritten.assumptions {
        eprintln!("emulate: taken for granted: {assumption}");
    }
    program = rewritten.program;
    Ok(program)
}

fn keep(program: &Program, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("{}", directory.display()))?;
    for (name, text) in translate::separate(program)?.files {
        fs::write(directory.join(name), text)?;
    }
    Ok(())
}

fn show(program: &Program, seed: u64, outcome: &Outcome, several: bool) -> Result<()> {
    if several {
        eprintln!("--- seed {seed}");
    }
    io::stdout().write_all(outcome.stdout.as_bytes())?;
    io::stdout().flush()?;
    eprint!("{}", outcome.stderr);
    match outcome.end {
        End::Code(_) => {}
        End::Signal(signal) => eprintln!("emulate: the program was ended by signal {signal}"),
        End::TimedOut => eprintln!(
            "emulate: the program was stopped after {:.0} s",
            outcome.time.as_secs_f64()
        ),
    }
    for event in &outcome.events {
        show_event(program, event);
    }
    Ok(())
}

fn show_event(program: &Program, event: &Event) {
    eprintln!("{}", event.message);
    for access in &event.accesses {
        eprintln!("  {access}");
        if let (Some(file), Some(line)) = (&access.file, access.line)
            && let Some(text) = program.files().get(Path::new(file))
            && let Some(source) = text.lines().nth((line as usize).saturating_sub(1))
        {
            eprintln!("    {line:>4} | {}", source.trim_end());
        }
    }
}
