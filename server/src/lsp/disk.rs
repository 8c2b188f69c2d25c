//! Keeps the database in step with the disk: scans folders, and reads what changed. One job after the other, so that an older
//! reading never overwrites a newer one. What is open in the editor is left alone.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use gridfuse_analysis::base::db::Workspace;
use tokio::task::JoinError;
use tower_lsp_server::ls_types::MessageType;

use super::project;
use super::state::State;
use crate::files::{MAX_FOUND_BYTES, MAX_WORKSPACE_FILES, context_of, find_all, is_source, read};

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
        let mut scanned = None;
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
                scanned = Some(directory.to_path_buf());
                format!("scanned {}", directory.display())
            }
            Job::Reload(_) => String::new(),
            Job::Forget(path) => {
                done.remove(path);
                String::new()
            }
        };
        let found = matches!(job, Job::Folder(_) | Job::ContextOf(_));
        match perform(&state, job, found).await {
            Ok(files) if !what.is_empty() => {
                state.lock().scanned.extend(scanned);
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

/// What was read: texts, and files that can't be read.
#[derive(Default)]
struct Reading {
    texts: Vec<(PathBuf, Arc<str>)>,
    gone: Vec<PathBuf>,
}

/// Does a job and says how many files were read. What was `found`, and not asked for, waits until the editor has its answers.
async fn perform(state: &Arc<State>, job: Job, found: bool) -> Result<usize, JoinError> {
    if let Job::Forget(folder) = job {
        let state = state.clone();
        return tokio::task::spawn_blocking(move || forget(&state, &folder)).await;
    }
    let reading = tokio::task::spawn_blocking(move || read_all(job)).await?;
    let count = reading.texts.len();
    if found {
        let change = state.lock().last_change();
        state.answers.wait(change).await;
    }
    let state = state.clone();
    tokio::task::spawn_blocking(move || apply(&state, reading)).await?;
    Ok(count)
}

fn read_all(job: Job) -> Reading {
    let paths = match job {
        Job::Folder(folder) => find_all(&folder, true, MAX_WORKSPACE_FILES),
        Job::ContextOf(path) => path.parent().map(context_of).unwrap_or_default(),
        Job::Reload(paths) => paths,
        Job::Forget(_) => Vec::new(),
    };
    let mut reading = Reading::default();
    for path in paths {
        match read(&path, MAX_FOUND_BYTES) {
            // Editors count positions without the byte order mark.
            Ok(text) => match text.strip_prefix('\u{feff}') {
                Some(rest) => reading.texts.push((path, rest.into())),
                None => reading.texts.push((path, text)),
            },
            Err(_) => reading.gone.push(path),
        }
    }
    reading
}

/// Makes the database know what was read, but for what is open in the editor.
fn apply(state: &State, reading: Reading) {
    let Reading { mut texts, gone } = reading;
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
}

fn forget(state: &State, folder: &Path) -> usize {
    state.update(|shared| {
        shared.scanned.retain(|directory| !directory.starts_with(folder));
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::time::Duration;

    use tower_lsp_server::LspService;

    use super::super::Allowed;
    use super::super::capabilities::Session;
    use super::super::server::Backend;
    use super::*;

    fn state() -> Arc<State> {
        let allowed = Allowed { disk: true, run: false };
        let mut state = None;
        let _ = LspService::new(|client| {
            let shared = State::new(client, allowed);
            state = Some(shared.clone());
            Backend::new(shared)
        });
        state.unwrap()
    }

    /// Lets time pass, and says whether the job was done in it.
    async fn done_within(job: &mut (impl Future + Unpin), time: Duration) -> bool {
        tokio::time::timeout(time, job).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_found_waits_for_the_answers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("found.cu");
        std::fs::write(&path, "__global__ void k() {}\n").unwrap();
        let state = state();
        let known = || state.lock().host.file(&path).is_some();
        let running = state.answers.query();
        let mut job = pin!(perform(&state, Job::Folder(folder.path().into()), true));
        assert!(!done_within(&mut job, Duration::from_millis(500)).await);
        assert!(!known(), "it interrupts the query");
        drop(running);
        assert!(matches!(job.await, Ok(1)));
        assert!(known());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_found_waits_for_a_client_that_asks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("found.cu");
        std::fs::write(&path, "__global__ void k() {}\n").unwrap();
        let state = state();
        let session = Session {
            pull_diagnostics: true,
            ..Session::default()
        };
        assert!(state.session.set(session).is_ok());
        let change = state.lock().next_change();
        let known = || state.lock().host.file(&path).is_some();
        let mut job = pin!(perform(&state, Job::Folder(folder.path().into()), true));
        assert!(!done_within(&mut job, Duration::from_millis(500)).await);
        assert!(!known(), "the client hasn't asked yet");
        state.answers.published(change);
        assert!(matches!(job.await, Ok(1)));
        assert!(known());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_asked_for_waits_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("asked.cuh");
        std::fs::write(&path, "__global__ void k() {}\n").unwrap();
        let state = state();
        let _running = state.answers.query();
        assert!(matches!(
            perform(&state, Job::Reload(vec![path.clone()]), false).await,
            Ok(1)
        ));
        assert!(state.lock().host.file(&path).is_some());
    }
}
