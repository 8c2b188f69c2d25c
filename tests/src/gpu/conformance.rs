//! Running the conformance programs on a GPU: compile, run, write down what they print.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use regex::Regex;

use super::bench::{command_line, commit, rounded};
use super::conformance_record::{self as record, Conformance, Program, Status};
use super::machine::{self, Machine};
use super::process;

/// Runs the conformance programs of the emulator on a GPU, and writes what they print to OUT/conformance.json.
///
/// Needs nvcc and a GPU, but neither Rust nor a network nor git, so this binary can be carried to a machine that
/// has nothing else.
#[derive(Debug, Clone, Parser)]
#[command(name = "gpu-conformance", version)]
pub struct Options {
    /// Where the record goes.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Only the programs whose names match; the record then holds these alone.
    #[arg(long, value_name = "REGEX")]
    pub only: Option<Regex>,
    /// The repository.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: PathBuf,
    /// The compiler, instead of the one that is found.
    #[arg(long, value_name = "FILE")]
    pub nvcc: Option<PathBuf>,
    /// The architecture to compile for.
    #[arg(long, value_name = "ARCH", default_value = "sm_90")]
    pub arch: String,
    /// Run nothing, and add the programs of this record to the one in OUT.
    #[arg(long, value_name = "FILE")]
    adopt: Option<PathBuf>,
    /// The commit to write into the record, where git cannot be asked.
    #[arg(long, value_name = "ID")]
    pub commit: Option<String>,
    /// How many compilations run side by side; one for each core when left out.
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// How often each program runs, to see whether its output varies.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub runs: u32,
    /// How long a run may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub timeout: u64,
    /// How long a compilation may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub build_timeout: u64,
    /// After how many seconds nothing more runs.
    #[arg(long, value_name = "SECONDS")]
    pub budget_s: Option<u64>,
}

/// Does everything, and returns whether every program ended well and printed the same each time.
pub fn run(options: &Options) -> Result<bool> {
    if let Some(later) = &options.adopt {
        let mut known = Conformance::load(&options.out.join(record::FILE))?;
        known.adopt(Conformance::load(later)?)?;
        known.save(&options.out)?;
        return Ok(true);
    }
    let start = Instant::now();
    let absolute =
        |path: &Path| std::path::absolute(path).with_context(|| format!("{}: no such place", path.display()));
    let scratch = tempfile::tempdir()?;
    let lab = Lab {
        nvcc: absolute(&machine::find_nvcc(options.nvcc.as_deref())?)?,
        root: absolute(&options.root)?,
        scratch: scratch.path(),
        options,
    };
    let mut names = record::names(&lab.root)?;
    if let Some(only) = &options.only {
        names.retain(|name| only.is_match(name));
    }
    ensure!(!names.is_empty(), "no program matches --only");
    std::fs::create_dir_all(&options.out).with_context(|| format!("{} cannot be made", options.out.display()))?;

    let machine = Machine::detect(&lab.nvcc);
    let jobs = options.jobs.or(machine.cores).unwrap_or(1);
    let mut words = lab.flags();
    words.push(format!("{}/<name>.cu", record::PROGRAMS));
    let mut conformance = Conformance {
        schema: record::SCHEMA,
        commit: options.commit.clone().unwrap_or_else(|| commit(&lab.root)),
        date: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        machine,
        command: command_line("nvcc", &words),
        programs: lab.build_all(&names, jobs)?,
    };
    for index in 0..conformance.programs.len() {
        conformance.save(&options.out)?;
        let program = &mut conformance.programs[index];
        let spent = options
            .budget_s
            .is_some_and(|seconds| start.elapsed() >= Duration::from_secs(seconds));
        if program.status == Status::Skipped && !spent {
            lab.measure(program);
            eprintln!("{}: {}", program.name, program.status.as_str());
        }
    }
    conformance.save(&options.out)?;
    print!("{}", table(&conformance));
    Ok(conformance.programs.iter().all(|program| program.status == Status::Ok))
}

struct Lab<'a> {
    nvcc: PathBuf,
    root: PathBuf,
    scratch: &'a Path,
    options: &'a Options,
}

impl Lab<'_> {
    /// Compiles the programs, several at a time. Those that can run are [`Status::Skipped`] until they have.
    fn build_all(&self, names: &[String], jobs: usize) -> Result<Vec<Program>> {
        let queue: Mutex<VecDeque<_>> = Mutex::new(names.iter().collect());
        let programs = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs.clamp(1, names.len().max(1)))
                .map(|_| {
                    scope.spawn(|| -> Result<()> {
                        loop {
                            let next = queue.lock().unwrap_or_else(|poison| poison.into_inner()).pop_front();
                            let Some(name) = next else { return Ok(()) };
                            let program = self.build(name)?;
                            programs
                                .lock()
                                .unwrap_or_else(|poison| poison.into_inner())
                                .push(program);
                        }
                    })
                })
                .collect();
            for worker in workers {
                match worker.join() {
                    Ok(result) => result?,
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            anyhow::Ok(())
        })?;
        let mut programs = programs.into_inner().unwrap_or_else(|poison| poison.into_inner());
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(programs)
    }

    /// The flags of every compilation. A warning is an error: the programs are examples of proper CUDA.
    fn flags(&self) -> Vec<String> {
        let arch = format!("-arch={}", self.options.arch);
        [
            "-std=c++17",
            "-rdc=true",
            &arch,
            "-Icodeactions/runtime",
            "-Werror",
            "all-warnings",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    fn build(&self, name: &str) -> Result<Program> {
        let start = Instant::now();
        let source = record::source_of(name);
        let mut program = Program {
            name: name.to_owned(),
            source_hash: record::source_hash(&self.root, &source)?,
            status: Status::Skipped,
            stdout: String::new(),
            exit_code: None,
            message: None,
            build_s: 0.0,
            wall_s: Vec::new(),
            commit: None,
        };
        let mut command = Command::new(&self.nvcc);
        command.args(self.flags()).arg(&source).current_dir(&self.root);
        command.arg("-o").arg(self.scratch.join(name));
        // A toolkit from Python packages does not know its own library directory.
        if let Some(toolkit) = self.nvcc.parent().and_then(Path::parent)
            && toolkit.join("lib/libcudadevrt.a").is_file()
        {
            command.arg("-L").arg(toolkit.join("lib"));
        }
        command.arg("-lcudadevrt");
        let finished = process::run(&mut command, Duration::from_secs(self.options.build_timeout))?;
        if !finished.success() {
            program.status = Status::NotBuilt;
            program.message = Some(self.shown(&format!("{}: {}", finished.describe(), finished.printed())));
        }
        program.build_s = rounded(start.elapsed());
        Ok(program)
    }

    /// Runs a program until something is wrong, or often enough.
    fn measure(&self, program: &mut Program) {
        for turn in 0..self.options.runs.max(1) {
            let mut command = Command::new(self.scratch.join(&program.name));
            command.current_dir(self.scratch);
            let finished = match process::run(&mut command, Duration::from_secs(self.options.timeout)) {
                Ok(finished) => finished,
                Err(error) => {
                    program.status = Status::Failed;
                    program.message = Some(self.shown(&format!("{error:#}")));
                    return;
                }
            };
            program.wall_s.push(rounded(finished.wall));
            let varies = turn > 0 && finished.stdout != program.stdout;
            program.status = match finished.status {
                None => Status::DidNotFinish,
                Some(_) if !finished.success() => Status::Failed,
                Some(_) if varies => Status::Varies,
                Some(_) => Status::Ok,
            };
            program.exit_code = finished.code();
            if program.status != Status::Ok {
                let printed = match program.status {
                    Status::Varies => &finished.stdout,
                    _ => &finished.stderr,
                };
                let printed = process::tail(printed.trim(), 2000);
                program.message = Some(self.shown(format!("{}: {printed}", finished.describe()).trim()));
            }
            if turn == 0 {
                program.stdout = finished.stdout;
            }
            if program.status != Status::Ok {
                return;
            }
        }
    }

    /// A text without the places of this machine.
    fn shown(&self, text: &str) -> String {
        let scratch = self.scratch.display().to_string();
        let root = self.root.display().to_string();
        text.replace(&scratch, "$SCRATCH").replace(&root, "$ROOT")
    }
}

/// What became of the programs, for a terminal, with what went wrong below.
fn table(conformance: &Conformance) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["program", "status", "exit code", "runs", "longest [s]"]);
    for program in &conformance.programs {
        let longest = program.wall_s.iter().copied().fold(0.0, f64::max);
        table.add_row([
            program.name.clone(),
            program.status.as_str().to_owned(),
            program.exit_code.map_or("–".to_owned(), |code| code.to_string()),
            program.wall_s.len().to_string(),
            format!("{longest:.3}"),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    let broken = conformance
        .programs
        .iter()
        .filter(|program| program.status != Status::Ok);
    for program in broken.clone() {
        let message = program.message.as_deref().unwrap_or_default();
        text.push_str(&format!("{}: {}: {message}\n", program.name, program.status.as_str()));
    }
    let right = conformance.programs.len() - broken.count();
    text.push_str(&format!(
        "{right} of {} programs ended well\n",
        conformance.programs.len()
    ));
    text
}
