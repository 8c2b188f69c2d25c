//! Running built programs: do they compute the same, and how long do they take?

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::build::BuildFailure;
use super::build_messages::line_before;
use super::compare::{Comparison, compare, output_difference, unstable};
use super::place::Place;
use super::process::Finished;
use super::recording::{Moment, Recording};
use super::report::{Agreement, BuildMessage, CudaErrorReport, Kernel, NotShown, Outcome, Run, median};
use super::{Request, advice, kernels};

/// So many characters of what a program says are told.
const MOST_SAID: usize = 80;

/// The programs of one variant: `Err`: what the compiler said.
pub struct Programs {
    /// Measures times.
    pub timed: Result<PathBuf, BuildFailure>,
    /// Looks at memory, and counts launches.
    pub checked: Result<PathBuf, BuildFailure>,
}

/// What the original has computed.
pub struct Captured {
    recording: Recording,
    /// What two runs of it disagree about.
    unstable: BTreeSet<Moment>,
    stdout: [String; 2],
    code: Option<i32>,
}

/// What the rewritten programs are compared with.
pub struct Baseline {
    /// What became of the original.
    pub outcome: Outcome,
    /// `None`: it didn't finish.
    captured: Option<Captured>,
    /// Why it didn't.
    why: String,
    /// In its place: the first rewritten program that came to its end, and what that has computed.
    peer: Mutex<Option<(String, Captured)>>,
}

impl Baseline {
    /// Two runs of it have computed the same; `None`: not known.
    pub fn deterministic(&self) -> Option<bool> {
        self.captured.as_ref().map(Captured::deterministic)
    }
}

impl Captured {
    /// Two runs of it have computed the same.
    pub fn deterministic(&self) -> bool {
        self.unstable.is_empty()
    }

    /// Launches by device code.
    pub fn device_launches(&self) -> Option<u64> {
        self.recording.launches
    }

    /// Its kernels.
    pub fn kernels(&self) -> &[Kernel] {
        &self.recording.kernels
    }

    /// What CUDA complained about.
    pub fn errors(&self) -> Vec<CudaErrorReport> {
        self.recording.errors.iter().map(Into::into).collect()
    }
}

/// A run that was timed.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// GPU time of the launches that count, in ms.
    pub ms: f64,
    /// How many that are.
    pub launches: usize,
    /// From the program's beginning to its end.
    pub seconds: f64,
}

/// Runs the programs of a request.
#[derive(Clone, Copy)]
pub struct Runner<'a> {
    /// What is wanted.
    pub request: &'a Request,
    /// On which machine.
    pub place: &'a Place,
    /// The kernels that launch others or are launched by device code.
    pub kernels: &'a BTreeSet<String>,
    /// Where files may be left.
    pub scratch: &'a Path,
    /// The user's texts, before any rewrite.
    pub original: &'a BTreeMap<PathBuf, String>,
    /// Where programs run.
    pub directory: Option<&'a Path>,
    /// How a path is shown.
    pub show: &'a (dyn Fn(&Path) -> String + Sync),
    /// Which GPU programs see, as in CUDA_VISIBLE_DEVICES; `None`: as they would by themselves.
    pub device: Option<&'a str>,
}

impl Runner<'_> {
    fn run(&self, program: &Path, mode: &str, name: &str) -> Result<(Finished, Recording), Outcome> {
        self.run_within(program, mode, name, self.request.timeout)
    }

    fn run_within(
        &self,
        program: &Path,
        mode: &str,
        name: &str,
        limit: Duration,
    ) -> Result<(Finished, Recording), Outcome> {
        let out = self.scratch.join(name);
        // What an earlier program wrote must not count for one that writes nothing.
        let _ = std::fs::remove_file(&out);
        let mut bin = out.clone().into_os_string();
        bin.push(".bin");
        let bin = PathBuf::from(bin);
        let mut command = Command::new(program);
        command
            .args(&self.request.args)
            .env("GRIDFUSE_MEASURE", mode)
            .env("GRIDFUSE_MEASURE_OUT", &out)
            // Modules are loaded at once, not within what is measured.
            .env("CUDA_MODULE_LOADING", "EAGER");
        if let Some(device) = self.device {
            command.env("CUDA_VISIBLE_DEVICES", device);
        }
        if let Some(directory) = self.directory {
            command.current_dir(directory);
        }
        let done = self
            .place
            .run(&mut command, self.scratch, limit, None, &[&out, &bin])
            .map_err(|error| failed(format!("cannot be run: {error}"), None))?;
        if done.status.is_none() {
            return Err(Outcome::TimedOut {
                seconds: limit.as_secs_f64(),
            });
        }
        let mut recording = Recording::read(&out).map_err(|_| {
            let message = format!(
                "launched none of the measured kernels ({})\n{}",
                status(&done),
                done.last_words()
            );
            failed(message, signal_advice(&done))
        })?;
        recording.kernels = kernels::concerned(std::mem::take(&mut recording.kernels), self.kernels);
        if !recording.complete {
            let error = recording.errors.first();
            let why = error.map_or(String::new(), |error| format!(": {}", error.name));
            let message = format!("broke off ({}){why}\n{}", status(&done), done.last_words());
            return Err(failed(
                message,
                error_advice(&recording).or_else(|| signal_advice(&done)),
            ));
        }
        Ok((done, recording))
    }

    /// Times of the runs that count: total GPU time and number of launches.
    fn times(&self, program: &Path) -> Result<(Vec<f64>, usize), Outcome> {
        let mut times = Vec::new();
        let mut launches = 0;
        for round in 0..=self.request.repeat {
            let timed = self.timed(program, self.request.timeout)?;
            launches = timed.launches;
            if round > 0 {
                times.push(timed.ms);
            }
        }
        Ok((times, launches))
    }

    /// Times one run, which is given up after `limit`.
    pub fn timed(&self, program: &Path, limit: Duration) -> Result<Timed, Outcome> {
        let begin = Instant::now();
        let (_, recording) = self.run_within(program, "time", "times", limit)?;
        let seconds = begin.elapsed().as_secs_f64();
        // An error of kernels shows when they are waited for; their times mean nothing then.
        if let Some(error) = recording.errors.iter().find(|error| error.during == "run") {
            let advice = advice::about(&error.name);
            return Err(failed(format!("failed while it was timed: {}", error.name), advice));
        }
        let (launches, ms) = recording.total();
        if launches == 0 {
            return Err(failed("no launch could be timed".to_owned(), None));
        }
        Ok(Timed { ms, launches, seconds })
    }

    fn outcome(
        &self,
        programs: &Programs,
        plain: &BTreeMap<PathBuf, String>,
        judge: impl FnOnce(&Path) -> Result<(Agreement, Recording), Outcome>,
    ) -> Outcome {
        let (timed, checked) = match (&programs.timed, &programs.checked) {
            (Ok(timed), Ok(checked)) => (timed, checked),
            (Err(failure), _) | (_, Err(failure)) => return self.not_built(failure, plain),
        };
        let (agreement, recording) = match judge(checked) {
            Ok(judged) => judged,
            Err(outcome) => return outcome,
        };
        match self.times(timed) {
            Ok((times_ms, host_launches)) => Outcome::Ran(Box::new(Run {
                median_ms: median(&times_ms).unwrap_or_default(),
                times_ms,
                host_launches,
                device_launches: recording.launches,
                errors: recording.errors.iter().map(Into::into).collect(),
                agreement,
                kernels: recording.kernels,
            })),
            Err(outcome) => outcome,
        }
    }

    /// A failed build, with the lines of the user's files that the messages are about.
    pub fn not_built(&self, failure: &BuildFailure, plain: &BTreeMap<PathBuf, String>) -> Outcome {
        let messages = failure.messages.iter().map(|message| {
            let texts = self.original.get(&message.path).zip(plain.get(&message.path));
            let (line, rewritten) = match texts {
                Some((before, after)) => {
                    let (line, same) = line_before(before, after, message.line);
                    let code = after.lines().nth(message.line.saturating_sub(1) as usize);
                    (line, code.filter(|_| !same).map(|code| code.trim().to_owned()))
                }
                None => (message.line, None),
            };
            let (path, line) = self.request.place(&message.path, line);
            BuildMessage {
                path: (self.show)(path),
                line,
                severity: message.severity.to_owned(),
                message: message.text.clone(),
                rewritten,
            }
        });
        Outcome::NotBuilt {
            message: failure.message.clone(),
            messages: messages.collect(),
        }
    }

    /// Runs the original.
    pub fn baseline(&self, programs: &Programs) -> Baseline {
        let mut baseline = Baseline {
            outcome: Outcome::Refused { reasons: Vec::new() },
            captured: None,
            why: "the original did not come to its end".to_owned(),
            peer: Mutex::default(),
        };
        // First whether it comes to its end at all: nothing else is to be waited for then.
        if let (Ok(timed), Ok(_)) = (&programs.timed, &programs.checked)
            && let Err(Outcome::TimedOut { seconds }) = self.timed(timed, self.request.timeout)
        {
            baseline.why = format!("it did not finish in {seconds} s");
            baseline.outcome = Outcome::TimedOut { seconds };
            return baseline;
        }
        let mut captured = None;
        let mut why = None;
        baseline.outcome = self.outcome(programs, self.original, |program| {
            let found = match self.capture(program) {
                Ok(found) => found,
                // Slower than by itself; how fast that is can be told.
                Err(Outcome::TimedOut { seconds }) => {
                    why = Some(format!(
                        "it did not finish in {seconds} s while its memory was looked at"
                    ));
                    return Ok((Agreement::Original, Recording::default()));
                }
                Err(outcome) => return Err(outcome),
            };
            let recording = found.recording.clone();
            captured = Some(found);
            Ok((Agreement::Original, recording))
        });
        baseline.captured = captured;
        baseline.why = why.unwrap_or(baseline.why);
        baseline
    }

    /// Runs the original's checked program twice: what it computes, and what depends on timing.
    pub fn capture(&self, program: &Path) -> Result<Captured, Outcome> {
        self.capture_as(program, ["original", "original-again"])
    }

    fn capture_as(&self, program: &Path, names: [&str; 2]) -> Result<Captured, Outcome> {
        let (first_run, first) = self.run(program, "capture", names[0])?;
        let (second_run, second) = self.run(program, "capture", names[1])?;
        Ok(Captured {
            unstable: unstable(&first, &second, &self.request.tolerance),
            recording: first,
            code: first_run.status.and_then(|status| status.code()),
            stdout: [first_run.stdout, second_run.stdout],
        })
    }

    /// Runs a rewritten program, whose texts are `plain`.
    pub fn variant(
        &self,
        name: &str,
        programs: &Programs,
        plain: &BTreeMap<PathBuf, String>,
        baseline: &Baseline,
    ) -> Outcome {
        self.outcome(programs, plain, |program| match &baseline.captured {
            Some(original) => self.check(program, original),
            None => {
                // Held to the end: what is run on another GPU meanwhile would have nothing to be compared with.
                let mut peer = baseline.peer.lock().unwrap_or_else(PoisonError::into_inner);
                self.check_alone(name, program, &baseline.why, &mut peer)
            }
        })
    }

    /// Runs a checked program where nothing is known of the original: compares it with another one, if there is one that ends well.
    fn check_alone(
        &self,
        name: &str,
        program: &Path,
        why: &str,
        peer: &mut Option<(String, Captured)>,
    ) -> Result<(Agreement, Recording), Outcome> {
        let mut alone = NotShown {
            reason: why.to_owned(),
            peer: None,
            compared: 0,
            unstable: 0,
            difference: None,
            prints: None,
            code: None,
            says: None,
        };
        let recording = match peer {
            Some((other, captured)) => {
                let (done, recording) = self.run(program, "capture", "variant")?;
                alone.peer = Some(other.clone());
                alone.code = done.status.and_then(|status| status.code());
                alone.says = last_line(&done.stdout);
                match compare(
                    &captured.recording,
                    &recording,
                    &captured.unstable,
                    &self.request.tolerance,
                ) {
                    Comparison::Different(difference) => alone.difference = Some(difference),
                    Comparison::Same { compared, unstable } => {
                        (alone.compared, alone.unstable) = (compared, unstable);
                        alone.prints = output_difference(&captured.stdout[0], &captured.stdout[1], &done.stdout);
                    }
                }
                recording
            }
            None => {
                let captured = self.capture_as(program, ["peer", "peer-again"])?;
                alone.code = captured.code;
                alone.says = last_line(&captured.stdout[0]);
                let recording = captured.recording.clone();
                if captured.code == Some(0) && recording.errors.is_empty() {
                    *peer = Some((name.to_owned(), captured));
                }
                recording
            }
        };
        Ok((Agreement::NotShown(Box::new(alone)), recording))
    }

    /// Runs a checked program and compares it with the original.
    pub fn check(&self, program: &Path, original: &Captured) -> Result<(Agreement, Recording), Outcome> {
        let (done, recording) = self.run(program, "capture", "variant")?;
        let code = done.status.and_then(|status| status.code());
        let tolerance = &self.request.tolerance;
        let compared = compare(&original.recording, &recording, &original.unstable, tolerance);
        // A program that checks its own results ends otherwise when they are wrong: where they are wrong says more.
        let explained = recording.errors.is_empty() && matches!(compared, Comparison::Different(_));
        if code != original.code && !explained {
            let message = format!(
                "ended otherwise than the original: {}\n{}",
                status(&done),
                done.last_words()
            );
            return Err(failed(
                message,
                error_advice(&recording).or_else(|| signal_advice(&done)),
            ));
        }
        let agreement = match compared {
            Comparison::Different(difference) => Agreement::Differs(difference),
            Comparison::Same { compared, unstable } => {
                match output_difference(&original.stdout[0], &original.stdout[1], &done.stdout) {
                    Some((expected, found)) => Agreement::PrintsOtherwise { expected, found },
                    None => Agreement::Agrees { compared, unstable },
                }
            }
        };
        let differs = matches!(agreement, Agreement::Differs(_) | Agreement::PrintsOtherwise { .. });
        // What the original computes is wrong itself then.
        let agreement = match original.recording.errors.first().filter(|_| differs) {
            Some(error) => Agreement::Unknown {
                reason: format!("the original itself fails ({}), and the results differ", error.name),
            },
            None => agreement,
        };
        Ok((agreement, recording))
    }
}

/// The last line that isn't empty, or its beginning.
fn last_line(printed: &str) -> Option<String> {
    let line = printed.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().take(MOST_SAID).collect())
}

fn failed(message: String, advice: Option<&str>) -> Outcome {
    Outcome::Failed {
        message,
        advice: advice.map(str::to_owned),
    }
}

/// What to do about the first error that is understood.
fn error_advice(recording: &Recording) -> Option<&'static str> {
    recording.errors.iter().find_map(|error| advice::about(&error.name))
}

#[cfg(unix)]
fn signal_advice(done: &Finished) -> Option<&'static str> {
    use std::os::unix::process::ExitStatusExt;
    advice::about_signal(done.status?.signal()?)
}

#[cfg(not(unix))]
fn signal_advice(_: &Finished) -> Option<&'static str> {
    None
}

fn status(done: &Finished) -> String {
    done.status
        .map_or_else(|| "killed".to_owned(), |status| status.to_string())
}
