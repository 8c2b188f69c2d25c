//! What a project says about itself, or a directory of it: the toolkit it's built with, how severe each diagnostic is, and thresholds.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::compile::{DefaultStream, compilation};
use crate::base::db::{Db, SourceFile, Workspace};
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
        }
    }
}

impl Settings {
    /// The severity of a diagnostic; `None`: it isn't reported.
    pub fn severity(&self, id: &str, default: Severity) -> Option<Severity> {
        self.severities.get(id).copied().unwrap_or(Some(default))
    }
}

/// The settings that hold for a file: those of the nearest directory at or above it that has any, and those alone.
#[salsa::tracked(returns(clone))]
pub fn settings(db: &dyn Db, file: SourceFile) -> Arc<Settings> {
    let all = Workspace::try_get(db)
        .map(|workspace| workspace.settings(db))
        .unwrap_or_default();
    let nearest = file.path(db).ancestors().find_map(|directory| all.get(directory));
    nearest.cloned().unwrap_or_default()
}

/// What holds for one file: what the project says, and where it says nothing, what the file's compile commands do.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub struct FileSettings {
    /// Virtual architectures that device code is compiled for: 90 for `sm_90`. Empty: not known.
    pub archs: Vec<u32>,
    /// Version of the toolkit. `None`: not said, which means a current one.
    pub cuda: Option<(u32, u32)>,
    /// What a launch without stream means.
    pub default_stream: DefaultStream,
}

/// What holds for one file.
#[salsa::tracked]
pub fn file_settings(db: &dyn Db, file: SourceFile) -> FileSettings {
    let project = settings(db, file);
    let compiled = compilation(db, file);
    let mut archs: Vec<u32> = match project.arch {
        Some(arch) => vec![arch],
        None => compiled.commands.iter().flat_map(|c| c.archs.iter().copied()).collect(),
    };
    if project.arch.is_none() && compiled.commands.iter().any(|c| c.archs.is_empty()) {
        archs.clear();
    }
    archs.sort_unstable();
    archs.dedup();
    let per_thread = compiled
        .commands
        .iter()
        .filter(|c| c.default_stream == DefaultStream::PerThread);
    let all = !compiled.commands.is_empty() && per_thread.count() == compiled.commands.len();
    FileSettings {
        archs,
        cuda: project.cuda.or_else(|| compiled.commands.iter().find_map(|c| c.cuda)),
        default_stream: if all {
            DefaultStream::PerThread
        } else {
            DefaultStream::Legacy
        },
    }
}
