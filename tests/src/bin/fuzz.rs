//! `fuzz`: random programs with dynamic parallelism, rewritten and run under the emulator.
//!
//!     cargo run --release -p gridfuse-tests --bin fuzz -- --programs 1000
//!     cargo run --release -p gridfuse-tests --bin fuzz -- --replay 4711
//!
//! Runs on any x86-64 Linux with g++, from the root of a checkout; no GPU, no CUDA, no cargo.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;
use gridfuse_tests::emulator::Emulator;
use gridfuse_tests::fuzz::campaign::{self, Found, Plan, report, write_files};
use gridfuse_tests::fuzz::check::{Settings, check};
use gridfuse_tests::fuzz::generate::generate;
use gridfuse_tests::fuzz::print::{Printed, print};
use gridfuse_tests::fuzz::rewrite::{HEADER, Session, Wish, rewrite, sequence};

/// Random programs with dynamic parallelism, rewritten and run under the emulator
#[derive(Debug, Parser)]
struct Arguments {
    /// Stop after this many seconds
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Stop after this many seeds (default without --seconds: 100)
    #[arg(long, value_name = "N")]
    programs: Option<u64>,
    /// Of the seeds' programs try only those with this feature, or with one of several; --details names them
    #[arg(long = "feature", value_name = "NAME")]
    features: Vec<String>,
    /// The first seed
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Threads (default: all cores)
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Schedules for each program
    #[arg(long, value_name = "N", default_value_t = 4)]
    schedules: u64,
    /// Rewritten programs for each program, at most
    #[arg(long, value_name = "N", default_value_t = 14)]
    variants: usize,
    /// Directory for programs that fail
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Seconds for making the first failing program of a kind smaller; 0: don't
    #[arg(long, value_name = "N", default_value_t = 120)]
    shrink: u64,
    /// Show everything about the program of this seed
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seconds", "programs", "write"])]
    replay: Option<u64>,
    /// Generate and rewrite only, without the emulator
    #[arg(long)]
    dry: bool,
    /// Write all programs, and what the rewrites made of them, into a directory; don't run them
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    /// The commit that is tried, for the record
    #[arg(long, value_name = "HASH")]
    commit: Option<String>,
    /// Print verdicts, refusals and features as well
    #[arg(long)]
    details: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("fuzz: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool> {
    let plan = plan(arguments);
    let emulator = if arguments.dry || arguments.write.is_some() {
        None
    } else {
        match Emulator::try_get() {
            Ok(emulator) => Some(emulator),
            Err(message) => bail!("{message}"),
        }
    };
    if let Some(seed) = arguments.replay {
        return show(seed, &plan, emulator);
    }
    if let Some(directory) = &arguments.write {
        for seed in plan.seed..plan.seed + plan.programs.unwrap_or(100) {
            let (printed, variants) = make(seed, &plan);
            let directory = directory.join(seed.to_string());
            write_files(&directory, &printed.whole(&printed.files))?;
            for (number, (steps, files)) in variants.iter().enumerate() {
                let directory = directory.join(format!("rewritten-{number}"));
                write_files(&directory, &printed.whole(files))?;
                std::fs::write(directory.join("rewrites.txt"), format!("{steps}\n"))?;
            }
        }
        return Ok(true);
    }
    let (summary, found) = campaign::run(&plan, emulator)?;
    let mut out = io::stdout().lock();
    for one in found.iter().filter(|one| one.minimal.is_some()) {
        eprintln!("=== {}", report(one));
    }
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &summary)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", summary.text(arguments.details))?;
    }
    Ok(found.is_empty())
}

/// Some programs take for ever: what the others came to is known.
fn late(summary: &campaign::Summary) {
    print!("{}", summary.text(false));
    std::process::exit(3);
}

fn late_json(summary: &campaign::Summary) {
    if let Ok(text) = serde_json::to_string_pretty(summary) {
        println!("{text}");
    }
    std::process::exit(3);
}

fn plan(arguments: &Arguments) -> Plan {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let unlimited = arguments.seconds.is_none() && arguments.programs.is_none();
    Plan {
        seed: arguments.seed,
        features: arguments.features.clone(),
        programs: if unlimited { Some(100) } else { arguments.programs },
        time: arguments.seconds.map(Duration::from_secs),
        jobs: arguments.jobs.unwrap_or(cores),
        keep: arguments.keep.clone(),
        shrink: Duration::from_secs(arguments.shrink),
        settings: Settings {
            schedules: arguments.schedules,
            wish: Wish {
                variants: arguments.variants,
                steps: 3,
            },
            ..Settings::default()
        },
        progress: true,
        commit: arguments.commit.clone(),
        late: if arguments.json { late_json } else { late },
    }
}

type Made = (Printed, Vec<(String, std::collections::BTreeMap<String, String>)>);

/// A program and its rewritten forms.
fn make(seed: u64, plan: &Plan) -> Made {
    let program = generate(seed);
    let printed = print(&program);
    let wish = plan.settings.wish;
    let made = rewrite(&mut Session::default(), &printed, &program.ordered_sites, seed, wish);
    let variants = made.variants.into_iter().map(|v| (sequence(&v.steps), v.files));
    (printed, variants.collect())
}

/// Everything about one program.
fn show(seed: u64, plan: &Plan, emulator: Option<&Emulator>) -> Result<bool> {
    let mut out = io::stdout().lock();
    let program = generate(seed);
    let printed = print(&program);
    for (name, text) in printed.whole(&printed.files) {
        writeln!(out, "--- {name}\n{text}")?;
    }
    let features: Vec<&str> = program.features.iter().copied().collect();
    writeln!(out, "--- features: {}", features.join("; "))?;
    if !program.ordered_sites.is_empty() {
        writeln!(out, "--- launches that rely on an order: {:?}", program.ordered_sites)?;
    }
    let mut session = Session::default();
    let wish = plan.settings.wish;
    let made = rewrite(&mut session, &printed, &program.ordered_sites, seed, wish);
    for said in &made.said {
        writeln!(
            out,
            "--- launch {}: {} {} {:?}",
            said.site, said.id, said.verdict, said.reasons
        )?;
    }
    for variant in &made.variants {
        writeln!(
            out,
            "\n=== {} assumes {:?}",
            sequence(&variant.steps),
            variant.assumptions
        )?;
        for (name, text) in &variant.files {
            if printed.files.get(name) != Some(text) && name != HEADER {
                writeln!(out, "--- {name}\n{text}")?;
            }
        }
    }
    let Some(emulator) = emulator else {
        return Ok(made.mistakes.is_empty());
    };
    let checked = check(&mut session, emulator, &program, seed, &plan.settings);
    writeln!(
        out,
        "=== {} runs; {:.2} s rewriting, {:.2} s compiling, {:.2} s running",
        checked.runs,
        checked.rewriting.as_secs_f64(),
        checked.building.as_secs_f64(),
        checked.running.as_secs_f64()
    )?;
    let good = checked.failures.is_empty();
    for failure in checked.failures {
        let minimal = campaign::minimal(&mut session, Some(emulator), &program, &failure, plan);
        let one = Found { seed, failure, minimal };
        writeln!(out, "=== {}", report(&one))?;
    }
    Ok(good)
}
