//! Include directories, settings and compile commands: what the client says, and what `gridfuse.toml` and
//! `compile_commands.json` say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tower_lsp_server::ls_types::{Diagnostic, DiagnosticSeverity, MessageType, Position, Range, Uri};

use super::config::Overrides;
use super::disk;
use super::state::{Shared, State};
use crate::compile_commands::{self, CompileCommands};
use crate::hints::{Hints, WantedHints};
use crate::manifest::{self, Manifest, ManifestError};

/// What the project says, as far as it's known.
#[derive(Default)]
pub struct Project {
    /// Include directories that the client set.
    pub client_include_dirs: Vec<PathBuf>,
    /// Inlay hints that the client set.
    pub client_hints: WantedHints,
    /// The `compile_commands.json` that the client set.
    pub client_compile_commands: Option<PathBuf>,
    /// Settings that the client made.
    pub client_overrides: Overrides,
    manifest: Manifest,
    commands: CompileCommands,
    /// The files that the client was told of.
    wrong: BTreeSet<PathBuf>,
    /// How often reading was begun: what an earlier reading found is dropped when a later one was begun.
    readings: u64,
}

impl Project {
    /// Which inlay hints are shown: the client's settings come before the project's.
    pub fn hints(&self) -> Hints {
        Hints::default().with(self.manifest.hints).with(self.client_hints)
    }
}

impl Shared {
    /// Makes the database know what client, manifest and compile commands say; the client comes first.
    pub fn apply_project(&mut self) {
        let mut directories = self.project.client_include_dirs.clone();
        directories.extend(self.project.manifest.include_dirs.iter().cloned());
        self.host.set_include_dirs(directories);
        let mut settings = self.project.manifest.settings.clone();
        self.project.client_overrides.apply(&mut settings);
        self.host.set_settings(settings);
        self.host.set_commands(self.project.commands.commands.clone());
    }
}

/// The path is that of a file that the project is described in.
pub fn concerns(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name == manifest::NAME || name == compile_commands::NAME)
}

/// Reads the `gridfuse.toml` at or above the first workspace folder, or above the open document when there is no folder, and the
/// compile commands. What is wrong in them is reported where it is wrong; a wrong `gridfuse.toml` leaves what was known before.
pub async fn reload(state: Arc<State>) {
    let folder = state.session().folders.first().cloned();
    let directory = folder.or_else(|| {
        let shared = state.lock();
        let document = shared.documents.keys().find(|path| path.is_absolute());
        document.and_then(|path| path.parent()).map(Path::to_path_buf)
    });
    let Some(directory) = directory else { return };
    let (named, before, reading) = {
        let mut shared = state.lock();
        let project = &mut shared.project;
        project.readings += 1;
        (
            project.client_compile_commands.clone(),
            project.manifest.clone(),
            project.readings,
        )
    };
    let read = tokio::task::spawn_blocking(move || {
        let (manifest, mut problems) = match Manifest::find(&directory) {
            Ok(manifest) => (manifest.unwrap_or_default(), Vec::new()),
            Err(error) => (before, vec![error]),
        };
        let named = named.or_else(|| manifest.compile_commands.clone());
        let mut commands = compile_commands::of_project(&directory, named.as_deref());
        problems.append(&mut commands.problems);
        (manifest, commands, problems)
    });
    let Ok((manifest, commands, problems)) = read.await else {
        state
            .log_bug("reading gridfuse.toml and compile_commands.json failed")
            .await;
        return;
    };
    let told = state.update(|shared| {
        if shared.project.readings != reading {
            return None;
        }
        shared.project.manifest = manifest;
        shared.project.commands = commands;
        shared.apply_project();
        let now = problems.iter().map(|problem| problem.path.clone()).collect();
        Some(std::mem::replace(&mut shared.project.wrong, now))
    });
    let Some(told) = told.flatten() else { return };
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
