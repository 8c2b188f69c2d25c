//! Pushes diagnostics of all open documents after every change, the newest version only.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::db::Workspace;
use gridfuse_analysis::diagnostics::diagnostics;
use tower_lsp_server::ls_types::{Diagnostic, Uri};

use super::disk::Job;
use super::state::{Snapshot, State, Stopped};
use crate::files::missing_includes;

/// After this long without a change, the next one is answered at once.
const QUIET: Duration = Duration::from_millis(100);

/// Else changes that follow each other within this time are answered once.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// What the client was told last about a document.
struct Told {
    uri: Uri,
    version: i32,
    diagnostics: Vec<Diagnostic>,
}

/// The diagnostics of one file.
pub fn of_file(snapshot: &Snapshot, path: &std::path::Path) -> Vec<Diagnostic> {
    let Some(file) = snapshot.file(path) else {
        return Vec::new();
    };
    let found = diagnostics(&snapshot.db, file);
    let own = found.iter().map(|diagnostic| snapshot.diagnostic(diagnostic));
    own.chain(snapshot.build_errors.diagnostics(snapshot, path)).collect()
}

/// Works until the server ends. All pushing is done here, so that an older result never follows a newer one.
pub async fn run(state: Arc<State>) {
    let mut told = BTreeMap::new();
    let mut tried = HashSet::new();
    let mut directories = IncludeDirs::default();
    let mut last: Option<Instant> = None;
    let mut warmed = None;
    loop {
        state.changed.notified().await;
        loop {
            if last.is_some_and(|last| last.elapsed() < QUIET) {
                tokio::time::sleep(DEBOUNCE).await;
            }
            last = Some(Instant::now());
            forget_includes(&state, &mut tried, &mut directories);
            load_includes(&state, &mut tried).await;
            let done = match state.session().pull_diagnostics {
                true => warm(&state, &mut warmed).await,
                false => round(&state, &mut told).await,
            };
            if done {
                break;
            }
        }
    }
}

/// Include directories: the client's, and those of the `gridfuse.toml`s, with the directory that each of these is in.
type IncludeDirs = (Arc<Vec<PathBuf>>, Vec<(PathBuf, Vec<PathBuf>)>);

/// When the include directories have changed, forgets what was read because of the old ones; what is still included is read again.
fn forget_includes(state: &State, tried: &mut HashSet<PathBuf>, directories: &mut IncludeDirs) {
    let now = {
        let shared = state.lock();
        let (db, project) = (shared.host.db(), &shared.project);
        (Workspace::get(db).include_dirs(db), project.manifests.include_dirs())
    };
    if now == *directories {
        return;
    }
    *directories = now;
    if tried.is_empty() {
        return;
    }
    state.update(|shared| {
        let folders = shared.project.folders.clone();
        for path in tried.drain() {
            let kept = shared.documents.contains_key(&path) || folders.iter().any(|folder| path.starts_with(folder));
            if !kept {
                shared.host.remove_file(&path);
            }
        }
    });
}

/// Has files read that open documents include and that aren't known yet. A file is tried once.
async fn load_includes(state: &State, tried: &mut HashSet<PathBuf>) {
    let missing = state.query(|snapshot: &Snapshot| {
        let files = snapshot.documents.keys().filter_map(|path| snapshot.file(path));
        missing_includes(&snapshot.db, files)
    });
    // When the text changes meanwhile, the next round asks again.
    let mut missing = missing.await.unwrap_or_default();
    missing.retain(|path| tried.insert(path.clone()));
    if !missing.is_empty() {
        // The receiver lives as long as the server.
        let _ = state.disk.send(Job::Reload(missing));
    }
}

/// The files of a workspace.
type Files = Arc<BTreeMap<PathBuf, SourceFile>>;

/// Finds out what a client that asks for diagnostics will ask for, when the workspace isn't the one that was `warmed`: it waits for less
/// then. `false`: the texts changed meanwhile.
async fn warm(state: &State, warmed: &mut Option<Files>) -> bool {
    let (files, open) = {
        let shared = state.lock();
        let db = shared.host.db();
        let open: Vec<PathBuf> = shared.documents.keys().cloned().collect();
        (Workspace::get(db).files(db), open)
    };
    if warmed.as_ref().is_some_and(|warmed| Arc::ptr_eq(warmed, &files)) {
        return true;
    }
    for path in open {
        let asked = state.query(move |snapshot: &Snapshot| {
            if let Some(file) = snapshot.file(&path) {
                diagnostics(&snapshot.db, file);
            }
        });
        if let Err(Stopped::Changed) = asked.await {
            return false;
        }
    }
    *warmed = Some(files);
    true
}

/// One pass over the open documents, the last changed first. `false`: the texts changed meanwhile.
async fn round(state: &State, told: &mut BTreeMap<PathBuf, Told>) -> bool {
    let (open, change) = {
        let shared = state.lock();
        let mut open: Vec<_> = shared
            .documents
            .iter()
            .map(|(path, d)| (d.changed, path.clone()))
            .collect();
        open.sort_by_key(|(changed, _)| std::cmp::Reverse(*changed));
        (open, shared.last_change())
    };
    let closed: Vec<PathBuf> = told
        .keys()
        .filter(|path| !open.iter().any(|(_, o)| o == *path))
        .cloned()
        .collect();
    for path in closed {
        if let Some(told) = told.remove(&path)
            && !told.diagnostics.is_empty()
        {
            state.client.publish_diagnostics(told.uri, Vec::new(), None).await;
        }
    }
    for (_, path) in open {
        let asked = path.clone();
        let result = state.query(move |snapshot: &Snapshot| {
            let document = snapshot.documents.get(&asked)?.clone();
            Some((document, of_file(snapshot, &asked)))
        });
        match result.await {
            Ok(Some((document, diagnostics))) => {
                let same = |told: &Told| {
                    told.uri == document.uri && told.version == document.version && told.diagnostics == diagnostics
                };
                if told.get(&path).is_some_and(same) {
                    continue;
                }
                let (uri, version) = (document.uri, document.version);
                told.insert(
                    path,
                    Told {
                        uri: uri.clone(),
                        version,
                        diagnostics: diagnostics.clone(),
                    },
                );
                state.client.publish_diagnostics(uri, diagnostics, Some(version)).await;
            }
            // Closed meanwhile: the next round clears it.
            Ok(None) => {}
            Err(Stopped::Changed) => return false,
            // Reported already; the other documents still count.
            Err(Stopped::Cancelled | Stopped::Panicked) => {}
        }
    }
    state.answers.published(change);
    true
}
