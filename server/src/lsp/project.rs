//! Include directories and settings: what the client says, and what `gridfuse.toml` says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tower_lsp_server::ls_types::{Diagnostic, DiagnosticSeverity, MessageType, Position, Range, Uri};

use super::disk;
use super::state::{Shared, State};
use crate::hints::{Hints, WantedHints};
use crate::manifest::{Manifest, ManifestError, NAME};

/// What the project says, as far as it's known.
#[derive(Default)]
pub struct Project {
    /// Include directories that the client set.
    pub client_include_dirs: Vec<PathBuf>,
    /// Inlay hints that the client set.
    pub client_hints: WantedHints,
    manifest: Manifest,
    /// The `gridfuse.toml` that the client was told of.
    wrong: Option<PathBuf>,
}

impl Project {
    /// Which inlay hints are shown: the client's settings come before the project's.
    pub fn hints(&self) -> Hints {
        Hints::default().with(self.manifest.hints).with(self.client_hints)
    }
}

impl Shared {
    /// Makes the database know what client and manifest say; the client's directories come first.
    pub fn apply_project(&mut self) {
        let mut directories = self.project.client_include_dirs.clone();
        directories.extend(self.project.manifest.include_dirs.iter().cloned());
        self.host.set_include_dirs(directories);
        self.host.set_settings(self.project.manifest.settings.clone());
    }
}

/// The path is that of a `gridfuse.toml`.
pub fn is_manifest(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == NAME)
}

/// Reads the `gridfuse.toml` at or above the first workspace folder, or above the open document when there is no folder. A wrong one
/// is reported where it is wrong, and what was known before stays.
pub async fn reload(state: Arc<State>) {
    let folder = state.session().folders.first().cloned();
    let directory = folder.or_else(|| {
        let shared = state.lock();
        let document = shared.documents.keys().find(|path| path.is_absolute());
        document.and_then(|path| path.parent()).map(Path::to_path_buf)
    });
    let Some(directory) = directory else { return };
    let Ok(found) = tokio::task::spawn_blocking(move || Manifest::find(&directory)).await else {
        state.log_bug("reading gridfuse.toml failed").await;
        return;
    };
    match found {
        Ok(manifest) => {
            let wrong = state.update(|shared| {
                shared.project.manifest = manifest.unwrap_or_default();
                shared.apply_project();
                shared.project.wrong.take()
            });
            if let Some(uri) = wrong.flatten().and_then(Uri::from_file_path) {
                state.client.publish_diagnostics(uri, Vec::new(), None).await;
            }
        }
        Err(error) => report(&state, error).await,
    }
    disk::refresh(&state).await;
}

async fn report(state: &State, error: ManifestError) {
    let message = format!("{error}; the settings before it stay");
    state.client.show_message(MessageType::WARNING, message).await;
    let (line, column) = error.position.unwrap_or((1, 1));
    let at = Position::new(line - 1, column - 1);
    let diagnostic = Diagnostic {
        range: Range::new(at, at),
        severity: Some(DiagnosticSeverity::ERROR),
        source: Some("gridfuse".to_string()),
        message: error.message,
        ..Diagnostic::default()
    };
    if let Some(uri) = Uri::from_file_path(&error.path) {
        state.update(|shared| shared.project.wrong = Some(error.path));
        state.client.publish_diagnostics(uri, vec![diagnostic], None).await;
    }
}
