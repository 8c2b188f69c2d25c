//! The files that a command works on, with their context.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, MAIN_SEPARATOR, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use gridfuse_analysis::base::db::{Database, SourceFile};
use gridfuse_analysis::host::Host;
use gridfuse_codeactions::api::source_edit::SourceEdit;

use super::output::{note, warning};
use super::repository::Repository;
use super::{CliError, Includes};
use crate::bounds::Bounds;
use crate::describe::Describe;
use crate::files::{self, MAX_FOUND_BYTES, MAX_NAMED_BYTES};
use crate::made::Made;
use crate::manifest::{Inputs, KernelRuns, ManifestError, ProjectBuild};
use crate::manifests::Manifests;
use crate::schema::Skipped;

/// Loaded files.
pub struct Project {
    /// The database's owner.
    pub host: Host,
    /// The files that the user asked about, sorted.
    pub files: Vec<PathBuf>,
    /// Files found in a directory that could not be read.
    pub skipped: Vec<Skipped>,
    /// Directories that could not be looked into. The user has been told.
    pub unreadable: Vec<Skipped>,
    /// A file was named that isn't CUDA, or a directory in which nothing was found or that could not be looked into: the answer is about less than was asked.
    pub incomplete: bool,
    /// Include directories as given.
    pub include_dirs: Vec<String>,
    /// All directories in which `#include` looks.
    pub search_dirs: Vec<PathBuf>,
    /// Compute capability that the project says it is built for: 90 for `sm_90`.
    pub arch: Option<u32>,
    /// How the project is built to be measured.
    pub build: Option<ProjectBuild>,
    /// The command that leads to the machine on which it's measured.
    pub runner: Option<String>,
    /// The files that its programs read, to be sent there.
    pub inputs: Option<Inputs>,
    /// How its `gridfuse.toml` says that kernels are run by themselves.
    pub runs: Option<KernelRuns>,
    /// What may be written.
    pub bounds: Bounds,
    /// What came in on standard input, where nothing says of which file it is.
    nameless: Option<PathBuf>,
    shown: Shown,
    /// What rewrites have made, as soon as somebody asks.
    made: OnceLock<Made>,
}

/// How paths are shown.
#[derive(Clone, Default)]
struct Shown {
    /// The current directory. What lies in it is shown relative to it.
    here: Option<PathBuf>,
    /// Real paths and how the user names them: files, directories, and the directories of files. What lies elsewhere is shown so.
    named: Vec<(PathBuf, PathBuf)>,
}

impl Shown {
    fn new(here: Option<PathBuf>, paths: &[PathBuf], includes: &Includes) -> Result<Shown, CliError> {
        let mut named = Vec::new();
        for given in paths.iter().filter(|given| !is_standard_input(given)) {
            let real = located(given, includes)?;
            // What lies beside a link doesn't lie beside what it leads to.
            let directories = real.parent().zip(given.parent());
            let beside = directories.filter(|_| !real.is_dir() && real.file_name() == given.file_name());
            named.extend(beside.map(|(real, given)| (real.to_path_buf(), given.to_path_buf())));
            named.push((real, given.clone()));
        }
        Ok(Shown { here, named })
    }

    fn show(&self, path: &Path) -> String {
        let below = |directory: &Path| path.strip_prefix(directory).ok();
        if let Some(relative) = self.here.as_deref().and_then(below)
            && !relative.as_os_str().is_empty()
        {
            return relative.display().to_string();
        }
        let around = self.named.iter().filter(|(real, _)| path.starts_with(real));
        let nearest = around.max_by_key(|(real, _)| real.components().count());
        let shown = nearest.map(|(real, given)| match below(real) {
            Some(rest) if !rest.as_os_str().is_empty() => given.join(rest),
            _ => given.clone(),
        });
        shown.as_deref().unwrap_or(path).display().to_string()
    }
}

impl Project {
    /// Reads files and directories, and what else is in their workspaces.
    pub fn load(paths: &[PathBuf], includes: &Includes) -> Result<Project, CliError> {
        Project::load_with(paths, includes, &BTreeMap::new())
    }

    /// The same, with texts that take the place of what is on disk.
    pub fn load_with(
        paths: &[PathBuf],
        includes: &Includes,
        unsaved: &BTreeMap<PathBuf, Arc<str>>,
    ) -> Result<Project, CliError> {
        let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok();
        let mut include_dirs = Vec::new();
        for directory in &includes.include_dirs {
            if !directory.is_dir() {
                return Err(format!("no such directory: -I {}", directory.display()).into());
            }
            include_dirs.push(canonical(directory)?);
        }
        let shown = Shown::new(here.clone(), paths, includes)?;
        let Asked {
            mut texts,
            skipped,
            unreadable,
            roots,
            incomplete,
        } = read_all(paths, includes, &shown)?;
        let files: Vec<PathBuf> = texts.keys().cloned().collect();
        for root in &roots {
            for path in files::context_of(root) {
                if !texts.contains_key(&path)
                    && let Ok(text) = files::read(&path, MAX_FOUND_BYTES)
                {
                    texts.insert(path, text);
                }
            }
        }
        texts.extend(unsaved.iter().map(|(path, text)| (path.clone(), text.clone())));
        let manifests = manifests(&files, &texts)?;
        for path in manifests.headers() {
            if !texts.contains_key(&path)
                && let Ok(text) = files::read(&path, MAX_FOUND_BYTES)
            {
                texts.insert(path, text);
            }
        }
        let commands = manifests.commands(roots.iter().map(PathBuf::as_path));
        for problem in &commands.problems {
            note(&problem.to_string());
        }
        let first = paths.first().map(|first| located(first, includes)).transpose()?;
        let manifest = first.and_then(|first| manifests.of(&first).cloned());
        let (settings, build, runner, inputs, runs) = manifest
            .map(|m| (m.settings, m.build, m.runner, m.inputs, m.runs))
            .unwrap_or_default();
        let from_input = paths.iter().find(|path| is_standard_input(path));
        let nameless = from_input.filter(|_| includes.stdin_path.is_none());
        let nameless = nameless.map(|path| located(path, includes)).transpose()?;
        let mut host = Host::new();
        let search_dirs = include_dirs.iter().chain(&settings.include_dirs).cloned().collect();
        host.set_include_dirs(include_dirs);
        host.set_settings(manifests.settings());
        host.set_commands(commands.commands);
        host.set_files(texts.into_iter().collect());
        let asked: Vec<SourceFile> = files.iter().filter_map(|path| host.file(path)).collect();
        files::load_includes(&mut host, &asked);
        // Where a project has no mark, all that is below the current directory is the user's.
        let working = here
            .iter()
            .filter(|here| roots.iter().any(|root| root.starts_with(here)));
        let around = roots.iter().map(|root| Bounds::around(root)).chain(working.cloned());
        let bounds = Bounds::new(around, files.iter().cloned());
        Ok(Project {
            host,
            files,
            skipped,
            unreadable,
            incomplete,
            include_dirs: includes
                .include_dirs
                .iter()
                .map(|dir| dir.display().to_string())
                .collect(),
            search_dirs,
            arch: settings.arch,
            build,
            runner,
            inputs,
            runs,
            bounds,
            nameless,
            shown,
            made: OnceLock::new(),
        })
    }

    /// Shows a path.
    pub fn show(&self, path: &Path) -> String {
        self.shown.show(path)
    }

    /// Whether this came in on standard input, and nothing says of which file it is: no path in a repository is its own.
    pub fn is_nameless(&self, path: &Path) -> bool {
        self.nameless.as_deref() == Some(path)
    }

    /// The same as a function that any thread may call.
    pub fn shower(&self) -> impl Fn(&Path) -> String + Send + Sync + use<> {
        let shown = self.shown.clone();
        move |path| shown.show(path)
    }

    /// The repository that the files are in.
    pub fn repository(&self) -> Repository {
        Repository::around(self.files.first().map(PathBuf::as_path), self.shown.here.as_deref())
    }

    /// An edit takes back what the command line has made, and nobody has touched the program since.
    pub fn is_untouched(&self, edit: &SourceEdit) -> bool {
        let made = self.made.get_or_init(Made::read);
        made.is_taken_back_by(self.host.db(), edit)
    }

    /// The files that the user asked about.
    pub fn asked(&self) -> Vec<SourceFile> {
        self.files.iter().filter_map(|path| self.host.file(path)).collect()
    }

    /// Runs `f` with a describer of facts.
    pub fn describe<R>(&self, f: impl FnOnce(&Database, &Describe<'_>) -> R) -> R {
        let db = self.host.db();
        let path = |path: &Path| self.show(path);
        let is_untouched = |edit: &SourceEdit| self.is_untouched(edit);
        let describe = Describe {
            db,
            path: &path,
            is_untouched: &is_untouched,
        };
        f(db, &describe)
    }
}

/// What the user asked about.
#[derive(Default)]
struct Asked {
    texts: BTreeMap<PathBuf, Arc<str>>,
    skipped: Vec<Skipped>,
    unreadable: Vec<Skipped>,
    /// The named directories, and those of the named files.
    roots: BTreeSet<PathBuf>,
    incomplete: bool,
}

fn read_all(paths: &[PathBuf], includes: &Includes, shown: &Shown) -> Result<Asked, CliError> {
    let mut asked = Asked::default();
    for given in paths {
        let path = located(given, includes)?;
        if asked.texts.contains_key(&path) {
            // Named twice. Standard input can be read once only.
            continue;
        }
        if is_standard_input(given) {
            let text = files::read_standard_input().map_err(|error| format!("cannot read standard input: {error}"))?;
            asked.texts.insert(path.clone(), text);
        } else if path.is_dir() {
            read_directory(&path, given, shown, &mut asked);
            asked.roots.insert(path);
            continue;
        } else {
            let text = files::read(&path, MAX_NAMED_BYTES)
                .map_err(|error| format!("cannot read {}: {error}", given.display()))?;
            if !files::may_be_cuda(&path, &text) {
                let suffixes = suffixes();
                warning(&format!(
                    "{} is no CUDA file: its name ends in none of {suffixes}",
                    given.display()
                ));
                asked.incomplete = true;
            }
            asked.texts.insert(path.clone(), text);
        }
        asked
            .roots
            .insert(path.parent().map_or_else(|| path.clone(), Path::to_path_buf));
    }
    Ok(asked)
}

/// How the names of CUDA files end.
fn suffixes() -> String {
    let suffixes: Vec<String> = files::SUFFIXES.iter().map(|suffix| format!(".{suffix}")).collect();
    suffixes.join(", ")
}

fn read_directory(directory: &Path, given: &Path, shown: &Shown, asked: &mut Asked) {
    let sources = files::find_sources(directory);
    for (path, error) in &sources.unreadable {
        let (path, reason) = (shown.show(path), error.to_string());
        warning(&format!("cannot look into {path}: {reason}; what is in it is left out"));
        asked.unreadable.push(Skipped { path, reason });
        asked.incomplete = true;
    }
    if sources.files.is_empty() && sources.unreadable.is_empty() {
        warning(&format!(
            "{} has no CUDA files: looked for {}; hidden files, what .gitignore names, and {} are skipped",
            given.display(),
            suffixes(),
            files::SKIPPED_DIRECTORIES.join(", ")
        ));
        asked.incomplete = true;
    }
    for found in sources.files {
        match files::read(&found, MAX_FOUND_BYTES) {
            Ok(text) => {
                asked.texts.insert(found, text);
            }
            Err(error) => asked.skipped.push(Skipped {
                path: shown.show(&found),
                reason: error.to_string(),
            }),
        }
    }
}

/// The `gridfuse.toml`s of all files. One that is wrong is an error when it counts for a file that the user asked about.
fn manifests(asked: &[PathBuf], texts: &BTreeMap<PathBuf, Arc<str>>) -> Result<Manifests, CliError> {
    let parents = |paths: &[&PathBuf]| -> BTreeSet<PathBuf> {
        paths
            .iter()
            .filter_map(|path| path.parent())
            .map(Path::to_path_buf)
            .collect()
    };
    let none = Manifests::default();
    let read = |paths: &[&PathBuf]| Manifests::read(parents(paths).iter().map(PathBuf::as_path), &none);
    let (_, problems) = read(&asked.iter().collect::<Vec<_>>());
    if !problems.is_empty() {
        let all: Vec<String> = problems.iter().map(ManifestError::to_string).collect();
        return Err(all.join("\n").into());
    }
    let (manifests, problems) = read(&texts.keys().collect::<Vec<_>>());
    for problem in problems {
        note(&problem.to_string());
    }
    Ok(manifests)
}

/// The real path of something that must exist.
pub fn canonical(path: &Path) -> Result<PathBuf, CliError> {
    path.canonicalize()
        .map_err(|error| format!("cannot read {}: {}", path.display(), files::ReadError::Io(error)).into())
}

/// `-`: the text comes in on standard input.
pub fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// The real path of what the user names. What comes in on standard input is the file that `--stdin-path` says, else it is taken to be a file
/// in the current directory, so that what it includes is found there, and is shown as `-`.
pub fn located(path: &Path, includes: &Includes) -> Result<PathBuf, CliError> {
    if !is_standard_input(path) {
        return canonical(path);
    }
    let Some(stands) = &includes.stdin_path else {
        return Ok(canonical(Path::new("."))?.join(path));
    };
    let none = || format!("--stdin-path names a file, and {} is none", stands.display());
    // `lib/` and `lib/.` are directories, whatever they are called.
    let is_directory = stands.to_string_lossy().ends_with(['/', MAIN_SEPARATOR]) || stands.is_dir();
    let name = stands.file_name().filter(|_| !is_directory).ok_or_else(none)?;
    let directory = stands.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok(will_be(directory.unwrap_or(Path::new(".")))?.join(name))
}

/// The real path of a directory as it is once it has been made: what exists of it is found on disk, the rest is as it is written.
fn will_be(directory: &Path) -> Result<PathBuf, CliError> {
    let mut missing = Vec::new();
    let mut there = directory;
    loop {
        // A link that leads nowhere is there.
        let found = std::fs::symlink_metadata(there).is_ok();
        match (there.parent(), there.components().next_back()) {
            (Some(parent), Some(last)) if !found && !there.as_os_str().is_empty() => {
                missing.push(last);
                there = parent;
            }
            _ => break,
        }
    }
    let there = match there.as_os_str().is_empty() {
        true => Path::new("."),
        false => there,
    };
    let mut path = canonical(there)?;
    if !path.is_dir() {
        return Err(format!("{} is no directory, so no file can be in it", there.display()).into());
    }
    for component in missing.iter().rev() {
        match component {
            Component::ParentDir => {
                path.pop();
            }
            component => path.push(component),
        }
    }
    Ok(path)
}
