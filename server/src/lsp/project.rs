//! Include directories, settings and compile commands: what the client says, and what `gridfuse.toml` and
//! `compile_commands.json` say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::db::Workspace;
use tower_lsp_server::ls_types::{Diagnostic, DiagnosticSeverity, MessageType, Position, Range, Uri};

use super::config::Overrides;
use super::disk;
use super::state::{Shared, State};
use crate::compile_commands::{self, CompileCommands};
use crate::hints::WantedHints;
use crate::manifest::{self, ManifestError};
use crate::manifests::Manifests;

/// What the project says, as far as it's known.
#[derive(Default)]
pub struct Project {
    /// The workspace folders that are open now.
    pub folders: Vec<PathBuf>,
    /// Include directories that the client set.
    pub client_include_dirs: Vec<PathBuf>,
    /// Inlay hints that the client set.
    pub client_hints: WantedHints,
    /// The `compile_commands.json` that the client set.
    pub client_compile_commands: Option<PathBuf>,
    /// The command that leads to the machine that measures, as the client set it.
    pub client_runner: Option<String>,
    /// Settings that the client made.
    pub client_overrides: Overrides,
    /// The `gridfuse.toml`s.
    pub manifests: Arc<Manifests>,
    commands: CompileCommands,
    /// The directories for which manifests were looked for.
    directories: BTreeSet<PathBuf>,
    /// The files that the client was told of.
    wrong: BTreeSet<PathBuf>,
    /// How often reading was begun: what an earlier reading found is dropped when a later one was begun.
    readings: u64,
}

impl Shared {
    /// Makes the database know what client, manifests and compile commands say; the client comes first.
    pub fn apply_project(&mut self) {
        self.host.set_include_dirs(self.project.client_include_dirs.clone());
        let mut settings = self.project.manifests.settings();
        if self.project.client_overrides != Overrides::default() {
            // Where no manifest counts, the client's settings count alone.
            let directories = self.directories();
            let roots = directories.iter().filter_map(|directory| directory.ancestors().last());
            for root in roots.chain([Path::new("")]) {
                settings.entry(root.to_path_buf()).or_default();
            }
            for settings in settings.values_mut() {
                self.project.client_overrides.apply(Arc::make_mut(settings));
            }
        }
        self.host.set_settings(settings);
        self.host.set_commands(self.project.commands.commands.clone());
    }

    /// The directories of all that is open or known.
    fn directories(&self) -> BTreeSet<PathBuf> {
        let files = Workspace::get(self.host.db()).files(self.host.db());
        let places = files
            .keys()
            .chain(self.documents.keys())
            .filter_map(|path| path.parent());
        let places = places.filter(|place| place.is_absolute()).map(Path::to_path_buf);
        places.chain(self.project.folders.iter().cloned()).collect()
    }
}

/// The path is that of a file that the project is described in.
pub fn concerns(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name == manifest::NAME || name == compile_commands::NAME)
}

/// Reads again when files have become known in directories for which no manifest was looked for. `false`: there are none.
pub async fn follow(state: &Arc<State>) -> bool {
    let new = {
        let shared = state.lock();
        !shared.directories().is_subset(&shared.project.directories)
    };
    if new {
        read(state.clone(), false).await;
    }
    new
}

/// Reads all of it again.
pub async fn reload(state: Arc<State>) {
    read(state, true).await;
}

/// Reads the `gridfuse.toml`s at or above everything that is known, and the compile commands of the workspace folders, or of the open
/// document when there is no folder. What is wrong in them is reported where it is wrong; a wrong `gridfuse.toml` leaves what was
/// known before. Compile commands are left as they are, unless they are to be read `again` or the manifests say something new.
async fn read(state: Arc<State>, again: bool) {
    if !state.allowed.disk {
        return;
    }
    let (directories, roots, named, before, reading) = {
        let mut shared = state.lock();
        let directories = shared.directories();
        let documents = shared.documents.keys().filter(|path| path.is_absolute());
        let above_document = documents.filter_map(|path| path.parent()).next().map(Path::to_path_buf);
        let project = &mut shared.project;
        project.readings += 1;
        let roots = match project.folders.as_slice() {
            [] => above_document.into_iter().collect(),
            folders => folders.to_vec(),
        };
        let named = project.client_compile_commands.clone();
        (directories, roots, named, project.manifests.clone(), project.readings)
    };
    let Some(first) = roots.first().cloned() else { return };
    let places = directories.clone();
    let read = tokio::task::spawn_blocking(move || {
        let (manifests, problems) = Manifests::read(places.iter().map(PathBuf::as_path), &before);
        let manifests = manifests.with_unsaved_files_like(&first);
        let commands = (again || manifests != *before).then(|| match named {
            Some(path) => compile_commands::read(&compile_commands::file_at(&path)),
            None => manifests.commands(roots.iter().map(PathBuf::as_path)),
        });
        (manifests, commands, problems)
    });
    let Ok((manifests, commands, problems)) = read.await else {
        state
            .log_bug("reading gridfuse.toml and compile_commands.json failed")
            .await;
        return;
    };
    let told = state.update(|shared| {
        let mut problems = problems;
        if shared.project.readings != reading {
            return None;
        }
        shared.project.manifests = Arc::new(manifests);
        if let Some(commands) = commands {
            shared.project.commands = commands;
        }
        problems.extend(shared.project.commands.problems.iter().cloned());
        shared.project.directories = directories;
        shared.apply_project();
        let now = problems.iter().map(|problem| problem.path.clone()).collect();
        Some((std::mem::replace(&mut shared.project.wrong, now), problems))
    });
    let Some((told, problems)) = told.flatten() else { return };
    report(&state, told, problems).await;
    disk::refresh(&state).await;
}

/// Publishes the problems; `told` are the files that had some before.
async fn report(state: &State, told: BTreeSet<PathBuf>, problems: Vec<ManifestError>) {
    let mut by_file: BTreeMap<PathBuf, Vec<Diagnostic>> = told.into_iter().map(|path| (path, Vec::new())).collect();
    for error in problems {
        let text = error.to_string();
        let (line, column) = error.position.unwrap_or((1, 1));
        let at = Position::new(line.saturating_sub(1), column.saturating_sub(1));
        let known = by_file.entry(error.path).or_default();
        if known.is_empty() {
            // One message a file is enough; the others are where they are wrong.
            let text = format!("{text}; what was understood is used");
            state.client.show_message(MessageType::WARNING, text).await;
        }
        known.push(Diagnostic {
            range: Range::new(at, at),
            severity: Some(DiagnosticSeverity::ERROR),
            source: Some("gridfuse".to_string()),
            message: error.message,
            ..Diagnostic::default()
        });
    }
    for (path, diagnostics) in by_file {
        if let Some(uri) = Uri::from_file_path(&path) {
            state.client.publish_diagnostics(uri, diagnostics, None).await;
        }
    }
}
