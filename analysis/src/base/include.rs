//! `#include`: which file a directive means.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use crate::base::compile::compilation;
use crate::base::db::{Db, SourceFile, Workspace};
use crate::base::file_settings::settings;
use crate::base::preprocess::IncludeItem;

/// The file that an `#include` in `from` means, if it is in the workspace.
pub fn resolve_include(db: &dyn Db, from: SourceFile, include: &IncludeItem) -> Option<SourceFile> {
    let workspace = Workspace::try_get(db)?;
    let files = workspace.files(db);
    include_candidates(db, from, include).find_map(|path| files.get(&path).copied())
}

/// The places at which an `#include` in `from` looks, in order.
pub fn include_candidates(db: &dyn Db, from: SourceFile, include: &IncludeItem) -> impl Iterator<Item = PathBuf> {
    let compiled = compilation(db, from).commands.first();
    let mut dirs = compiled.map(|command| command.include_dirs.clone()).unwrap_or_default();
    dirs.extend(set_dirs(db, from));
    candidates(db, from, include, dirs)
}

/// The directories that client and project set for a file.
fn set_dirs(db: &dyn Db, file: SourceFile) -> Vec<PathBuf> {
    let of_workspace = Workspace::try_get(db)
        .map(|workspace| workspace.include_dirs(db))
        .unwrap_or_default();
    let of_project = settings(db, file);
    of_workspace.iter().chain(&of_project.include_dirs).cloned().collect()
}

fn candidates(
    db: &dyn Db,
    from: SourceFile,
    include: &IncludeItem,
    dirs: Vec<PathBuf>,
) -> impl Iterator<Item = PathBuf> {
    let own = from
        .path(db)
        .parent()
        .filter(|_| !include.system)
        .map(Path::to_path_buf);
    let written = include.path.clone();
    own.into_iter()
        .chain(dirs)
        .map(move |dir| normalize(&dir.join(&written)))
}

/// The same as [`resolve_include`] with the directories of a command, which don't depend on how `from` is compiled.
pub(crate) fn resolve_with(
    db: &dyn Db,
    from: SourceFile,
    include: &IncludeItem,
    dirs: &[PathBuf],
) -> Option<SourceFile> {
    let workspace = Workspace::try_get(db)?;
    let files = workspace.files(db);
    let mut dirs = dirs.to_vec();
    dirs.extend(set_dirs(db, from));
    candidates(db, from, include, dirs).find_map(|path| files.get(&path).copied())
}

/// The files that include each file directly, whatever `#if` that stands under.
#[salsa::tracked]
fn direct_includers(db: &dyn Db) -> HashMap<SourceFile, Vec<SourceFile>> {
    let mut found: HashMap<SourceFile, Vec<SourceFile>> = HashMap::new();
    let Some(workspace) = Workspace::try_get(db) else {
        return found;
    };
    for from in workspace.files(db).values() {
        for include in from.includes(db).iter() {
            if let Some(target) = resolve_include(db, *from, include) {
                found.entry(target).or_default().push(*from);
            }
        }
    }
    found
}

/// The files that include a file, directly or not, nearest first; not itself.
#[salsa::tracked]
pub(crate) fn including_files(db: &dyn Db, file: SourceFile) -> Vec<SourceFile> {
    let direct = direct_includers(db);
    let mut seen = HashSet::from([file]);
    let mut order = vec![file];
    let mut next = 0;
    while let Some(current) = order.get(next).copied() {
        next += 1;
        let includers = direct.get(&current).into_iter().flatten().copied();
        order.extend(includers.filter(|includer| seen.insert(*includer)));
    }
    order.remove(0);
    order
}

/// The path without `.` and `..` where they can be taken away.
pub fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if out.file_name().is_some() => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}
