//! The handlers. Each changes the state, or takes its snapshot, before its first await: handlers run concurrently, and only
//! that part runs in the order in which the client sent.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::span::TextRange;
use serde_json::Value;
use tower_lsp_server::LanguageServer;
use tower_lsp_server::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp_server::ls_types::*;

use super::capabilities::{Session, folders};
use super::config::{Config, SECTION};
use super::convert::{path_of, text_range};
use super::disk::{self, Job};
use super::late::{self, Answer};
use super::state::{Document, Shared, State, Stopped};
use super::{actions, commands, hierarchy, hints, hover, lens, measure, project, publish};
use crate::files::is_source;
use crate::line_index::{LineIndex, line_index};

/// The protocol's code for a result that the server gave up; the client asks again.
const SERVER_CANCELLED: i64 = -32802;

/// Languages in which a CUDA source is opened.
const LANGUAGES: &[&str] = &["cuda-cpp", "cuda", "cpp", "c"];

/// The server as the transport sees it.
pub struct Backend {
    state: Arc<State>,
}

impl Backend {
    /// A server for `state`.
    pub fn new(state: Arc<State>) -> Self {
        Backend { state }
    }

    /// `window/workDoneProgress/cancel`
    pub async fn cancel_progress(&self, params: WorkDoneProgressCancelParams) {
        measure::cancel(&self.state, &params.token);
    }

    /// The user trusts the workspace: see [`trust`](super::trust).
    pub async fn trust(&self) {
        self.state.trust.grant();
    }

    /// The receiver lives as long as the server.
    fn disk(&self, job: Job) {
        let _ = self.state.disk.send(job);
    }
}

/// Uses settings. Wrong ones are told to the user and change nothing.
async fn configure(state: &Arc<State>, settings: &Value) {
    match Config::read(settings) {
        Ok(Some(config)) => {
            let elsewhere = state.update(|shared| {
                let root = shared.project.folders.first().map(PathBuf::as_path);
                let directories = config.absolute_include_dirs(root);
                let commands = config.absolute_compile_commands(root);
                shared.project.client_include_dirs = directories;
                shared.project.client_hints = config.inlay_hints;
                shared.project.client_runner = config.runner;
                shared.project.client_overrides = config.overrides;
                shared.apply_project();
                let before = std::mem::replace(&mut shared.project.client_compile_commands, commands);
                before != shared.project.client_compile_commands
            });
            disk::refresh(state).await;
            if elsewhere == Some(true) {
                tokio::spawn(project::reload(state.clone()));
            }
        }
        Ok(None) => {}
        Err(message) => state.client.show_message(MessageType::WARNING, message).await,
    }
}

/// Asks the client for the settings.
async fn ask_configuration(state: Arc<State>) {
    let item = ConfigurationItem {
        scope_uri: None,
        section: Some(SECTION.to_string()),
    };
    if let Ok(answers) = state.client.configuration(vec![item]).await
        && let Some(settings) = answers.first()
    {
        configure(&state, settings).await;
    }
}

/// Registers what the client should tell, and asks for the settings.
async fn register(state: Arc<State>, session: Session) {
    let registrations = session.registrations();
    if !registrations.is_empty()
        && let Err(error) = state.client.register_capability(registrations).await
    {
        let text = format!("the client refused to watch files: {error}");
        state.client.log_message(MessageType::WARNING, text).await;
    }
    if session.ask_configuration {
        ask_configuration(state).await;
    }
}

/// Replaces the whole text, as one edit of what differs.
fn replace(shared: &mut Shared, path: &Path, new: &str) {
    let Some(file) = shared.host.file(path) else {
        shared.host.set_file(path, new);
        return;
    };
    let old = file.text(shared.host.db());
    let same = |(a, b): &(u8, u8)| a == b;
    let mut head = old.bytes().zip(new.bytes()).take_while(same).count();
    while !(old.is_char_boundary(head) && new.is_char_boundary(head)) {
        head -= 1;
    }
    let (old_rest, new_rest) = (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let mut tail = old_rest
        .bytes()
        .rev()
        .zip(new_rest.bytes().rev())
        .take_while(same)
        .count();
    while !(old_rest.is_char_boundary(old_rest.len() - tail) && new_rest.is_char_boundary(new_rest.len() - tail)) {
        tail -= 1;
    }
    if old_rest.len() == tail && new_rest.len() == tail {
        return;
    }
    let range = TextRange::new(head as u32, (old.len() - tail) as u32);
    let insert = new_rest.get(..new_rest.len() - tail).unwrap_or_default();
    shared.host.edit_file(path, range, insert);
}

/// Applies the client's changes in order. One change goes to the database as it is, so that parsing is incremental.
fn apply_changes(shared: &mut Shared, session: &Session, path: &Path, changes: &[TextDocumentContentChangeEvent]) {
    let Some(file) = shared.host.file(path) else { return };
    let old = file.text(shared.host.db());
    if let [change] = changes
        && let Some(range) = change.range
    {
        let index = line_index(shared.host.db(), file);
        let range = text_range(&old, index, range, session.encoding);
        shared.host.edit_file(path, range, &change.text);
        return;
    }
    let mut text = old.to_string();
    for change in changes {
        match change.range {
            None => text.clone_from(&change.text),
            Some(range) => {
                let range = text_range(&text, &LineIndex::new(&text), range, session.encoding);
                text.replace_range(range.start as usize..range.end as usize, &change.text);
            }
        }
    }
    replace(shared, path, &text);
}

impl LanguageServer for Backend {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        let session = Session::new(&params);
        let capabilities = session.capabilities();
        let folders = folders(&params);
        self.state.update(|shared| shared.project.folders = folders);
        // A second `initialize` never gets here.
        let _ = self.state.session.set(session);
        if let Some(options) = &params.initialization_options {
            self.state.trust.read(options);
            configure(&self.state, options).await;
        }
        self.state.set_initialized();
        Ok(InitializeResult {
            capabilities,
            server_info: Some(ServerInfo {
                name: "gridfuse".to_string(),
                version: Some(env!("CARGO_PKG_VERSION").to_string()),
            }),
            offset_encoding: None,
        })
    }

    async fn initialized(&self, _: InitializedParams) {
        let session = self.state.session();
        tokio::spawn(disk::run(self.state.clone()));
        tokio::spawn(publish::run(self.state.clone()));
        tokio::spawn(late::run(self.state.clone()));
        let folders = self.state.lock().project.folders.clone();
        for folder in folders {
            self.disk(Job::Folder(folder));
        }
        tokio::spawn(project::reload(self.state.clone()));
        // Not awaited here: a client that never answers would keep the server from ending.
        tokio::spawn(register(self.state.clone(), session));
    }

    async fn shutdown(&self) -> Result<()> {
        self.state.set_shut_down();
        measure::leave(&self.state);
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        let document = params.text_document;
        let path = path_of(&document.uri);
        if !LANGUAGES.contains(&document.language_id.as_str()) && !is_source(&path) {
            return;
        }
        let opened = self.state.update(|shared| {
            let changed = shared.next_change();
            let open = Document {
                uri: document.uri,
                version: document.version,
                changed,
            };
            shared.documents.insert(path.clone(), open);
            shared.host.open_file(&path, document.text);
            let folders = &shared.project.folders;
            (
                folders.is_empty(),
                folders.iter().any(|folder| path.starts_with(folder)),
            )
        });
        let Some((alone, inside)) = opened else {
            return self.state.log_bug("opening a document failed").await;
        };
        if path.is_absolute() {
            if alone {
                tokio::spawn(project::reload(self.state.clone()));
            } else {
                let state = self.state.clone();
                tokio::spawn(async move { project::follow(&state).await });
            }
            if !inside {
                self.disk(Job::ContextOf(path));
            }
        }
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        let path = path_of(&params.text_document.uri);
        let session = self.state.session();
        let changed = self.state.update(|shared| {
            let changed = shared.next_change();
            let Some(document) = shared.documents.get_mut(&path) else {
                return;
            };
            document.version = params.text_document.version;
            document.changed = changed;
            apply_changes(shared, &session, &path, &params.content_changes);
        });
        if changed.is_none() {
            self.state.log_bug("changing a document failed").await;
        }
    }

    async fn did_save(&self, _: DidSaveTextDocumentParams) {
        // The editor's text counts while the document is open; there is nothing to do.
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        let path = path_of(&params.text_document.uri);
        self.state.update(|shared| {
            shared.next_change();
            shared.documents.remove(&path);
            if !path.is_absolute() {
                shared.host.remove_file(&path);
            }
        });
        if path.is_absolute() {
            self.disk(Job::Reload(vec![path]));
        }
    }

    async fn did_change_watched_files(&self, params: DidChangeWatchedFilesParams) {
        let changed: Vec<PathBuf> = params.changes.iter().map(|change| path_of(&change.uri)).collect();
        if changed.iter().any(|path| project::concerns(path)) {
            tokio::spawn(project::reload(self.state.clone()));
        }
        let paths: Vec<PathBuf> = changed
            .into_iter()
            .filter(|path| path.is_absolute() && disk::concerns(&self.state, path))
            .collect();
        if !paths.is_empty() {
            self.disk(Job::Reload(paths));
        }
    }

    async fn did_change_workspace_folders(&self, params: DidChangeWorkspaceFoldersParams) {
        let paths = |folders: Vec<WorkspaceFolder>| -> Vec<PathBuf> {
            folders.iter().map(|folder| path_of(&folder.uri)).collect()
        };
        let (removed, added) = (paths(params.event.removed), paths(params.event.added));
        self.state.update(|shared| {
            let folders = &mut shared.project.folders;
            folders.retain(|folder| !removed.contains(folder));
            folders.extend(added.iter().cloned());
        });
        for folder in removed {
            self.disk(Job::Forget(folder));
        }
        for folder in added {
            self.disk(Job::Folder(folder));
        }
        tokio::spawn(project::reload(self.state.clone()));
    }

    async fn did_change_configuration(&self, params: DidChangeConfigurationParams) {
        if params.settings.get(SECTION).unwrap_or(&params.settings).is_null() {
            if self.state.session().ask_configuration {
                tokio::spawn(ask_configuration(self.state.clone()));
            }
        } else {
            configure(&self.state, &params.settings).await;
        }
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        let at = params.clone();
        let answer = late::request(
            &self.state,
            move |snapshot| Ok(hover::hover(snapshot, &params)),
            move |snapshot| hover::known(snapshot, &at),
            || Some(hover::unknown()),
        );
        Ok(answer.await?.now())
    }

    async fn code_lens(&self, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        self.state
            .request(move |snapshot| Ok(Some(lens::code_lenses(snapshot, &params))))
            .await
    }

    async fn code_lens_resolve(&self, lens: CodeLens) -> Result<CodeLens> {
        let (known, unknown) = (lens.clone(), lens.clone());
        let answer = late::request(
            &self.state,
            move |snapshot| lens::resolve(snapshot, lens.clone()),
            move |snapshot| lens::known(snapshot, known.clone()),
            || lens::unknown(unknown),
        );
        match answer.await? {
            Answer::Whole(lens) => Ok(lens),
            Answer::Late(lens, whole) => {
                let state = self.state.clone();
                tokio::spawn(async move {
                    if matches!(whole.await, Ok(Ok(_))) && state.session().refresh_lenses {
                        // A client that can't is none that says that it can.
                        let _ = state.client.code_lens_refresh().await;
                    }
                });
                Ok(lens)
            }
        }
    }

    async fn inlay_hint(&self, params: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
        self.state
            .request(move |snapshot| Ok(Some(hints::inlay_hints(snapshot, &params))))
            .await
    }

    async fn prepare_call_hierarchy(
        &self,
        params: CallHierarchyPrepareParams,
    ) -> Result<Option<Vec<CallHierarchyItem>>> {
        self.state
            .request(move |snapshot| Ok(hierarchy::prepare(snapshot, &params)))
            .await
    }

    async fn incoming_calls(
        &self,
        params: CallHierarchyIncomingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyIncomingCall>>> {
        self.state
            .request(move |snapshot| Ok(hierarchy::incoming(snapshot, &params.item)))
            .await
    }

    async fn outgoing_calls(
        &self,
        params: CallHierarchyOutgoingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyOutgoingCall>>> {
        self.state
            .request(move |snapshot| Ok(hierarchy::outgoing(snapshot, &params.item)))
            .await
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<Value>> {
        commands::execute(&self.state, params).await
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        let answer = late::request(
            &self.state,
            move |snapshot| Ok(Some(actions::code_actions(snapshot, &params))),
            |snapshot| Some(actions::unfinished(snapshot)),
            || None,
        );
        Ok(answer.await?.now())
    }

    async fn code_action_resolve(&self, action: CodeAction) -> Result<CodeAction> {
        self.state
            .request(move |snapshot| actions::resolve(snapshot, action.clone()))
            .await
    }

    async fn diagnostic(&self, params: DocumentDiagnosticParams) -> Result<DocumentDiagnosticReportResult> {
        let path = path_of(&params.text_document.uri);
        let change = self.state.lock().last_change();
        let items = match self
            .state
            .query(move |snapshot| publish::of_file(snapshot, &path))
            .await
        {
            Ok(items) => {
                self.state.answers.published(change);
                items
            }
            Err(Stopped::Changed) => {
                return Err(Error {
                    code: ErrorCode::ServerError(SERVER_CANCELLED),
                    message: "the text changed meanwhile".into(),
                    data: serde_json::to_value(DiagnosticServerCancellationData {
                        retrigger_request: true,
                    })
                    .ok(),
                });
            }
            Err(stopped) => return Err(stopped.into()),
        };
        let mut hasher = DefaultHasher::new();
        serde_json::to_string(&items).unwrap_or_default().hash(&mut hasher);
        let id = format!("{:x}", hasher.finish());
        let report = if params.previous_result_id.as_ref() == Some(&id) {
            DocumentDiagnosticReport::Unchanged(RelatedUnchangedDocumentDiagnosticReport {
                related_documents: None,
                unchanged_document_diagnostic_report: UnchangedDocumentDiagnosticReport { result_id: id },
            })
        } else {
            DocumentDiagnosticReport::Full(RelatedFullDocumentDiagnosticReport {
                related_documents: None,
                full_document_diagnostic_report: FullDocumentDiagnosticReport {
                    result_id: Some(id),
                    items,
                },
            })
        };
        Ok(DocumentDiagnosticReportResult::Report(report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(text: &str) -> Shared {
        let mut shared = Shared::new();
        shared.host.set_file(Path::new("/x.cu"), text);
        shared
    }

    fn text(shared: &Shared) -> String {
        let file = shared.host.file(Path::new("/x.cu"));
        file.map(|file| file.text(shared.host.db()).to_string())
            .unwrap_or_default()
    }

    fn change(range: Option<(u32, u32, u32, u32)>, text: &str) -> TextDocumentContentChangeEvent {
        TextDocumentContentChangeEvent {
            range: range.map(|(l1, c1, l2, c2)| Range::new(Position::new(l1, c1), Position::new(l2, c2))),
            range_length: None,
            text: text.to_string(),
        }
    }

    #[test]
    fn whole_texts_become_small_edits() {
        let texts = [
            "",
            "a",
            "int ä;\n",
            "int ö;\n",
            "int ö; int ü;\r\n",
            "😀",
            "😁",
            "aaaa",
            "aa",
            "aaa",
        ];
        for old in texts {
            for new in texts {
                let mut shared = shared(old);
                replace(&mut shared, Path::new("/x.cu"), new);
                assert_eq!(text(&shared), new, "{old:?}");
            }
        }
    }

    #[test]
    fn changes_apply_in_order() {
        let session = Session::default();
        let mut shared = shared("ab😀c\r\nd");
        let path = Path::new("/x.cu");
        apply_changes(&mut shared, &session, path, &[change(Some((0, 4, 0, 5)), "C")]);
        assert_eq!(text(&shared), "ab😀C\r\nd");
        let changes = [
            change(Some((1, 0, 1, 1)), "e\n"),
            change(Some((2, 0, 2, 0)), "f"),
            change(Some((0, 0, 0, 2)), ""),
        ];
        apply_changes(&mut shared, &session, path, &changes);
        assert_eq!(text(&shared), "😀C\r\ne\nf");
        apply_changes(
            &mut shared,
            &session,
            path,
            &[change(None, "x"), change(Some((0, 1, 9, 9)), "y")],
        );
        assert_eq!(text(&shared), "xy");
    }
}
