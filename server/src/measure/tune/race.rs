//! Running built programs on all GPUs, each as soon as it's built.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::space::Point;
use super::state::{GivenUp, Tried};
use super::workshop::{Program, Workshop};
use crate::measure::phrases::milliseconds;
use crate::measure::process;
use crate::measure::report::Outcome;
use crate::measure::run::Runner;

/// A run that takes so many times as long as the fastest program's is stopped: setting up included, so that the launches of such
/// a program take even more times as long.
const STOP: f64 = 2.0;

/// What a run may take longer without being slower: seconds.
const SLACK: f64 = 0.5;

/// What is known of points.
pub type Tries = BTreeMap<Point, Tried>;

/// A program that is to run so often.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What it is.
    pub point: Point,
    /// Its program.
    pub program: Program,
    /// How often.
    pub runs: usize,
}

/// Programs that run.
pub struct Race<'a> {
    /// One for each GPU.
    pub runners: &'a [Runner<'a>],
    /// Where they are built.
    pub workshop: &'a Workshop<'a>,
    /// How long the program as it is runs, in seconds: what takes much longer than that, or than the fastest one, is stopped. `None`:
    /// nothing is.
    pub pace: Option<f64>,
    /// Is told what came out of a run.
    pub told: &'a (dyn Fn(usize, &str) + Sync),
    /// Keeps what is known.
    pub save: &'a (dyn Fn(&Tries) -> Result<(), String> + Sync),
}

struct Shared<'a> {
    queue: VecDeque<Entry>,
    tried: &'a mut Tries,
    stopped: usize,
    problem: Option<String>,
}

impl Race<'_> {
    /// Runs them, those in front first as far as they are built; gives how many were stopped.
    pub fn run(&self, queue: VecDeque<Entry>, tried: &mut Tries) -> Result<usize, String> {
        let shared = Mutex::new(Shared {
            queue,
            tried,
            stopped: 0,
            problem: None,
        });
        std::thread::scope(|scope| {
            for runner in self.runners {
                scope.spawn(|| self.work(runner, &shared));
            }
        });
        let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        shared.problem.map_or(Ok(shared.stopped), Err)
    }

    fn work(&self, runner: &Runner<'_>, shared: &Mutex<Shared<'_>>) {
        let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let built = {
                let mut shared = lock();
                if process::given_up() {
                    shared.problem = Some("given up".to_owned());
                }
                if shared.problem.is_some() || shared.queue.is_empty() {
                    return;
                }
                let ready = |entry: &Entry| Some((*entry, self.workshop.ready(entry.program)?));
                let mut waiting = shared.queue.iter().enumerate();
                let found = waiting.find_map(|(at, entry)| Some((at, ready(entry)?)));
                found.map(|(at, built)| {
                    shared.queue.remove(at);
                    built
                })
            };
            let Some((entry, built)) = built else {
                self.workshop.wait_a_moment();
                continue;
            };
            let program = match built {
                Ok(program) => program,
                Err(failure) => {
                    let message = failure.message;
                    (self.told)(lock().tried.len(), &format!("{}: does not compile", entry.point));
                    lock().tried.entry(entry.point).or_default().given_up = Some(GivenUp::NotBuilt { message });
                    self.keep(&mut lock());
                    continue;
                }
            };
            for _ in 0..entry.runs {
                let limit = self.limit(runner, &lock());
                let begin = Instant::now();
                let outcome = runner.timed(&program, limit);
                self.workshop.ledger.ran(entry.program.stage, begin.elapsed());
                let mut shared = lock();
                if process::given_up() {
                    shared.problem = Some("given up".to_owned());
                    return;
                }
                let tried = shared.tried.entry(entry.point).or_default();
                let what = match outcome {
                    Ok(timed) => {
                        tried.times_ms.push(timed.ms);
                        tried.host_launches = timed.launches;
                        tried.seconds = Some(tried.seconds.map_or(timed.seconds, |s| s.min(timed.seconds)));
                        format!("{} ms, not compared yet", milliseconds(timed.ms))
                    }
                    Err(Outcome::TimedOut { seconds }) => {
                        tried.given_up = Some(GivenUp::Slow);
                        format!("stopped after {seconds:.1} s")
                    }
                    Err(Outcome::Failed { message, .. }) => {
                        let what = message.lines().next().unwrap_or_default().to_owned();
                        tried.given_up = Some(GivenUp::Failed { message });
                        what
                    }
                    Err(_) => {
                        let message = "it can't be run".to_owned();
                        tried.given_up = Some(GivenUp::Failed {
                            message: message.clone(),
                        });
                        message
                    }
                };
                let out = tried.given_up.clone();
                shared.stopped += usize::from(out == Some(GivenUp::Slow));
                (self.told)(shared.tried.len(), &format!("{}: {what}", entry.point));
                self.keep(&mut shared);
                if out.is_some() {
                    break;
                }
            }
        }
    }

    fn keep(&self, shared: &mut Shared<'_>) {
        if let Err(error) = (self.save)(shared.tried) {
            shared.problem = Some(error);
        }
    }

    /// So long the next run may take.
    fn limit(&self, runner: &Runner<'_>, shared: &Shared<'_>) -> Duration {
        let timeout = runner.request.timeout;
        let Some(pace) = self.pace else { return timeout };
        let in_race = shared.tried.values().filter(|tried| tried.given_up.is_none());
        let pace = in_race.filter_map(|tried| tried.seconds).fold(pace, f64::min);
        Duration::try_from_secs_f64(pace * STOP + SLACK).map_or(timeout, |limit| limit.min(timeout))
    }
}
