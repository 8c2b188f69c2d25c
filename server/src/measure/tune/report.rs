//! What `tune` has found out, as plain data.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cost::{Cost, Share};
use crate::measure::report::{LeftOut, Machine, Outcome, Site};

/// Version of the JSON form; grows when a field changes its meaning.
pub const VERSION: u32 = 1;

/// A whole search.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct TuneReport {
    /// Version of this form; it grows when a field changes its meaning.
    pub version: u32,
    /// The tuned file, as the user named it.
    pub file: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Where it ran.
    pub machine: Machine,
    /// GPUs that ran programs at the same time.
    pub gpus: usize,
    /// Measured launches of the host.
    pub sites: Vec<Site>,
    /// Launches of the host that could not be measured, and why.
    pub left_out: Vec<LeftOut>,
    /// The program as it is.
    pub original: Outcome,
    /// Two runs of it compute the same.
    pub deterministic: bool,
    /// Where the search began: what the cost model recommends.
    pub guess: String,
    /// What it takes to look for a GPU and to run the program as it is, which both the search and measuring all points need.
    pub setup: Cost,
    /// The search.
    pub search: Found,
    /// All points, each with all its runs; only on request.
    pub exhaustive: Option<Swept>,
    /// Points whose results were compared with the original's, the fastest first, and those with which something was wrong.
    pub points: Vec<TriedPoint>,
    /// What the best point changes, as a unified diff; empty when the program is as good as it is.
    pub diff: String,
    /// Files that it adds, which the diff leaves out.
    pub creates: Vec<String>,
    /// What it takes for granted.
    pub assumptions: Vec<String>,
    /// For the language server: the changed and new files, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<String, ChangedText>,
}

/// A file's text before and after.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangedText {
    /// `None`: it is created.
    pub before: Option<String>,
    /// With the best point's rewrites.
    pub after: String,
}

/// What the search came to.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// Points that there are.
    pub possible: usize,
    /// Points that ran.
    pub tried: usize,
    /// Of these, points that were known from a search that was interrupted.
    pub resumed: usize,
    /// Runs that were stopped because they could not be the best any more.
    pub stopped: usize,
    /// Seconds that it took, with the setup, building and comparing, and with what it took before it was interrupted.
    pub seconds: f64,
    /// What it took, without the setup.
    pub cost: Cost,
    /// The fastest point that computes the same as the original.
    pub best: Option<String>,
    /// Its GPU time.
    pub best_ms: Option<f64>,
    /// How many times as fast as the program as it is.
    pub speedup: Option<f64>,
    /// Points whose times can't be told from the best one's (2 %), but whose kernels keep fewer threads resident: the best one was
    /// preferred for that. Not there where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub as_fast: Vec<AsFast>,
}

/// A point that is as fast as the best one, as far as can be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AsFast {
    /// `threshold=64+coarsen=4+aggregate-grid`
    pub point: String,
    /// Its median GPU time, in ms.
    pub ms: f64,
    /// The most threads that a multiprocessor keeps resident of the kernel of which it keeps the fewest.
    pub resident_threads: u32,
    /// The same of the best point.
    pub best_resident_threads: u32,
}

/// What measuring all points came to.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Swept {
    /// Points that could be built and run.
    pub points: usize,
    /// Seconds that it took, with the setup, building and comparing.
    pub seconds: f64,
    /// What it took, without the setup.
    pub cost: Cost,
    /// Which part of that the search took, both with the setup.
    pub share: Share,
    /// The fastest point that computes the same as the original.
    pub best: Option<String>,
    /// Its GPU time, in runs by turns with the point that the search found, after all points were measured.
    pub best_ms: Option<f64>,
    /// GPU time of the point that the search found, in these runs.
    pub found_ms: Option<f64>,
    /// How much longer than the best point the found one takes: 0.05 for 5 %.
    pub excess: Option<f64>,
    /// The times of each point in the order of its runs, without those by turns.
    #[serde(default)]
    pub times_ms: BTreeMap<String, Vec<f64>>,
}

impl Swept {
    /// Compares what was found with the best.
    pub fn with_excess(self) -> Swept {
        let times = self.found_ms.zip(self.best_ms.filter(|best| *best > 0.0));
        Swept {
            excess: times.map(|(found, best)| found / best - 1.0),
            ..self
        }
    }
}

/// A point, and what became of it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct TriedPoint {
    /// `threshold=64+coarsen=4+aggregate-grid`
    pub point: String,
    /// What became of it.
    pub outcome: Outcome,
}
