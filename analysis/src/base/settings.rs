//! What a project says about itself, or a directory of it: the toolkit it's built with, how severe each diagnostic is, and thresholds.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::base::severity::Severity;

/// Settings that analyses and diagnostics read.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Settings {
    /// Compute capability, ten times the major plus the minor version: 90 for `sm_90`. `None`: not said.
    pub arch: Option<u32>,
    /// Major and minor version of the CUDA toolkit. `None`: not said, which means a current one.
    pub cuda: Option<(u32, u32)>,
    /// Severity of diagnostics by id, where it isn't the default; `None`: not reported.
    pub severities: BTreeMap<String, Option<Severity>>,
    /// Child grids with fewer threads than this are tiny.
    pub tiny_grid: u64,
    /// Launches that may be pending at once, where the program sets it in a place that isn't analysed.
    pub pending_launches: Option<u64>,
    /// Levels of grids that may be nested. `None`: as many as launches may be pending.
    pub nesting_depth: Option<u64>,
    /// Directories in which `#include` looks behind those that are set for the whole workspace, absolute.
    pub include_dirs: Vec<PathBuf>,
    /// Macros that are defined when the project is compiled, as behind `#define`: `X 32`.
    pub defines: Vec<String>,
    /// The directory that has, or gets, the project's copy of the runtime header, absolute. `None`: that of the sources.
    pub header_dir: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            arch: None,
            cuda: None,
            severities: BTreeMap::new(),
            tiny_grid: crate::base::limits::WARP,
            pending_launches: None,
            nesting_depth: None,
            include_dirs: Vec::new(),
            defines: Vec::new(),
            header_dir: None,
        }
    }
}

impl Settings {
    /// The severity of a diagnostic; `None`: it isn't reported.
    pub fn severity(&self, id: &str, default: Severity) -> Option<Severity> {
        self.severities.get(id).copied().unwrap_or(Some(default))
    }
}
