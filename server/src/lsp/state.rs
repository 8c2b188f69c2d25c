//! What all requests share: the database, the open documents, and what the client can do.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use gridfuse_analysis::base::db::{Database, SourceFile, Workspace};
use gridfuse_analysis::host::Host;
use gridfuse_codeactions::api::source_edit::SourceEdit;
use salsa::{Cancelled, Database as _};
use tokio::sync::{Notify, mpsc};
use tower_lsp_server::Client;
use tower_lsp_server::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp_server::ls_types::{MessageType, Uri};

use super::Allowed;
use super::answers::Answers;
use super::build_errors::BuildErrors;
use super::capabilities::Session;
use super::disk;
use super::input::Progress;
use super::late;
use super::machine::Machine;
use super::measure::Running;
use super::pages::Pages;
use super::passage::ProgressEnds;
use super::project::Project;
use super::steps::Steps;
use super::trust::Trust;
use crate::bounds::Bounds;
use crate::hints::{Hints, WantedHints};
use crate::made::{self, Made};
use crate::manifests::Manifests;
use crate::measure::lacking::Lacking;
use crate::steps_back::Step;

/// How often a query is run again, at most, as one of another request that it waited for has failed.
const MOST_FAILURES_OF_OTHERS: usize = 8;

/// A document that is open in the editor.
#[derive(Clone, Debug)]
pub struct Document {
    /// As the client spells it.
    pub uri: Uri,
    /// Version of the text in the database.
    pub version: i32,
    /// Grows with every change of any document: the highest was changed last.
    pub changed: u64,
}

/// Changes together, under one lock: a version always belongs to the text in the database.
pub struct Shared {
    /// The database's owner.
    pub host: Host,
    /// The open documents.
    pub documents: BTreeMap<PathBuf, Document>,
    /// What the project says about itself.
    pub project: Project,
    /// What the compiler said in the last measurement.
    pub build_errors: Arc<BuildErrors>,
    /// Directories of which all sources are in the database.
    pub scanned: Vec<PathBuf>,
    changes: u64,
}

impl Shared {
    /// No file, no document.
    pub fn new() -> Self {
        Shared {
            host: Host::new(),
            documents: BTreeMap::new(),
            project: Project::default(),
            build_errors: Arc::default(),
            scanned: Vec::new(),
            changes: 0,
        }
    }

    /// Number of the last change.
    pub fn last_change(&self) -> u64 {
        self.changes
    }

    /// Number of a new change.
    pub fn next_change(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }
}

/// The state of the server.
pub struct State {
    /// The editor.
    pub client: Client,
    /// Set by `initialize`.
    pub session: OnceLock<Session>,
    /// Something changed that may change diagnostics.
    pub changed: Notify,
    /// What is still to be answered.
    pub answers: Answers,
    /// Jobs for [`disk`].
    pub disk: mpsc::UnboundedSender<disk::Job>,
    /// The receiving end, until [`disk::run`] takes it.
    pub disk_jobs: Mutex<Option<mpsc::UnboundedReceiver<disk::Job>>>,
    /// The measurement that is under way.
    pub measurement: Mutex<Option<Running>>,
    /// What the server may do.
    pub allowed: Allowed,
    /// Whether the user trusts the workspace.
    pub trust: Trust,
    /// Told of the end of each progress.
    pub progress_ends: Arc<ProgressEnds>,
    /// Whether this machine can measure.
    machine: Arc<Machine>,
    /// How long a request may take before it is answered with what is known.
    pub patience: Duration,
    pages: Arc<Pages>,
    /// What the edits that were offered make of programs.
    made: Arc<Mutex<Made>>,
    /// The edits that were offered, to be taken back.
    steps: Arc<Mutex<Steps>>,
    shared: Mutex<Shared>,
    initialized: AtomicBool,
    shut_down: AtomicBool,
}

impl Progress for State {
    fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::Relaxed)
    }

    fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::Relaxed)
    }
}

/// A consistent view of everything, for one request. Must be dropped soon: changes wait for it.
pub struct Snapshot {
    /// The database.
    pub db: Database,
    /// The open documents.
    pub documents: BTreeMap<PathBuf, Document>,
    /// What the client can do.
    pub session: Session,
    /// What the project's `gridfuse.toml`s say.
    pub manifests: Arc<Manifests>,
    /// The workspace folders that are open.
    pub folders: Vec<PathBuf>,
    /// Which inlay hints the client wants.
    pub client_hints: WantedHints,
    /// Documentation to link to.
    pub pages: Arc<Pages>,
    /// What the compiler said in the last measurement.
    pub build_errors: Arc<BuildErrors>,
    /// The client leads to another machine to measure on.
    client_measures_elsewhere: bool,
    machine: Arc<Machine>,
    /// What the edits that were offered make of programs.
    made: Arc<Mutex<Made>>,
    /// The edits that were offered, to be taken back.
    steps: Arc<Mutex<Steps>>,
    scanned: Vec<PathBuf>,
    changes: u64,
}

impl Snapshot {
    /// What keeps the programs of a file from being measured; `None`: nothing, or they are measured on another machine.
    pub fn lacking(&self, path: &Path) -> Option<Lacking> {
        match self.measures_elsewhere(path) {
            true => None,
            false => self.machine.lacks(),
        }
    }

    /// The programs of a file are measured on another machine.
    pub fn measures_elsewhere(&self, path: &Path) -> bool {
        let runner = || self.manifests.of(path).and_then(|manifest| manifest.runner.as_ref());
        self.client_measures_elsewhere || runner().is_some()
    }

    /// All sources are known of a workspace folder, or a file's directory, that a path lies in.
    pub fn knows_all_around(&self, path: &Path) -> bool {
        self.scanned.iter().any(|directory| path.starts_with(directory))
    }

    /// Remembers what an edit makes of the program, for the case that the client applies it.
    pub fn remember(&self, edit: &SourceEdit) {
        if let Some((before, after)) = made::step_of(&self.db, edit) {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            made.remember(before, after);
        }
    }

    /// Remembers what an edit changes, for the case that the client applies it.
    pub fn remember_step(&self, edit: &SourceEdit) {
        if let Some(step) = Step::of_edit(&self.db, edit) {
            let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
            steps.offer(&self.db, step);
        }
    }

    /// The edits that the client has applied, the last one at the end.
    pub fn applied_steps(&self) -> Vec<Step> {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        steps.applied(&self.db)
    }

    /// An edit takes back what an offered one has made, and nobody has touched the program since.
    pub fn is_untouched(&self, edit: &SourceEdit) -> bool {
        // Not held while files are read: that may be given up for a change.
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).clone();
        made.is_taken_back_by(&self.db, edit)
    }

    /// The file at `path`.
    pub fn file(&self, path: &Path) -> Option<SourceFile> {
        Workspace::get(&self.db).files(&self.db).get(path).copied()
    }

    /// The files that an edit may change: those of the workspace, and what is open.
    pub fn bounds(&self) -> Bounds {
        let open = self.documents.keys();
        let mut roots = self.folders.clone();
        if roots.is_empty() {
            let places = open
                .clone()
                .filter(|path| path.is_absolute())
                .filter_map(|path| path.parent());
            roots.extend(places.map(Bounds::around));
        }
        Bounds::new(roots, open.cloned())
    }

    /// Which inlay hints are shown in a document: the client's settings come before the project's.
    pub fn hints(&self, path: &Path) -> Hints {
        let project = self
            .manifests
            .of(path)
            .map(|manifest| manifest.hints)
            .unwrap_or_default();
        Hints::default().with(project).with(self.client_hints)
    }

    /// Number of the last change that it knows.
    pub fn number(&self) -> u64 {
        self.changes
    }

    /// Version of an open document.
    pub fn version(&self, path: &Path) -> Option<i32> {
        self.documents.get(path).map(|document| document.version)
    }
}

/// Why a query gave no result.
pub enum Stopped {
    /// The text changed meanwhile.
    Changed,
    /// The client cancelled the request.
    Cancelled,
    /// A bug.
    Panicked,
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Changed => Error::new(ErrorCode::ContentModified),
            Stopped::Cancelled => Error::request_cancelled(),
            Stopped::Panicked => Error::internal_error(),
        }
    }
}

/// Cancels the queries of a request whose future is dropped.
struct CancelOnDrop(salsa::CancellationToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl State {
    /// The state of a server that knows no files yet.
    pub fn new(client: Client, allowed: Allowed) -> Arc<State> {
        let (disk, jobs) = mpsc::unbounded_channel();
        Arc::new(State {
            client,
            session: OnceLock::new(),
            changed: Notify::new(),
            answers: Answers::new(),
            disk,
            disk_jobs: Mutex::new(Some(jobs)),
            measurement: Mutex::new(None),
            allowed,
            trust: Trust::default(),
            progress_ends: Arc::default(),
            machine: Arc::default(),
            patience: late::patience(),
            pages: Arc::new(Pages::new(allowed.disk)),
            made: Arc::default(),
            steps: Arc::default(),
            shared: Mutex::new(Shared::new()),
            initialized: AtomicBool::new(false),
            shut_down: AtomicBool::new(false),
        })
    }

    /// The lock. Never await, and never take another lock, while holding it.
    pub fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic under the lock leaves text and version as they were or as they should be: go on with them.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the client can do.
    pub fn session(&self) -> Session {
        self.session.get().cloned().unwrap_or_default()
    }

    /// A view for one request. To be taken before the handler's first await, so that it sees what was sent before it.
    pub fn snapshot(&self) -> Snapshot {
        let session = self.session();
        let shared = self.lock();
        Snapshot {
            db: shared.host.snapshot(),
            documents: shared.documents.clone(),
            session,
            manifests: shared.project.manifests.clone(),
            folders: shared.project.folders.clone(),
            client_hints: shared.project.client_hints,
            pages: self.pages.clone(),
            build_errors: shared.build_errors.clone(),
            client_measures_elsewhere: shared.project.client_runner.is_some(),
            machine: self.machine.clone(),
            made: self.made.clone(),
            steps: self.steps.clone(),
            scanned: shared.scanned.clone(),
            changes: shared.changes,
        }
    }

    /// A document with the report of a measurement; `None` when it can't be written.
    pub fn measurement_page(&self, text: &str) -> Option<Uri> {
        self.pages.measurement(text)
    }

    /// Notes that `initialize` is answered. Nothing may be awaited between this and the answer.
    pub fn set_initialized(&self) {
        self.initialized.store(true, Ordering::Relaxed);
    }

    /// Notes that `shutdown` is answered. Nothing may be awaited between this and the answer.
    pub fn set_shut_down(&self) {
        self.shut_down.store(true, Ordering::Relaxed);
    }

    /// Runs a query on another thread. The snapshot is taken before the first await, and dropped before the result arrives.
    /// A query that a change on disk interrupted runs again; the client knows nothing of such changes.
    pub async fn query<T: Send + 'static>(
        &self,
        query: impl Fn(&Snapshot) -> T + Send + Sync + 'static,
    ) -> std::result::Result<T, Stopped> {
        self.query_in(self.snapshot(), query).await
    }

    /// The same with a snapshot that was taken before.
    pub async fn query_in<T: Send + 'static>(
        &self,
        mut snapshot: Snapshot,
        query: impl Fn(&Snapshot) -> T + Send + Sync + 'static,
    ) -> std::result::Result<T, Stopped> {
        let _running = self.answers.query();
        let query = Arc::new(query);
        let asked = snapshot.changes;
        let mut others_failed = 0;
        loop {
            let _guard = CancelOnDrop(snapshot.db.cancellation_token());
            let query = query.clone();
            let task = tokio::task::spawn_blocking(move || {
                let snapshot = snapshot;
                Cancelled::catch(AssertUnwindSafe(|| query(&snapshot)))
            });
            match task.await {
                Ok(Ok(result)) => return Ok(result),
                Ok(Err(Cancelled::PendingWrite)) => {}
                Ok(Err(Cancelled::Local)) => return Err(Stopped::Cancelled),
                // It waited for a result that another request was computing, which was cancelled, or failed. What fails there
                // fails here as well, when it is computed here.
                Ok(Err(Cancelled::PropagatedPanic)) if others_failed < MOST_FAILURES_OF_OTHERS => others_failed += 1,
                Ok(Err(_)) | Err(_) => {
                    self.log_bug("a query failed").await;
                    return Err(Stopped::Panicked);
                }
            }
            snapshot = self.snapshot();
            if snapshot.changes != asked {
                return Err(Stopped::Changed);
            }
        }
    }

    /// The same for a request's handler.
    pub async fn request<T: Send + 'static>(
        &self,
        query: impl Fn(&Snapshot) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        self.query(query).await.map_err(Error::from)?
    }

    /// Changes the shared state; a panic in there is a bug that must not end the server.
    pub fn update<T>(&self, update: impl FnOnce(&mut Shared) -> T) -> Option<T> {
        let result = catch_unwind(AssertUnwindSafe(|| update(&mut self.lock()))).ok();
        self.changed.notify_one();
        result
    }

    /// Tells the client's log of a bug. The panic's message is on standard error.
    pub async fn log_bug(&self, what: &str) {
        let text = format!("internal error: {what}; please report it with the file");
        self.client.log_message(MessageType::ERROR, text).await;
    }
}
