//! Which settings hold for a file.

use std::sync::Arc;

use crate::base::command::DefaultStream;
use crate::base::compile::compilation;
use crate::base::db::{Db, SourceFile, Workspace};
use crate::base::settings::Settings;

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
