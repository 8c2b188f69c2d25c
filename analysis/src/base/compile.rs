//! How files are compiled: the commands of `compile_commands.json`, as far as analyses read them.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use crate::base::command::CompileCommand;
use crate::base::db::{Db, SourceFile, Workspace};
use crate::base::include::resolve_with;

/// Why a file is taken to be compiled in a certain way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub enum Origin {
    /// Nothing is known.
    #[default]
    Unknown,
    /// The file has commands of its own.
    Own,
    /// A file that includes it has.
    Includer,
    /// A file near it has: a guess, good for finding includes and for nothing that has to be certain.
    Neighbour,
}

/// How one file is compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub struct Compilation {
    /// The commands; several when the file is part of several programs.
    pub commands: Vec<Arc<CompileCommand>>,
    /// Where they come from.
    pub origin: Origin,
}

impl Compilation {
    /// The commands are this file's, not a neighbour's.
    pub fn certain(&self) -> bool {
        matches!(self.origin, Origin::Own | Origin::Includer)
    }
}

/// How a file is compiled: by its own commands, else by those of a file that includes it, else by those of the nearest file.
#[salsa::tracked]
pub fn compilation(db: &dyn Db, file: SourceFile) -> Compilation {
    let Some(workspace) = Workspace::try_get(db) else {
        return Compilation::default();
    };
    let all = workspace.commands(db);
    if all.is_empty() {
        return Compilation::default();
    }
    let path = file.path(db);
    if let Some(commands) = all.get(path) {
        return Compilation {
            commands: commands.clone(),
            origin: Origin::Own,
        };
    }
    if let Some(mains) = includers(db).get(&file) {
        let mut commands: Vec<Arc<CompileCommand>> = Vec::new();
        for command in mains.iter().filter_map(|main| all.get(main.path(db))).flatten() {
            if !commands.contains(command) {
                commands.push(command.clone());
            }
        }
        return Compilation {
            commands,
            origin: Origin::Includer,
        };
    }
    let nearest = all.iter().max_by_key(|(other, _)| nearness(path, other));
    let commands = nearest.map(|(_, commands)| commands.clone()).unwrap_or_default();
    Compilation {
        commands,
        origin: Origin::Neighbour,
    }
}

/// How well another file's commands fit: the same suffix, then the longest common path, then the longest common start of the name.
fn nearness(path: &Path, other: &Path) -> (bool, usize, usize) {
    let common = path
        .components()
        .zip(other.components())
        .take_while(|(a, b)| a == b)
        .count();
    let name = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let (a, b) = (name(path), name(other));
    let start = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let header = path.extension().is_none_or(|suffix| suffix != "cu");
    (header || path.extension() == other.extension(), common, start)
}

/// The files with commands that include each file without.
#[salsa::tracked]
fn includers(db: &dyn Db) -> HashMap<SourceFile, Vec<SourceFile>> {
    let mut found: HashMap<SourceFile, Vec<SourceFile>> = HashMap::new();
    let Some(workspace) = Workspace::try_get(db) else {
        return found;
    };
    let (all, files) = (workspace.commands(db), workspace.files(db));
    for (path, commands) in all.iter() {
        let (Some(&main), Some(command)) = (files.get(path), commands.first()) else {
            continue;
        };
        let forced = command
            .forced_includes
            .iter()
            .filter_map(|path| files.get(path).copied());
        let mut pending: Vec<SourceFile> = forced.chain([main]).collect();
        let mut seen: HashSet<SourceFile> = pending.iter().copied().collect();
        while let Some(file) = pending.pop() {
            if file != main && !all.contains_key(file.path(db)) {
                found.entry(file).or_default().push(main);
            }
            for include in file.includes(db).iter() {
                if let Some(target) = resolve_with(db, file, include, &command.include_dirs)
                    && seen.insert(target)
                {
                    pending.push(target);
                }
            }
        }
    }
    found
}
