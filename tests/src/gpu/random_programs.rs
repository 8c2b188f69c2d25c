//! Random programs on a GPU: what rewrites make of them prints what the original prints there and under the emulator, and
//! `compute-sanitizer` finds no wrong access.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use serde::{Deserialize, Serialize};

use super::bench::{command_line, commit, rounded};
use super::machine::{self, Machine};
use super::process::{self, Finished};
use crate::emulator::Emulator;
use crate::fuzz::campaign::write_files;
use crate::fuzz::check::{Settings, emulated_output};
use crate::fuzz::generate::generate;
use crate::fuzz::print::{MAIN_FILE, print};
use crate::fuzz::rewrite::{Session, Wish, rewrite, sequence};

/// The version of the format.
pub const SCHEMA: u32 = 1;

/// How the names of records begin; they are kept in `tests/gpu/results/`, beside the measurements.
pub const PREFIX: &str = "random_programs";

/// The exit code of `compute-sanitizer` when it has found something.
const FOUND: i32 = 99;

/// Compiles random programs and what rewrites make of them, runs them on a GPU and under compute-sanitizer, and compares what they print
/// with what the emulator printed. Writes OUT/random_programs_SEED.json.
///
/// Needs nvcc, g++ and a GPU, but neither Rust nor a network nor git.
#[derive(Debug, Clone, Parser)]
#[command(name = "gpu-random-programs", version)]
pub struct Options {
    /// Where the record goes.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The first seed.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// How many programs.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub programs: u64,
    /// Of the seeds' programs only those with this feature, or with one of several.
    #[arg(long = "feature", value_name = "NAME")]
    pub features: Vec<String>,
    /// Rewritten programs for each program, at most.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub variants: usize,
    /// The compiler, instead of the one that is found.
    #[arg(long, value_name = "FILE")]
    pub nvcc: Option<PathBuf>,
    /// The architecture to compile for.
    #[arg(long, value_name = "ARCH", default_value = "sm_90")]
    pub arch: String,
    /// The commit to write into the record, where git cannot be asked.
    #[arg(long, value_name = "ID")]
    pub commit: Option<String>,
    /// How many programs are looked at side by side; one for each core when left out.
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// How many processes use the GPU at once.
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub on_gpu: usize,
    /// How long a run may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
    /// After how many seconds nothing is begun any more; what isn't done then counts for nothing.
    #[arg(long, value_name = "SECONDS")]
    pub budget_s: Option<u64>,
}

/// What came of a range of seeds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The commit whose generator and rewrites these are.
    pub commit: String,
    /// When, in UTC.
    pub date: String,
    /// On what.
    pub machine: Machine,
    /// How a program is compiled.
    pub command: String,
    /// The first seed.
    pub first_seed: u64,
    /// The features that were asked for; none: all programs.
    pub features: Vec<String>,
    /// Programs that were compared.
    pub programs: u64,
    /// Those with something to rewrite.
    pub with_rewrites: u64,
    /// Rewritten programs.
    pub rewritten: u64,
    /// Originals whose GPU prints what the emulator does.
    pub originals_agree: u64,
    /// Rewritten programs that print the same on the GPU.
    pub rewritten_agree: u64,
    /// Originals in which compute-sanitizer's memcheck finds something, or which it ends: about what is made of them it says nothing.
    pub not_sanitized: Vec<Unclean>,
    /// Rewritten programs of the other originals, in which memcheck finds nothing.
    pub sanitized_clean: u64,
    /// Rewritten programs of the other originals.
    pub sanitized: u64,
    /// How often each rewrite was applied.
    pub applied: BTreeMap<String, u64>,
    /// How many programs have a feature.
    pub with_feature: BTreeMap<String, u64>,
    /// What went wrong.
    pub failures: Vec<Failure>,
    /// How long it took.
    pub wall_s: f64,
}

/// An original that doesn't go well under memcheck.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unclean {
    /// Its seed.
    pub seed: u64,
    /// What memcheck says first.
    pub says: String,
}

/// Something that went wrong.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Failure {
    /// The program's seed.
    pub seed: u64,
    /// What was applied; nothing: the original.
    pub rewrites: String,
    /// In a few words.
    pub what: String,
    /// What it printed.
    pub detail: String,
}

/// So many processes at once.
struct Slots {
    free: Mutex<usize>,
    changed: Condvar,
}

impl Slots {
    fn with<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.changed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        drop(free);
        let result = work();
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_one();
        result
    }
}

struct Lab<'a> {
    options: &'a Options,
    nvcc: PathBuf,
    scratch: &'a Path,
    emulator: &'a Emulator,
    gpu: Slots,
    /// When nothing may run any more.
    end: Option<Instant>,
    record: Mutex<Record>,
}

/// Does everything, and returns whether nothing went wrong.
///
/// # Errors
/// Without nvcc, compute-sanitizer or g++, and when the record can't be written.
pub fn run(options: &Options) -> Result<bool> {
    let start = Instant::now();
    let scratch = tempfile::tempdir()?;
    let nvcc = std::path::absolute(machine::find_nvcc(options.nvcc.as_deref())?)?;
    let emulator = match Emulator::try_get() {
        Ok(emulator) => emulator,
        Err(message) => bail!("{message}"),
    };
    std::fs::create_dir_all(&options.out).with_context(|| format!("{} cannot be made", options.out.display()))?;
    let machine = Machine::detect(&nvcc);
    let jobs = options.jobs.or(machine.cores).unwrap_or(1);
    let mut words = flags(options);
    words.push(MAIN_FILE.to_owned());
    let lab = Lab {
        options,
        scratch: scratch.path(),
        emulator,
        end: options.budget_s.map(|budget| start + Duration::from_secs(budget)),
        gpu: Slots {
            free: Mutex::new(options.on_gpu.max(1)),
            changed: Condvar::new(),
        },
        record: Mutex::new(Record {
            schema: SCHEMA,
            commit: options.commit.clone().unwrap_or_else(|| commit(Path::new("."))),
            date: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            machine,
            command: command_line("nvcc", &words),
            first_seed: options.seed,
            features: options.features.clone(),
            programs: 0,
            with_rewrites: 0,
            rewritten: 0,
            originals_agree: 0,
            rewritten_agree: 0,
            not_sanitized: Vec::new(),
            sanitized_clean: 0,
            sanitized: 0,
            applied: BTreeMap::new(),
            with_feature: BTreeMap::new(),
            failures: Vec::new(),
            wall_s: 0.0,
        }),
        nvcc,
    };
    ensure!(
        Command::new(lab.sanitizer()).arg("--version").output().is_ok(),
        "compute-sanitizer is missing: it comes with the CUDA toolkit"
    );
    let (next, begun) = (AtomicU64::new(options.seed), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                let mut session = Session::default();
                while !lab.is_late() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let program = generate(seed);
                    let wanted = |feature: &&str| options.features.iter().any(|wanted| wanted == feature);
                    if !options.features.is_empty() && !program.features.iter().any(wanted) {
                        continue;
                    }
                    // No compiler of today takes a wait in a kernel.
                    if program.waits > 0 {
                        continue;
                    }
                    if begun.fetch_add(1, Ordering::Relaxed) >= options.programs {
                        return;
                    }
                    if let Err(error) = lab.program(&mut session, seed) {
                        lab.fails(seed, "", "it could not be tried", &format!("{error:#}"));
                    }
                }
            });
        }
    });
    let mut record = lab.record.into_inner().unwrap_or_else(PoisonError::into_inner);
    record
        .failures
        .sort_by(|a, b| (a.seed, &a.rewrites).cmp(&(b.seed, &b.rewrites)));
    record.wall_s = rounded(start.elapsed());
    save(&record, &options.out)?;
    println!(
        "{} programs, {} with rewrites: {} originals print what the emulator does; of {} rewritten programs {} print the same; memcheck finds nothing in {} of {} (and something in {} originals); {} failures in {:.0} s",
        record.programs,
        record.with_rewrites,
        record.originals_agree,
        record.rewritten,
        record.rewritten_agree,
        record.sanitized_clean,
        record.sanitized,
        record.not_sanitized.len(),
        record.failures.len(),
        record.wall_s
    );
    for unclean in &record.not_sanitized {
        println!(
            "seed {}: {}",
            unclean.seed,
            unclean.says.lines().nth(2).unwrap_or_default()
        );
    }
    for failure in &record.failures {
        println!("seed {} {}: {}", failure.seed, failure.rewrites, failure.what);
    }
    Ok(record.failures.is_empty())
}

fn save(record: &Record, out: &Path) -> Result<()> {
    let mut text = serde_json::to_string_pretty(record)?;
    text.push('\n');
    let name = format!("{PREFIX}_{}.json", record.first_seed);
    let unfinished = out.join(format!(".{name}.unfinished"));
    std::fs::write(&unfinished, text)
        .and_then(|()| std::fs::rename(&unfinished, out.join(&name)))
        .with_context(|| format!("{} cannot be written", out.join(&name).display()))
}

fn flags(options: &Options) -> Vec<String> {
    let arch = format!("-arch={}", options.arch);
    ["-std=c++17", "-rdc=true", &arch].map(str::to_owned).to_vec()
}

impl Lab<'_> {
    fn sanitizer(&self) -> PathBuf {
        let beside = self.nvcc.with_file_name("compute-sanitizer");
        if beside.is_file() {
            beside
        } else {
            "compute-sanitizer".into()
        }
    }

    fn is_late(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    fn note(&self, change: impl FnOnce(&mut Record)) {
        change(&mut self.record.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn fails(&self, seed: u64, rewrites: &str, what: &str, detail: &str) {
        eprintln!("seed {seed} {rewrites}: {what}");
        let failure = Failure {
            seed,
            rewrites: rewrites.to_owned(),
            what: what.to_owned(),
            detail: process::tail(detail.trim(), 1500).replace(&self.scratch.display().to_string(), "$SCRATCH"),
        };
        self.note(|record| record.failures.push(failure));
    }

    fn program(&self, session: &mut Session, seed: u64) -> Result<()> {
        let program = generate(seed);
        let printed = print(&program);
        let wish = Wish {
            variants: self.options.variants,
            steps: 3,
        };
        let made = rewrite(session, &printed, &program.ordered_sites, seed, wish);
        let settings = Settings {
            schedules: 2,
            ..Settings::default()
        };
        let wanted = match emulated_output(self.emulator, &printed, &settings) {
            Ok(wanted) => wanted,
            Err(why) => {
                self.fails(seed, "", "the emulator finds a fault in it", &why);
                return Ok(());
            }
        };
        self.note(|record| {
            record.programs += 1;
            record.with_rewrites += u64::from(!made.variants.is_empty());
            for feature in &program.features {
                *record.with_feature.entry((*feature).to_owned()).or_default() += 1;
            }
        });
        for mistake in made.mistakes {
            self.fails(
                seed,
                &sequence(&mistake.steps),
                "gridfuse contradicts itself",
                &mistake.what,
            );
        }
        let directory = self.scratch.join(seed.to_string());
        let Some(original) = self.built(seed, "", &directory.join("original"), &printed.whole(&printed.files))? else {
            return Ok(());
        };
        if self.agrees(seed, "", &original, &wanted)? {
            self.note(|record| record.originals_agree += 1);
        }
        let unclean = self.memcheck(&original)?;
        if let Some(says) = unclean.clone() {
            self.note(|record| record.not_sanitized.push(Unclean { seed, says }));
        }
        for (number, variant) in made.variants.iter().enumerate() {
            if self.is_late() {
                break;
            }
            let steps = sequence(&variant.steps);
            self.note(|record| {
                record.rewritten += 1;
                for step in &variant.steps {
                    *record.applied.entry(step.id.clone()).or_default() += 1;
                }
            });
            let place = directory.join(number.to_string());
            let Some(built) = self.built(seed, &steps, &place, &printed.whole(&variant.files))? else {
                continue;
            };
            if self.agrees(seed, &steps, &built, &wanted)? {
                self.note(|record| record.rewritten_agree += 1);
            }
            if unclean.is_some() {
                continue;
            }
            self.note(|record| record.sanitized += 1);
            match self.memcheck(&built)? {
                None => self.note(|record| record.sanitized_clean += 1),
                Some(says) => self.fails(seed, &steps, "memcheck finds something", &says),
            }
        }
        // The machine's disk holds a few hundred programs, not all.
        let _ = std::fs::remove_dir_all(directory);
        Ok(())
    }

    fn built(&self, seed: u64, steps: &str, place: &Path, files: &BTreeMap<String, String>) -> Result<Option<PathBuf>> {
        write_files(place, files)?;
        let program = place.join("program");
        let mut command = Command::new(&self.nvcc);
        command
            .args(flags(self.options))
            .arg(MAIN_FILE)
            .arg("-o")
            .arg(&program)
            .current_dir(place);
        // A toolkit from Python packages does not know its own library directory.
        if let Some(toolkit) = self.nvcc.parent().and_then(Path::parent)
            && toolkit.join("lib/libcudadevrt.a").is_file()
        {
            command.arg("-L").arg(toolkit.join("lib"));
        }
        command.arg("-lcudadevrt");
        let finished = process::run(&mut command, Duration::from_secs(300))?;
        if finished.success() {
            return Ok(Some(program));
        }
        self.fails(seed, steps, "it doesn't compile", &finished.printed());
        Ok(None)
    }

    /// What compute-sanitizer's memcheck says first of a program; nothing when it finds nothing.
    fn memcheck(&self, program: &Path) -> Result<Option<String>> {
        let mut command = Command::new(self.sanitizer());
        command
            .args(["--tool", "memcheck", "--error-exitcode", &FOUND.to_string()])
            .arg(program);
        let finished = self.on_gpu(&mut command)?;
        if finished.status.is_some() && finished.code() != Some(FOUND) {
            return Ok(None);
        }
        let said: Vec<&str> = finished
            .stdout
            .lines()
            .filter(|line| line.starts_with("========="))
            .take(16)
            .collect();
        Ok(Some(format!("{}\n{}", finished.describe(), said.join("\n"))))
    }

    fn on_gpu(&self, command: &mut Command) -> Result<Finished> {
        let limit = Duration::from_secs(self.options.timeout);
        self.gpu.with(|| process::run(command, limit))
    }

    /// Whether a program prints what the emulator printed, and ends with the same code.
    fn agrees(&self, seed: u64, steps: &str, program: &Path, wanted: &(i32, String)) -> Result<bool> {
        let finished = self.on_gpu(&mut Command::new(program))?;
        if finished.code() == Some(wanted.0) && finished.stdout == wanted.1 {
            return Ok(true);
        }
        let detail = format!(
            "{}\n--- expected {}\n{}\n--- found\n{}",
            finished.describe(),
            wanted.0,
            wanted.1,
            finished.printed()
        );
        self.fails(seed, steps, "it prints something else", &detail);
        Ok(false)
    }
}
