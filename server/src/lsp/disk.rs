//! Keeps the database in step with the disk: scans folders, and reads what changed. One job after the other, so that an older
//! reading never overwrites a newer one. What is open in the editor is left alone.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use gridfuse_analysis::db::Workspace;
use tower_lsp_server::ls_types::MessageType;

use super::project;
use super::state::State;
use crate::files::{MAX_FOUND_BYTES, MAX_WORKSPACE_FILES, context_of, find_sources, is_source, read};

/// Something to do.
#[derive(Debug)]
pub enum Job {
    /// Read all sources under a workspace folder.
    Folder(PathBuf),
    /// Read the sources that may concern a file outside of all folders.
    ContextOf(PathBuf),
    /// Read these files again, or forget them when they are gone.
    Reload(Vec<PathBuf>),
    /// A workspace folder was closed.
    Forget(PathBuf),
}

/// Does the jobs until the server ends.
pub async fn run(state: Arc<State>) {
    let jobs = state.disk_jobs.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut jobs) = jobs else { return };
    let mut done = HashSet::new();
    while let Some(job) = jobs.recv().await {
        if !state.allowed.disk {
            continue;
        }
        let what = match &job {
            Job::Folder(path) | Job::ContextOf(path) => {
                let directory = if matches!(job, Job::Folder(_)) {
                    Some(path.as_path())
                } else {
                    path.parent()
                };
                let Some(directory) = directory else { continue };
                if !done.insert(directory.to_path_buf()) {
                    continue;
                }
                format!("scanned {}", directory.display())
            }
            Job::Reload(_) => String::new(),
            Job::Forget(path) => {
                done.remove(path);
                String::new()
            }
        };
        let worker = state.clone();
        match tokio::task::spawn_blocking(move || perform(&worker, job)).await {
            Ok(files) if !what.is_empty() => {
                let text = format!("{what}: {files} files");
                state.client.log_message(MessageType::LOG, text).await;
            }
            Ok(_) => {}
            Err(_) => state.log_bug("reading files failed").await,
        }
        if !project::follow(&state).await {
            state.changed.notify_one();
            refresh(&state).await;
        }
    }
}

/// Lets a client ask again for what it pulls.
pub async fn refresh(state: &Arc<State>) {
    let session = state.session();
    if session.pull_diagnostics && session.refresh_diagnostics {
        let client = state.client.clone();
        // Not awaited: a client may answer late or never.
        tokio::spawn(async move { client.workspace_diagnostic_refresh().await });
    }
    if session.refresh_lenses {
        let client = state.client.clone();
        tokio::spawn(async move { client.code_lens_refresh().await });
    }
    refresh_hints(state);
}

/// Lets a client ask again for inlay hints.
pub fn refresh_hints(state: &Arc<State>) {
    if state.session().refresh_hints {
        let client = state.client.clone();
        tokio::spawn(async move { client.inlay_hint_refresh().await });
    }
}

fn perform(state: &State, job: Job) -> usize {
    let paths = match job {
        Job::Folder(folder) => find_sources(&folder, true, MAX_WORKSPACE_FILES),
        Job::ContextOf(path) => path.parent().map(context_of).unwrap_or_default(),
        Job::Reload(paths) => paths,
        Job::Forget(folder) => return forget(state, &folder),
    };
    let mut texts = Vec::new();
    let mut gone = Vec::new();
    for path in paths {
        match read(&path, MAX_FOUND_BYTES) {
            // Editors count positions without the byte order mark.
            Ok(text) => match text.strip_prefix('\u{feff}') {
                Some(rest) => texts.push((path, rest.into())),
                None => texts.push((path, text)),
            },
            Err(_) => gone.push(path),
        }
    }
    let count = texts.len();
    state.update(|shared| {
        texts.retain(|(path, _)| !shared.documents.contains_key(path));
        if !texts.is_empty() {
            shared.host.set_files(texts);
        }
        for path in gone {
            if !shared.documents.contains_key(&path) {
                shared.host.remove_file(&path);
            }
        }
    });
    count
}

fn forget(state: &State, folder: &Path) -> usize {
    state.update(|shared| {
        let files = Workspace::get(shared.host.db()).files(shared.host.db());
        let gone: Vec<&PathBuf> = files.keys().filter(|path| path.starts_with(folder)).collect();
        for path in gone {
            if !shared.documents.contains_key(path) {
                shared.host.remove_file(path);
            }
        }
    });
    0
}

/// The client may report any file; only sources, and files that are known (included ones have any suffix), matter.
pub fn concerns(state: &State, path: &Path) -> bool {
    is_source(path) || state.lock().host.file(path).is_some()
}
