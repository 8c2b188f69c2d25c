//! What a search takes, and what measuring all points takes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a program is built and run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Looking for a GPU, and the program as it is: whatever comes next needs that.
    Setup,
    /// The search.
    Search,
    /// Measuring all points.
    Sweep,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Setup => "setup",
            Stage::Search => "search",
            Stage::Sweep => "all",
        })
    }
}

/// What a stage has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Seconds from its beginning to its end.
    pub seconds: f64,
    /// Programs that were built, also those that were never run.
    pub builds: usize,
    /// Seconds that the builds took in all.
    pub build_seconds: f64,
    /// Runs of programs.
    pub runs: usize,
    /// Seconds that the runs took in all: so long a GPU was taken up.
    pub run_seconds: f64,
}

impl Cost {
    /// Both.
    pub fn plus(self, other: Cost) -> Cost {
        Cost {
            seconds: self.seconds + other.seconds,
            builds: self.builds + other.builds,
            build_seconds: self.build_seconds + other.build_seconds,
            runs: self.runs + other.runs,
            run_seconds: self.run_seconds + other.run_seconds,
        }
    }
}

/// Which part of what measuring all points takes a search takes: 0.25 for a quarter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Of the time.
    pub seconds: f64,
    /// Of the programs.
    pub builds: f64,
    /// Of the compiler's time.
    pub build_seconds: f64,
    /// Of the runs.
    pub runs: f64,
    /// Of the GPUs' time.
    pub run_seconds: f64,
}

impl Share {
    /// Of two costs.
    pub fn of(part: Cost, whole: Cost) -> Share {
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Share {
            seconds: share(part.seconds, whole.seconds),
            builds: share(part.builds as f64, whole.builds as f64),
            build_seconds: share(part.build_seconds, whole.build_seconds),
            runs: share(part.runs as f64, whole.runs as f64),
            run_seconds: share(part.run_seconds, whole.run_seconds),
        }
    }
}

/// Takes down what each stage takes, from any thread.
#[derive(Debug)]
pub struct Ledger(Mutex<Entries>);

#[derive(Debug)]
struct Entries {
    stage: Stage,
    begun: Instant,
    costs: BTreeMap<Stage, Cost>,
}

impl Ledger {
    /// Begins with the setup.
    pub fn new(begun: Instant) -> Ledger {
        Ledger(Mutex::new(Entries {
            stage: Stage::Setup,
            begun,
            costs: BTreeMap::new(),
        }))
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a stage took before it was interrupted.
    pub fn resume(&self, stage: Stage, cost: Cost) {
        self.entries().costs.insert(stage, cost);
    }

    /// Another stage begins.
    pub fn begin(&self, stage: Stage) {
        let mut entries = self.entries();
        let (before, now) = (entries.stage, Instant::now());
        let seconds = now.duration_since(entries.begun).as_secs_f64();
        entries.costs.entry(before).or_default().seconds += seconds;
        (entries.stage, entries.begun) = (stage, now);
    }

    /// A program was built.
    pub fn built(&self, stage: Stage, time: Duration) {
        let mut entries = self.entries();
        let cost = entries.costs.entry(stage).or_default();
        cost.builds += 1;
        cost.build_seconds += time.as_secs_f64();
    }

    /// A program has run.
    pub fn ran(&self, stage: Stage, time: Duration) {
        let mut entries = self.entries();
        let cost = entries.costs.entry(stage).or_default();
        cost.runs += 1;
        cost.run_seconds += time.as_secs_f64();
    }

    /// What another stage has taken would have been taken by this one, too.
    pub fn shared(&self, stage: Stage, cost: Cost) {
        let mut entries = self.entries();
        let all = entries.costs.entry(stage).or_default();
        *all = all.plus(cost);
    }

    /// What a stage has taken so far.
    pub fn cost(&self, stage: Stage) -> Cost {
        let entries = self.entries();
        let mut cost = entries.costs.get(&stage).copied().unwrap_or_default();
        if entries.stage == stage {
            cost.seconds += entries.begun.elapsed().as_secs_f64();
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_kept_apart() {
        let ledger = Ledger::new(Instant::now());
        let earlier = Cost {
            seconds: 100.0,
            runs: 7,
            ..Cost::default()
        };
        ledger.resume(Stage::Search, earlier);
        ledger.built(Stage::Search, Duration::from_secs(3));
        ledger.begin(Stage::Search);
        ledger.ran(Stage::Search, Duration::from_secs(2));
        ledger.begin(Stage::Sweep);
        let (setup, search) = (ledger.cost(Stage::Setup), ledger.cost(Stage::Search));
        assert!(setup.seconds < 50.0 && setup.runs == 0);
        assert!((100.0..150.0).contains(&search.seconds));
        assert_eq!((search.builds, search.build_seconds), (1, 3.0));
        assert_eq!((search.runs, search.run_seconds), (8, 2.0));
        let all = Cost {
            seconds: 4.0 * search.seconds,
            builds: 4,
            build_seconds: 12.0,
            runs: 16,
            run_seconds: 20.0,
        };
        let share = Share::of(search, all);
        assert_eq!((share.builds, share.runs, share.run_seconds), (0.25, 0.5, 0.1));
        assert!((share.seconds - 0.25).abs() < 1e-9);
        assert_eq!(Share::of(search, Cost::default()).runs, 0.0);
    }
}
