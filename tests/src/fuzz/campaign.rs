//! Many programs on all cores, and what came of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::ast::Program;
use super::check::{Checked, Class, Failure, Settings, check, fails_alike, without_names};
use super::generate::generate;
use super::print::print;
use super::rewrite::{HEADER, Session, replay, rewrite, sequence};
use super::shrink::shrink;
use crate::emulator::Emulator;

/// How long, how much, where to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The first seed.
    pub seed: u64,
    /// Stop after so many seeds.
    pub programs: Option<u64>,
    /// Of the seeds' programs only those with one of these features; all of them if it is empty.
    pub features: Vec<String>,
    /// Stop after so long.
    pub time: Option<Duration>,
    /// Threads.
    pub jobs: usize,
    /// Where failures go.
    pub keep: Option<PathBuf>,
    /// Time for making a failing program smaller; only the first of a kind is.
    pub shrink: Duration,
    /// What is tried.
    pub settings: Settings,
    /// A bar on standard error.
    pub progress: bool,
    /// The commit that is tried, for the record.
    pub commit: Option<String>,
    /// Called once with what there is, where programs take so long that nobody should wait for them: a minute beyond the time.
    pub late: fn(&Summary),
}

/// What came of all programs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// What was asked for: the arguments of the command.
    pub command: String,
    /// The commit that was tried, as it was told.
    pub commit: Option<String>,
    /// Schedules for each program.
    pub schedules: u64,
    /// Programs that were generated.
    pub programs: u64,
    /// The first seed.
    pub first_seed: u64,
    /// Those with at least one rewrite to apply.
    pub with_rewrites: u64,
    /// Rewritten programs.
    pub rewritten: u64,
    /// Runs under the emulator.
    pub runs: u64,
    /// Failures by class.
    pub failures: BTreeMap<Class, u64>,
    /// Failures that look alike: what they are, how many, the first seed.
    pub kinds: BTreeMap<String, (u64, u64)>,
    /// How many programs have a feature.
    pub features: BTreeMap<&'static str, u64>,
    /// How many launches there are for each rewrite and verdict.
    pub verdicts: BTreeMap<String, BTreeMap<String, u64>>,
    /// Reasons for refusals, names left out; not in a record.
    #[serde(skip)]
    pub refusals: BTreeMap<String, u64>,
    /// Sequences of rewrites that were applied; not in a record.
    #[serde(skip)]
    pub sequences: BTreeMap<String, u64>,
    /// Elapsed time.
    pub seconds: f64,
    /// Time in gridfuse, in the compiler and in the emulator, of all threads.
    pub seconds_of: [f64; 3],
}

/// A failure with its program.
#[derive(Clone, Debug)]
pub struct Found {
    /// The program's seed.
    pub seed: u64,
    /// What went wrong.
    pub failure: Failure,
    /// The smallest program that fails alike.
    pub minimal: Option<Program>,
}

/// Tries many programs.
pub fn run(plan: &Plan, emulator: Option<&Emulator>) -> io::Result<(Summary, Vec<Found>)> {
    let begin = Instant::now();
    let next = AtomicU64::new(plan.seed);
    let stop = AtomicBool::new(false);
    let summary = Mutex::new(Summary {
        command: command(),
        commit: plan.commit.clone(),
        schedules: plan.settings.schedules,
        first_seed: plan.seed,
        ..Summary::default()
    });
    let found = Mutex::new(Vec::new());
    let bar = bar(plan);
    let shrinking = Mutex::new(BTreeSet::new());
    let problem: Mutex<Option<io::Error>> = Mutex::new(None);
    let running = Running::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            running.watch(&bar, plan.time.map(|time| begin + time), || {
                if let Ok(mut summary) = summary.lock() {
                    summary.seconds = begin.elapsed().as_secs_f64();
                    (plan.late)(&summary);
                }
            });
        });
        for _ in 0..plan.jobs.max(1) {
            scope.spawn(|| {
                let _worker = running.worker();
                let mut session = Session::default();
                loop {
                    let late = plan.time.is_some_and(|time| begin.elapsed() >= time);
                    if late || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if plan.programs.is_some_and(|count| seed - plan.seed >= count) {
                        return;
                    }
                    let program = generate(seed);
                    let wanted = |feature: &&str| plan.features.iter().any(|wanted| wanted == feature);
                    if !plan.features.is_empty() && !program.features.iter().any(wanted) {
                        continue;
                    }
                    let _seed = running.seed(seed);
                    let checked = match emulator {
                        Some(emulator) => check(&mut session, emulator, &program, seed, &plan.settings),
                        None => dry(&mut session, &program, seed, &plan.settings),
                    };
                    if let Ok(mut summary) = summary.lock() {
                        summary.add(&program, &checked);
                    }
                    bar.inc(1);
                    for failure in checked.failures {
                        let kind = failure.kind();
                        say(&bar, &format!("seed {seed}: {kind}"));
                        let first = shrinking.lock().is_ok_and(|mut kinds| kinds.insert(kind.clone()));
                        if let Ok(mut summary) = summary.lock() {
                            *summary.failures.entry(failure.class).or_default() += 1;
                            summary.kinds.entry(kind).or_insert((0, seed)).0 += 1;
                        }
                        let minimal = first
                            .then(|| minimal(&mut session, emulator, &program, &failure, plan))
                            .flatten();
                        let one = Found { seed, failure, minimal };
                        if let Some(keep) = &plan.keep
                            && let Err(error) = write(&mut session, keep, &program, &one)
                        {
                            stop.store(true, Ordering::Relaxed);
                            if let Ok(mut problem) = problem.lock() {
                                *problem = Some(error);
                            }
                        }
                        if let Ok(mut found) = found.lock() {
                            found.push(one);
                        }
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    if let Some(error) = problem.into_inner().ok().flatten() {
        return Err(error);
    }
    let mut summary = summary.into_inner().unwrap_or_default();
    summary.seconds = begin.elapsed().as_secs_f64();
    Ok((summary, found.into_inner().unwrap_or_default()))
}

/// The arguments of the command, without the place where failures go.
fn command() -> String {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let keep = all.iter().position(|word| word == "--keep");
    let is_place = |index: usize| keep.is_some_and(|at| index == at || index == at + 1);
    let words = all.iter().enumerate().filter(|(index, _)| !is_place(*index));
    words.map(|(_, word)| word.as_str()).collect::<Vec<_>>().join(" ")
}

/// A line above the bar, or where there is none to be seen.
fn say(bar: &ProgressBar, line: &str) {
    if bar.is_hidden() {
        eprintln!("{line}");
    } else {
        bar.println(line);
    }
}

/// The programs that are being tried, so that one that takes for ever is known by its seed.
#[derive(Default)]
struct Running {
    seeds: Mutex<BTreeMap<u64, Instant>>,
    workers: AtomicU64,
    begun: AtomicBool,
}

/// A thread that tries programs, while it lives.
struct Worker<'a>(&'a Running);

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        self.0.workers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A program that is being tried, while this lives.
struct Tried<'a>(&'a Running, u64);

impl Drop for Tried<'_> {
    fn drop(&mut self) {
        if let Ok(mut seeds) = self.0.seeds.lock() {
            seeds.remove(&self.1);
        }
    }
}

impl Running {
    /// A program that takes longer is told.
    const LONG: Duration = Duration::from_secs(90);

    fn worker(&self) -> Worker<'_> {
        self.workers.fetch_add(1, Ordering::Relaxed);
        self.begun.store(true, Ordering::Relaxed);
        Worker(self)
    }

    fn seed(&self, seed: u64) -> Tried<'_> {
        if let Ok(mut seeds) = self.seeds.lock() {
            seeds.insert(seed, Instant::now());
        }
        Tried(self, seed)
    }

    /// Tells each program that takes long, once, until all threads are done; and when the time is over for good.
    fn watch(&self, bar: &ProgressBar, mut end: Option<Instant>, late: impl Fn()) {
        let mut told = BTreeSet::new();
        while !self.begun.load(Ordering::Relaxed) || self.workers.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(Duration::from_millis(20));
            if let Ok(seeds) = self.seeds.lock() {
                for (seed, since) in seeds.iter() {
                    if since.elapsed() >= Self::LONG && told.insert(*seed) {
                        say(
                            bar,
                            &format!("seed {seed} has been tried for {} s", Self::LONG.as_secs()),
                        );
                    }
                }
            }
            if end.is_some_and(|end| end.elapsed() >= Duration::from_secs(60)) {
                end = None;
                late();
            }
        }
    }
}

fn bar(plan: &Plan) -> ProgressBar {
    if !plan.progress {
        return ProgressBar::hidden();
    }
    let bar = match plan.programs {
        Some(count) => ProgressBar::new(count),
        None => ProgressBar::no_length(),
    };
    let form = match plan.programs {
        Some(_) => "{elapsed_precise} {wide_bar} {pos}/{len} programs, {per_sec}, {eta} left",
        None => "{elapsed_precise} {spinner} {pos} programs, {per_sec}",
    };
    if let Ok(style) = ProgressStyle::with_template(form) {
        bar.set_style(style);
    }
    bar
}

/// Without the emulator.
fn dry(session: &mut Session, program: &Program, seed: u64, settings: &Settings) -> Checked {
    let begin = Instant::now();
    let rewrites = rewrite(session, &print(program), &program.ordered_sites, seed, settings.wish);
    let failures = rewrites.mistakes.into_iter().map(Failure::of);
    Checked {
        failures: failures.collect(),
        said: rewrites.said,
        sequences: rewrites.variants.iter().map(|v| sequence(&v.steps)).collect(),
        rewriting: begin.elapsed(),
        ..Checked::default()
    }
}

/// The smallest program that fails alike.
pub fn minimal(
    session: &mut Session,
    emulator: Option<&Emulator>,
    program: &Program,
    failure: &Failure,
    plan: &Plan,
) -> Option<Program> {
    let emulator = emulator?;
    if plan.shrink.is_zero() {
        return None;
    }
    let mut settings = plan.settings;
    if let Some(schedule) = failure.schedule.filter(|_| failure.class != Class::OriginalVaries) {
        // The schedule that failed, and a few that may as well once the program is smaller.
        settings.first_schedule = schedule;
        settings.schedules = settings.schedules.max(3);
    }
    let fails = |candidate: &Program| fails_alike(session, emulator, candidate, failure, &settings).is_some();
    Some(shrink(program, plan.shrink, fails).0)
}

impl Summary {
    fn add(&mut self, program: &Program, checked: &Checked) {
        self.programs += 1;
        self.with_rewrites += u64::from(!checked.sequences.is_empty());
        self.rewritten += checked.sequences.len() as u64;
        self.runs += checked.runs;
        for feature in &program.features {
            *self.features.entry(feature).or_default() += 1;
        }
        for said in &checked.said {
            let of = self.verdicts.entry(said.id.to_owned()).or_default();
            *of.entry(said.verdict.to_owned()).or_default() += 1;
            if said.verdict == "ineligible" {
                for reason in &said.reasons {
                    let reason = format!("{}: {}", said.id, without_names(reason));
                    *self.refusals.entry(reason).or_default() += 1;
                }
            }
        }
        for sequence in &checked.sequences {
            let ids: Vec<&str> = sequence
                .split(',')
                .map(|s| s.split(['@', '=']).next().unwrap_or(s))
                .collect();
            *self.sequences.entry(ids.join(",")).or_default() += 1;
        }
        let times = [checked.rewriting, checked.building, checked.running];
        for (sum, time) in self.seconds_of.iter_mut().zip(times) {
            *sum += time.as_secs_f64();
        }
    }

    /// For people.
    pub fn text(&self, details: bool) -> String {
        let mut out = String::new();
        let percent = |part: u64| 100.0 * part as f64 / self.programs.max(1) as f64;
        let _ = writeln!(
            out,
            "{} programs from seed {} in {:.1} s: {} with rewrites ({:.0} %), {} rewritten programs, {} runs",
            self.programs,
            self.first_seed,
            self.seconds,
            self.with_rewrites,
            percent(self.with_rewrites),
            self.rewritten,
            self.runs
        );
        let [rewriting, building, running] = self.seconds_of.map(|s| s / self.programs.max(1) as f64);
        let _ = writeln!(
            out,
            "for one program: {rewriting:.3} s rewriting, {building:.3} s compiling, {running:.3} s running"
        );
        if self.failures.is_empty() {
            let _ = writeln!(out, "no failures");
        }
        for (class, count) in &self.failures {
            let _ = writeln!(out, "{count:6} {class}");
        }
        for (kind, (count, seed)) in &self.kinds {
            let _ = writeln!(out, "{count:6} {kind} (seed {seed})");
        }
        if details {
            let _ = writeln!(out, "\nlaunches by verdict");
            for (id, verdicts) in &self.verdicts {
                let of = |name: &str| verdicts.get(name).copied().unwrap_or(0);
                let _ = writeln!(
                    out,
                    "  {id:22} eligible {:6}  assumes {:6}  ineligible {:6}",
                    of("eligible"),
                    of("assumes"),
                    of("ineligible")
                );
            }
            let most = |out: &mut String, title: &str, counts: Vec<(&str, u64)>, limit: usize| {
                let _ = writeln!(out, "\n{title}");
                let mut counts = counts;
                counts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
                for (name, count) in counts.into_iter().take(limit) {
                    let _ = writeln!(out, "{count:6} {name}");
                }
            };
            let refusals = self.refusals.iter().map(|(r, n)| (r.as_str(), *n)).collect();
            most(&mut out, "most frequent refusals", refusals, 40);
            let sequences = self.sequences.iter().map(|(r, n)| (r.as_str(), *n)).collect();
            most(&mut out, "sequences", sequences, 40);
            let features = self.features.iter().map(|(f, n)| (*f, *n)).collect();
            most(&mut out, "programs with a feature", features, 100);
        }
        out
    }
}

/// Writes a failure: the program, what was made of it, the story, and the smallest program.
fn write(session: &mut Session, keep: &Path, program: &Program, found: &Found) -> io::Result<()> {
    let class = serde_json::to_string(&found.failure.class)?;
    let mut number = 0;
    let directory = loop {
        let name = format!("{}-{}-{number}", found.seed, class.trim_matches('"'));
        let directory = keep.join(name);
        if !directory.exists() {
            break directory;
        }
        number += 1;
    };
    write_program(session, &directory, program, found)?;
    fs::write(directory.join("failure.txt"), story(found))?;
    if let Some(minimal) = &found.minimal {
        write_program(session, &directory.join("minimal"), minimal, found)?;
    }
    Ok(())
}

fn write_program(session: &mut Session, directory: &Path, program: &Program, found: &Found) -> io::Result<()> {
    let printed = print(program);
    write_files(directory, &printed.whole(&printed.files))?;
    if !found.failure.steps.is_empty()
        && let Ok(Some(variant)) = replay(session, &printed, &found.failure.steps)
    {
        write_files(&directory.join("rewritten"), &printed.whole(&variant.files))?;
    }
    Ok(())
}

/// Writes files into a directory.
pub fn write_files(directory: &Path, files: &BTreeMap<String, String>) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for (name, text) in files {
        let file = directory.join(name);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(file, text)?;
    }
    Ok(())
}

/// A failure in words.
fn story(found: &Found) -> String {
    let failure = &found.failure;
    let mut out = format!("seed {}: {}\n", found.seed, failure.class);
    if !failure.steps.is_empty() {
        let _ = writeln!(out, "after {}", sequence(&failure.steps));
    }
    if let Some(schedule) = failure.schedule {
        let _ = writeln!(out, "schedule {schedule}");
    }
    out.push_str(&failure.detail);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// A failure in words, with the smallest program that was found.
pub fn report(found: &Found) -> String {
    let mut out = story(found);
    let Some(minimal) = &found.minimal else { return out };
    let printed = print(minimal);
    for (name, text) in printed.whole(&printed.files) {
        let _ = writeln!(out, "--- smallest {name}\n{text}");
    }
    if let Ok(Some(variant)) = replay(&mut Session::default(), &printed, &found.failure.steps) {
        for (name, text) in &variant.files {
            if printed.files.get(name) != Some(text) && name != HEADER {
                let _ = writeln!(out, "--- rewritten {name}\n{text}");
            }
        }
    }
    out
}
