//! Tries one program: what gridfuse makes of it must compile and do what the original does, under every schedule.

use std::fmt;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::ast::Program;
use super::fix::{self, fixed};
use super::print::{MAIN_FILE, Printed, print};
use super::rewrite::{Mistake, Rewrites, Said, Session, Step, Variant, Wish, replay, rewrite, sequence};
use crate::emulator;
use crate::emulator::build::{BuildFailure, Emulator};
use crate::emulator::run::{End, Executable, Outcome, RunOptions};

/// What is tried.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Schedules for each program.
    pub schedules: u64,
    /// The first schedule's seed.
    pub first_schedule: u64,
    /// Rewritten programs.
    pub wish: Wish,
    /// How long a run may take.
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            schedules: 4,
            first_schedule: 1,
            wish: Wish { variants: 14, steps: 3 },
            timeout: Duration::from_secs(20),
        }
    }
}

/// What can go wrong, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The rewritten program prints something else, or ends with another code.
    Mismatch,
    /// The rewritten program has a race, reads beside an array, waits for ever, …
    Fault,
    /// The rewritten program doesn't compile.
    RewrittenBuild,
    /// gridfuse panicked.
    Panic,
    /// gridfuse contradicts itself, or makes text that it can't parse.
    Contradiction,
    /// The generated program has a fault: a mistake of the generator or the emulator.
    OriginalFault,
    /// The generated program doesn't always print the same: a mistake of the generator or the emulator.
    OriginalVaries,
    /// The generated program doesn't compile: a mistake of the generator or the emulator.
    OriginalBuild,
}

impl Class {
    /// Whether the blame is with the program that was generated, not with what gridfuse made of it.
    pub fn is_original(self) -> bool {
        matches!(
            self,
            Class::OriginalFault | Class::OriginalVaries | Class::OriginalBuild
        )
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Mismatch => "a rewritten program computes something else",
            Class::Fault => "a rewritten program has a fault",
            Class::RewrittenBuild => "a rewritten program doesn't compile",
            Class::Panic => "gridfuse panicked",
            Class::Contradiction => "gridfuse contradicts itself",
            Class::OriginalFault => "the generated program has a fault",
            Class::OriginalVaries => "the generated program depends on the schedule",
            Class::OriginalBuild => "the generated program doesn't compile",
        })
    }
}

/// Something that went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What.
    pub class: Class,
    /// What was applied to the program.
    pub steps: Vec<Step>,
    /// Seed of the schedule, where it matters.
    pub schedule: Option<u64>,
    /// All that is known, in lines.
    pub detail: String,
    /// The kind of the first fault, so that a smaller program is smaller for the same reason.
    pub fault: Option<String>,
}

impl Failure {
    /// A mistake that showed without running anything.
    pub fn of(mistake: Mistake) -> Failure {
        Failure {
            class: if mistake.panic {
                Class::Panic
            } else {
                Class::Contradiction
            },
            steps: mistake.steps,
            schedule: None,
            detail: mistake.what,
            fault: None,
        }
    }

    /// What failures that look alike have in common.
    pub fn kind(&self) -> String {
        let failure = self;
        let ids: Vec<&str> = failure.steps.iter().map(|s| s.id.as_str()).collect();
        let mut text = failure.class.to_string();
        if !ids.is_empty() {
            let _ = write!(text, " after {}", ids.join(","));
        }
        if let Some(fault) = &failure.fault {
            let _ = write!(text, " ({fault})");
        }
        let error = match failure.class {
            Class::RewrittenBuild | Class::OriginalBuild => failure.detail.lines().find(|line| line.contains("error")),
            Class::Panic | Class::Contradiction => failure.detail.lines().next(),
            _ => None,
        };
        if let Some(error) = error {
            let from = error.find("error").unwrap_or(0);
            let _ = write!(text, ": {}", without_names(&error[from..]));
        }
        text
    }
}

/// A message without the names in it.
pub(super) fn without_names(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split(['`', '\'', '‘', '’', '"']).enumerate() {
        out.push_str(if index % 2 == 1 { "_" } else { part });
    }
    out.truncate(out.char_indices().nth(160).map_or(out.len(), |(at, _)| at));
    out
}

/// What came of a program.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Verdicts.
    pub said: Vec<Said>,
    /// Sequences that were applied.
    pub sequences: Vec<String>,
    /// Runs of original and rewritten programs.
    pub runs: u64,
    /// What went wrong.
    pub failures: Vec<Failure>,
    /// Time that rewriting took.
    pub rewriting: Duration,
    /// Time that building took.
    pub building: Duration,
    /// Time that running took.
    pub running: Duration,
}

/// Tries a program.
pub fn check(session: &mut Session, emulator: &Emulator, program: &Program, seed: u64, settings: &Settings) -> Checked {
    let printed = print(program);
    let begin = Instant::now();
    let rewrites = rewrite(session, &printed, &program.ordered_sites, seed, settings.wish);
    let mut checked = Checked {
        rewriting: begin.elapsed(),
        ..Checked::default()
    };
    let Rewrites {
        said,
        mut variants,
        mistakes,
    } = rewrites;
    match fixed(&printed) {
        Ok(fixed) => variants.extend(fixed),
        Err(story) => checked.failures.push(Failure::of(unfixed(story))),
    }
    checked.said = said;
    checked.sequences = variants.iter().map(|v| sequence(&v.steps)).collect();
    checked.failures.extend(mistakes.into_iter().map(|mistake| Failure {
        class: if mistake.panic {
            Class::Panic
        } else {
            Class::Contradiction
        },
        steps: mistake.steps,
        schedule: None,
        detail: mistake.what,
        fault: None,
    }));
    run(emulator, &printed, &variants, settings, &mut checked);
    checked
}

/// Whether a program fails in the same way as another one did.
pub fn fails_alike(
    session: &mut Session,
    emulator: &Emulator,
    program: &Program,
    failure: &Failure,
    settings: &Settings,
) -> Option<Failure> {
    let printed = print(program);
    let by_fix = failure.steps.first().is_some_and(|step| step.id == fix::ID);
    let variant = if failure.class.is_original() {
        None
    } else if by_fix {
        match fixed(&printed) {
            Ok(variant) => Some(variant?),
            Err(story) => return (failure.class == Class::Contradiction).then(|| Failure::of(unfixed(story))),
        }
    } else {
        match replay(session, &printed, &failure.steps) {
            Ok(variant) => Some(variant?),
            Err(mistake) => {
                let class = if mistake.panic {
                    Class::Panic
                } else {
                    Class::Contradiction
                };
                return (class == failure.class).then_some(Failure {
                    class,
                    steps: mistake.steps,
                    schedule: None,
                    detail: mistake.what,
                    fault: None,
                });
            }
        }
    };
    if matches!(failure.class, Class::Panic | Class::Contradiction) {
        return None;
    }
    let mut checked = Checked::default();
    let variants: Vec<Variant> = variant.into_iter().collect();
    run(emulator, &printed, &variants, settings, &mut checked);
    checked.failures.into_iter().find(|f| f.kind() == failure.kind())
}

/// `gridfuse check --fix` fails.
fn unfixed(story: String) -> Mistake {
    Mistake {
        steps: vec![Step {
            site: 0,
            id: fix::ID.to_owned(),
            option: None,
        }],
        what: story,
        panic: false,
    }
}

fn emulated(files: &std::collections::BTreeMap<String, String>) -> emulator::Program {
    let main = files.get(MAIN_FILE).map_or("", String::as_str);
    let mut program = emulator::Program::new(MAIN_FILE, main);
    for (name, text) in files.iter().filter(|(name, _)| *name != MAIN_FILE) {
        program = program.with_file(PathBuf::from(name), text.as_str());
    }
    program
}

fn run(emulator: &Emulator, printed: &Printed, variants: &[Variant], settings: &Settings, checked: &mut Checked) {
    let begin = Instant::now();
    let original = emulated(&printed.whole(&printed.files));
    let rewritten: Vec<emulator::Program> = variants.iter().map(|v| emulated(&printed.whole(&v.files))).collect();
    let mut all = vec![&original];
    all.extend(&rewritten);
    let mut built = emulator.build_all(&all).into_iter();
    checked.building = begin.elapsed();
    let begin = Instant::now();
    let mut fail = |class, steps: &[Step], schedule, detail: String, fault| {
        checked.failures.push(Failure {
            class,
            steps: steps.to_vec(),
            schedule,
            detail,
            fault,
        });
    };
    let original = match built.next() {
        Some(Ok(executable)) => executable,
        Some(Err(error)) => return fail(Class::OriginalBuild, &[], None, short(&error), None),
        None => return,
    };
    let mut runs = 0;
    let wanted = match expected(&original, settings, printed.waits > 0, &mut runs) {
        Ok(output) => output,
        Err((class, schedule, detail, fault)) => {
            fail(class, &[], Some(schedule), detail, fault);
            checked.runs += runs;
            return;
        }
    };
    for (variant, executable) in variants.iter().zip(built) {
        let executable = match executable {
            Ok(executable) => executable,
            Err(error) => {
                fail(Class::RewrittenBuild, &variant.steps, None, short(&error), None);
                continue;
            }
        };
        // Where all waits are replaced, the program is one of today's CUDA.
        let replaced = variant.steps.iter().filter(|step| step.id == "replace-device-sync");
        let waits = replaced.count() < printed.waits;
        for schedule in schedules(settings) {
            runs += 1;
            let outcome = match executable.run(&options(schedule, settings, waits)) {
                Ok(outcome) => outcome,
                Err(error) => {
                    fail(Class::Fault, &variant.steps, Some(schedule), error.to_string(), None);
                    break;
                }
            };
            if let Some(fault) = fault_of(&outcome) {
                let detail = outcome.to_string();
                fail(Class::Fault, &variant.steps, Some(schedule), detail, Some(fault));
                break;
            }
            if (outcome.end, outcome.stdout.as_str()) != (wanted.0, wanted.1.as_str()) {
                let detail = format!("--- expected\n{}--- found\n{}", wanted.1, outcome);
                fail(Class::Mismatch, &variant.steps, Some(schedule), detail, None);
                break;
            }
        }
    }
    checked.runs += runs;
    checked.running = begin.elapsed();
}

fn schedules(settings: &Settings) -> std::ops::Range<u64> {
    settings.first_schedule..settings.first_schedule + settings.schedules.max(1)
}

fn options(schedule: u64, settings: &Settings, waits: bool) -> RunOptions {
    RunOptions {
        timeout: settings.timeout,
        device_sync: waits,
        ..RunOptions::seed(schedule)
    }
}

/// The exit code of a program under the emulator, and what it prints: the same under all schedules.
///
/// # Errors
/// When it doesn't compile, has a fault, or doesn't always do the same; with what it was.
pub fn emulated_output(emulator: &Emulator, printed: &Printed, settings: &Settings) -> Result<(i32, String), String> {
    let program = emulated(&printed.whole(&printed.files));
    let built = emulator.build_all(&[&program]).into_iter().next();
    let executable = match built {
        Some(Ok(executable)) => executable,
        Some(Err(error)) => return Err(short(&error)),
        None => return Err("it wasn't built".to_owned()),
    };
    let (end, stdout) = expected(&executable, settings, printed.waits > 0, &mut 0)
        .map_err(|(class, _, detail, _)| format!("{class}: {detail}"))?;
    match end {
        End::Code(code) => Ok((code, stdout)),
        End::Signal(_) | End::TimedOut => Err("it didn't end by itself".to_owned()),
    }
}

type Unexpected = (Class, u64, String, Option<String>);

/// What the original prints under all schedules; whether its kernels wait for their children.
fn expected(
    executable: &Executable,
    settings: &Settings,
    waits: bool,
    runs: &mut u64,
) -> Result<(End, String), Unexpected> {
    let mut wanted: Option<(End, String)> = None;
    for schedule in schedules(settings) {
        *runs += 1;
        let outcome = executable
            .run(&options(schedule, settings, waits))
            .map_err(|error| (Class::OriginalFault, schedule, error.to_string(), None))?;
        if let Some(fault) = fault_of(&outcome) {
            return Err((Class::OriginalFault, schedule, outcome.to_string(), Some(fault)));
        }
        let now = (outcome.end, outcome.stdout.clone());
        match &wanted {
            None => wanted = Some(now),
            Some(first) if *first == now => {}
            Some(first) => {
                let detail = format!("--- first\n{}--- then\n{outcome}", first.1);
                return Err((Class::OriginalVaries, schedule, detail, None));
            }
        }
    }
    wanted.ok_or_else(|| (Class::OriginalFault, 0, "no run".to_owned(), None))
}

/// The kind of fault that ended a run, or how else it didn't end by itself.
fn fault_of(outcome: &Outcome) -> Option<String> {
    match outcome.end {
        End::TimedOut => return Some("timeout".to_owned()),
        End::Signal(signal) => return Some(format!("signal {signal}")),
        End::Code(_) => {}
    }
    if !outcome.is_fault() {
        return None;
    }
    // The last event is the one that ended it.
    let kind = outcome.events.last().map(|event| format!("{:?}", event.kind));
    Some(kind.unwrap_or_else(|| "fault".to_owned()))
}

fn short(error: &BuildFailure) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().take(40).collect();
    lines.join("\n")
}
