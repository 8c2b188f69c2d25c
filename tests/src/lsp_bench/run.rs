//! Servers and inputs, one after the other: with each input the servers take turns, so that whatever else a machine does hits all of them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use super::inputs::{Input, Prepared};
use super::launch::{Subject, subject};
use super::record::{Diagnostics, Machine, MemoryUse, Report, Samples, Settings, Source, Stats};
use super::script::{Facts, MemorySeries, Script};
use super::servers::Program;
use super::session::{Answer, Session};
use crate::workspace;

/// What is run.
pub struct Plan {
    /// The servers.
    pub programs: Vec<Program>,
    /// The inputs.
    pub inputs: Vec<Input>,
    /// How often.
    pub settings: Settings,
    /// Workspaces of more files than this aren't given to clangd, which would compile all of them first.
    pub peer_files: usize,
    /// A program that serves as [`super::echo`] does, when it is called with the argument `echo`.
    pub echo: Option<std::path::PathBuf>,
}

/// Runs all of it; what it is at goes to standard error. After each input `save` gets what is known so far.
///
/// # Errors
/// When an input can't be made, or `save` fails. A server that ends is a problem in the report.
pub fn run(plan: &Plan, command: String, save: &dyn Fn(&Report) -> Result<()>) -> Result<Report> {
    let mut report = Report {
        date: jiff::Timestamp::now().strftime("%FT%TZ").to_string(),
        commit: commit(),
        command,
        machine: machine(),
        settings: plan.settings.clone(),
        client_ms: None,
        servers: plan.programs.iter().map(Program::record).collect(),
        inputs: Vec::new(),
        measured: Vec::new(),
        diagnostics: Vec::new(),
        memory: Vec::new(),
        problems: Vec::new(),
    };
    if let Some(echo) = &plan.echo {
        report.client_ms = client(echo)?;
    }
    report.machine.load.extend(load());
    for input in &plan.inputs {
        let directory = tempfile::tempdir()?;
        let prepared = input.prepare(directory.path())?;
        let subject = subject(&prepared.text).with_context(|| format!("{}: no launch", input.name))?;
        report.inputs.push(source(input, &prepared, &subject));
        one_input(plan, input, &prepared, &subject, &mut report);
        save(&report)?;
    }
    report.machine.load.extend(load());
    save(&report)?;
    Ok(report)
}

fn one_input(plan: &Plan, input: &Input, prepared: &Prepared, subject: &Subject, report: &mut Report) {
    let mut measured: Vec<(Samples, Facts)> = Vec::new();
    measured.resize_with(plan.programs.len(), Default::default);
    let begin = Instant::now();
    for round in 0..plan.settings.rounds {
        if round > 0 && begin.elapsed() > Duration::from_secs(plan.settings.input_budget_s) {
            break;
        }
        for turn in 0..plan.programs.len() {
            // Whoever was first in one round is last in the next one.
            let index = match round % 2 {
                0 => turn,
                _ => plan.programs.len() - 1 - turn,
            };
            let program = &plan.programs[index];
            if program.name == "clangd" && prepared.compiled.len() > plan.peer_files {
                continue;
            }
            eprintln!(
                "{} with {}, {} of {}",
                program.name,
                input.name,
                round + 1,
                plan.settings.rounds
            );
            let (samples, facts) = &mut measured[index];
            let mut script = Script {
                program,
                input: prepared,
                subject,
                settings: &plan.settings,
                samples,
                facts,
            };
            if let Err(error) = script.run() {
                let problem = format!("{} with {}: {error:#}", program.name, input.name);
                eprintln!("{problem}");
                report.problems.push(problem);
            }
        }
    }
    for (program, (samples, facts)) in plan.programs.iter().zip(measured) {
        report.measured.extend(samples.finish(&input.name, &program.name));
        if let Some((first, settled)) = facts.diagnostics {
            report.diagnostics.push(Diagnostics {
                input: input.name.clone(),
                server: program.name.clone(),
                first,
                settled,
            });
        }
        if facts.memory.opened > 0 {
            report.memory.push(memory_use(input, program, facts.memory));
        }
    }
}

/// MiB, to a tenth.
fn mib(kib: u64) -> f64 {
    (kib as f64 / 102.4).round() / 10.0
}

fn memory_use(input: &Input, program: &Program, memory: MemorySeries) -> MemoryUse {
    MemoryUse {
        input: input.name.clone(),
        server: program.name.clone(),
        opened_mib: mib(memory.opened),
        end_mib: mib(memory.end),
        peak_mib: mib(memory.peak),
        edits: memory.edits.into_iter().map(|(edits, kib)| (edits, mib(kib))).collect(),
    }
}

fn source(input: &Input, prepared: &Prepared, subject: &Subject) -> Source {
    let line = prepared.text[..subject.at].matches('\n').count() + 1;
    Source {
        name: input.name.clone(),
        lines: prepared.text.lines().count(),
        files: prepared.sources.len(),
        bytes: prepared.bytes,
        launch: format!("{} ({line})", subject.launch),
        elsewhere: subject.elsewhere.name.clone(),
    }
}

/// How long the client takes itself: hovers at a server that does nothing.
///
/// # Errors
/// When it can't be started.
pub fn client(echo: &Path) -> Result<Option<Stats>> {
    const HOVERS: usize = 500;
    let mut session = Session::start(Command::new(echo).arg("echo"), Duration::from_secs(30))?;
    session.initialize(workspace::root(), false)?;
    let file = workspace::root().join("tests/corpus/bfs.cu");
    let text = fs::read_to_string(&file)?;
    session.open(&file, &text, false)?;
    let mut times = Vec::new();
    for _ in 0..HOVERS {
        let position = session.position(0);
        if let Answer::Came(spent, _) = session.ask("textDocument/hover", &json!({ "position": position }))? {
            times.push((spent.wall.as_secs_f64() * 1e6).round() / 1e3);
        }
    }
    session.end();
    Ok(Stats::of(&times))
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .current_dir(workspace::root())
        .args(arguments)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

fn commit() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty());
    Some(if changed { format!("{commit}-dirty") } else { commit })
}

fn machine() -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory = field(&read("/proc/meminfo"), "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let kernel = read("/proc/sys/kernel/osrelease");
    Machine {
        cpu: field(&read("/proc/cpuinfo"), "model name"),
        cores: std::thread::available_parallelism().ok().map(usize::from),
        memory_mib: memory.map(|kib| kib / 1024),
        // The version, not what its builder calls it.
        kernel: kernel
            .trim()
            .split('-')
            .next()
            .filter(|kernel| !kernel.is_empty())
            .map(str::to_owned),
        load: Vec::new(),
    }
}

/// The mean load of the last five minutes.
fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg")
        .ok()?
        .split(' ')
        .nth(1)?
        .parse()
        .ok()
}
