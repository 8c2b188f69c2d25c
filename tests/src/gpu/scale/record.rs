//! What `gpu-scale` writes down.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::gpu::machine::Machine;

/// The version of the format.
pub const SCHEMA: u32 = 1;

/// The record's name, beside those of the other measurements.
pub const FILE: &str = "scale.json";

/// All that was measured in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What it was measured on.
    pub machine: Machine,
    /// The commit of the sources.
    pub commit: String,
    /// What to type to measure again.
    pub command: String,
    /// The runs.
    pub runs: Vec<Run>,
}

/// One variant of one program on one input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// `bfs`
    pub program: String,
    /// `rmat`
    pub input: String,
    /// Vertices of the graph, or elements.
    pub vertices: u64,
    /// Its edges, where it is a graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edges: Option<u64>,
    /// `serial`, `naive`, a rewrite, or a peer: `hand-topo`.
    pub variant: String,
    /// What came of it.
    pub status: Status,
    /// The median of the times of whole computations on the GPU, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<f64>,
    /// How many computations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u64>,
    /// What was typed.
    pub command: String,
}

/// What came of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The result is the CPU's.
    Pass,
    /// It is another one.
    Wrong,
    /// It didn't end in time.
    Timeout,
    /// It ended with an error.
    Failed,
}

impl Scale {
    /// Reads a record.
    ///
    /// # Errors
    /// When it can't be read, or is of another version.
    pub fn load(path: &Path) -> Result<Scale> {
        let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let record: Scale =
            serde_json::from_str(&text).with_context(|| format!("{} is no record of gpu-scale", path.display()))?;
        ensure!(record.schema == SCHEMA, "{} is of another version", path.display());
        Ok(record)
    }

    /// Writes it into a directory.
    ///
    /// # Errors
    /// When that fails.
    pub fn save(&self, directory: &Path) -> Result<()> {
        std::fs::create_dir_all(directory)?;
        let path = directory.join(FILE);
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
    }

    /// The time of a variant whose result was right.
    pub fn time(&self, program: &str, input: &str, vertices: u64, variant: &str) -> Option<f64> {
        let run = self.runs.iter().find(|run| {
            run.program == program && run.input == input && run.vertices == vertices && run.variant == variant
        })?;
        run.time_ms.filter(|_| run.status == Status::Pass)
    }
}
