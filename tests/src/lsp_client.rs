//! A small language client for end-to-end tests: it starts a server and speaks real JSON-RPC with it.
//!
//! Everything is a [`serde_json::Value`], so that the tests see what an editor would see. A test that
//! waits in vain panics with what it waited for and with the server's standard error.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use url::Url;

use crate::patience::PATIENCE;

/// How long a test waits for the server, unless [`Client::set_timeout`] says otherwise.
pub const TIMEOUT: Duration = PATIENCE;

/// The unit in which the protocol counts columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PositionEncoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units, the protocol's default.
    Utf16,
    /// Characters.
    Utf32,
}

impl PositionEncoding {
    /// The protocol's name.
    pub fn as_str(self) -> &'static str {
        match self {
            PositionEncoding::Utf8 => "utf-8",
            PositionEncoding::Utf16 => "utf-16",
            PositionEncoding::Utf32 => "utf-32",
        }
    }

    /// The encoding with that name.
    pub fn from_name(name: &str) -> Option<PositionEncoding> {
        [Self::Utf8, Self::Utf16, Self::Utf32]
            .into_iter()
            .find(|encoding| encoding.as_str() == name)
    }

    /// The width of a character.
    fn width(self, character: char) -> usize {
        match self {
            PositionEncoding::Utf8 => character.len_utf8(),
            PositionEncoding::Utf16 => character.len_utf16(),
            PositionEncoding::Utf32 => 1,
        }
    }

    /// The position of a byte offset.
    ///
    /// # Panics
    /// When the offset is not a character boundary of `text`.
    pub fn position(self, text: &str, offset: usize) -> Value {
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column: usize = before[line_start..].chars().map(|c| self.width(c)).sum();
        json!({ "line": before.matches('\n').count(), "character": column })
    }

    /// The range of a range of bytes.
    pub fn range(self, text: &str, bytes: Range<usize>) -> Value {
        json!({ "start": self.position(text, bytes.start), "end": self.position(text, bytes.end) })
    }

    /// The byte offset of a position. A column past the end means the end of the line, as in the
    /// protocol; a line past the end and a column inside a character are mistakes.
    pub fn offset(self, text: &str, position: &Value) -> Result<usize, String> {
        let number = |name: &str| {
            position[name]
                .as_u64()
                .and_then(|number| usize::try_from(number).ok())
                .ok_or_else(|| format!("`{position}` is not a position"))
        };
        let (line, character) = (number("line")?, number("character")?);
        let mut start = 0;
        for _ in 0..line {
            start += text[start..]
                .find('\n')
                .ok_or_else(|| format!("line {line} is past the end of the text"))?
                + 1;
        }
        let line_text = text[start..].split('\n').next().unwrap_or_default();
        let line_text = line_text.strip_suffix('\r').unwrap_or(line_text);
        let mut column = 0;
        for (byte, c) in line_text.char_indices() {
            if column == character {
                return Ok(start + byte);
            }
            if column > character {
                return Err(format!("`{position}` is inside a character"));
            }
            column += self.width(c);
        }
        if column > character {
            return Err(format!("`{position}` is inside a character"));
        }
        Ok(start + line_text.len())
    }

    /// The byte range of a range.
    pub fn bytes(self, text: &str, range: &Value) -> Result<Range<usize>, String> {
        let start = self.offset(text, &range["start"])?;
        let end = self.offset(text, &range["end"])?;
        if start > end {
            return Err(format!("`{range}` ends before it starts"));
        }
        Ok(start..end)
    }
}

/// What the client says that it can do.
#[derive(Debug, Clone)]
pub struct Capabilities {
    /// `general.positionEncodings`, most wanted first; with none, the field is left out.
    pub position_encodings: Vec<PositionEncoding>,
    /// `textDocument.diagnostic`: diagnostics on request.
    pub pull_diagnostics: bool,
    /// `textDocument.codeAction.resolveSupport` for the edit.
    pub code_action_resolve: bool,
    /// `textDocument.codeAction.disabledSupport`.
    pub code_action_disabled: bool,
    /// `workspace.workspaceEdit.documentChanges` with creating, renaming and deleting files.
    pub document_changes: bool,
    /// `workspace.workspaceEdit.changeAnnotationSupport`.
    pub change_annotations: bool,
    /// `workspace.configuration` and `workspace.didChangeConfiguration`.
    pub configuration: bool,
    /// `refreshSupport` of inlay hints, semantic tokens, code lenses and diagnostics.
    pub refresh: bool,
    /// `window.workDoneProgress`.
    pub work_done_progress: bool,
    /// `workspace.didChangeWatchedFiles.dynamicRegistration`.
    pub watched_files: bool,
    /// Merged over the rest, for whatever else a test needs.
    pub extra: Value,
}

impl Default for Capabilities {
    /// Those of a current editor.
    fn default() -> Self {
        Capabilities {
            position_encodings: vec![PositionEncoding::Utf8, PositionEncoding::Utf16],
            pull_diagnostics: false,
            code_action_resolve: true,
            code_action_disabled: true,
            document_changes: true,
            change_annotations: false,
            configuration: true,
            refresh: true,
            work_done_progress: true,
            watched_files: true,
            extra: Value::Null,
        }
    }
}

impl Capabilities {
    /// Those of an editor that can do next to nothing.
    pub fn minimal() -> Self {
        Capabilities {
            position_encodings: Vec::new(),
            pull_diagnostics: false,
            code_action_resolve: false,
            code_action_disabled: false,
            document_changes: false,
            change_annotations: false,
            configuration: false,
            refresh: false,
            work_done_progress: false,
            watched_files: false,
            extra: Value::Null,
        }
    }

    /// The `ClientCapabilities` of the protocol.
    pub fn to_json(&self) -> Value {
        let mut capabilities = json!({
            "general": {},
            "window": { "workDoneProgress": self.work_done_progress },
            "workspace": {
                "applyEdit": true,
                "configuration": self.configuration,
                "didChangeConfiguration": { "dynamicRegistration": self.configuration },
                "didChangeWatchedFiles": { "dynamicRegistration": self.watched_files },
                "workspaceFolders": true,
                "workspaceEdit": { "documentChanges": self.document_changes },
                "inlayHint": { "refreshSupport": self.refresh },
                "semanticTokens": { "refreshSupport": self.refresh },
                "codeLens": { "refreshSupport": self.refresh },
                "diagnostics": { "refreshSupport": self.refresh },
            },
            "textDocument": {
                "synchronization": { "didSave": true },
                "publishDiagnostics": {
                    "relatedInformation": true,
                    "versionSupport": true,
                    "codeDescriptionSupport": true,
                    "dataSupport": true,
                },
                "hover": { "contentFormat": ["markdown", "plaintext"] },
                "inlayHint": {},
                "codeLens": {},
                "codeAction": {
                    "codeActionLiteralSupport": { "codeActionKind": { "valueSet": [
                        "", "quickfix", "refactor", "refactor.extract", "refactor.inline",
                        "refactor.rewrite", "source", "source.fixAll",
                    ] } },
                    "isPreferredSupport": true,
                    "dataSupport": true,
                    "disabledSupport": self.code_action_disabled,
                },
            },
        });
        if !self.position_encodings.is_empty() {
            capabilities["general"]["positionEncodings"] = self
                .position_encodings
                .iter()
                .map(|encoding| encoding.as_str())
                .collect();
        }
        if self.pull_diagnostics {
            capabilities["textDocument"]["diagnostic"] =
                json!({ "dynamicRegistration": false, "relatedDocumentSupport": true });
        }
        if self.code_action_resolve {
            capabilities["textDocument"]["codeAction"]["resolveSupport"] = json!({ "properties": ["edit"] });
        }
        let edit = &mut capabilities["workspace"]["workspaceEdit"];
        if self.document_changes {
            edit["resourceOperations"] = json!(["create", "rename", "delete"]);
            edit["failureHandling"] = json!("textOnlyTransactional");
        }
        if self.change_annotations {
            edit["changeAnnotationSupport"] = json!({ "groupsOnLabel": true });
        }
        merge(&mut capabilities, &self.extra);
        capabilities
    }
}

/// Writes `extra` over `base`, object by object.
fn merge(base: &mut Value, extra: &Value) {
    match (base, extra) {
        (_, Value::Null) => {}
        (Value::Object(base), Value::Object(extra)) => {
            for (name, value) in extra {
                merge(base.entry(name.as_str()).or_insert(Value::Null), value);
            }
        }
        (base, extra) => *base = extra.clone(),
    }
}

/// An error that the server answered a request with.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseError {
    /// The protocol's error code, such as -32601 for an unknown method.
    pub code: i64,
    /// The message.
    pub message: String,
    /// What else the server told.
    pub data: Value,
}

impl ResponseError {
    /// `RequestCancelled`.
    pub const REQUEST_CANCELLED: i64 = -32800;
    /// `ContentModified`.
    pub const CONTENT_MODIFIED: i64 = -32801;
    /// `MethodNotFound`.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// `ServerNotInitialized`.
    pub const SERVER_NOT_INITIALIZED: i64 = -32002;
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}: {}", self.code, self.message)
    }
}

impl std::error::Error for ResponseError {}

/// One `textDocument/publishDiagnostics`.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// The document.
    pub uri: String,
    /// The document's version, if the server says.
    pub version: Option<i64>,
    /// The diagnostics.
    pub diagnostics: Vec<Value>,
}

/// The id of a request that was sent and not yet waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId(i64);

/// A document that is open in the client.
#[derive(Debug, Clone)]
struct Document {
    version: i64,
    text: String,
    /// How many publications had arrived when the document got this version.
    published_before: usize,
}

#[derive(Debug, Default)]
struct State {
    responses: HashMap<i64, Result<Value, ResponseError>>,
    published: Vec<Published>,
    notifications: Vec<(String, Value)>,
    server_requests: Vec<(String, Value)>,
    stderr: String,
    /// Why nothing more will come.
    closed: Option<String>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    writer: Mutex<Option<Box<dyn Write + Send>>>,
    configuration: Mutex<BTreeMap<String, Value>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn update(&self, update: impl FnOnce(&mut State)) {
        update(&mut self.state());
        self.changed.notify_all();
    }

    fn send(&self, message: &Value) -> io::Result<()> {
        let body = message.to_string();
        let mut writer = self.writer.lock().unwrap_or_else(|poison| poison.into_inner());
        let writer = writer.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        write!(writer, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        writer.flush()
    }

    /// Handles what the server sends.
    fn receive(&self, message: Value) {
        let method = message["method"].as_str().map(str::to_owned);
        let params = message.get("params").cloned().unwrap_or(Value::Null);
        match (method, message.get("id")) {
            (Some(method), Some(id)) => {
                let mut answer = json!({ "jsonrpc": "2.0", "id": id });
                match self.answer(&method, &params) {
                    Some(result) => answer["result"] = result,
                    None => {
                        answer["error"] = json!({
                            "code": ResponseError::METHOD_NOT_FOUND,
                            "message": format!("the client does not know {method}"),
                        });
                    }
                }
                // Answered first: a test that sees the request may end the server right away.
                let _ = self.send(&answer);
                self.update(|state| state.server_requests.push((method, params)));
            }
            (Some(method), None) => self.update(|state| {
                if method == "textDocument/publishDiagnostics" {
                    state.published.push(Published {
                        uri: params["uri"].as_str().unwrap_or_default().to_owned(),
                        version: params["version"].as_i64(),
                        diagnostics: params["diagnostics"].as_array().cloned().unwrap_or_default(),
                    });
                }
                state.notifications.push((method, params));
            }),
            (None, Some(id)) => {
                let response = match message.get("error") {
                    Some(error) => Err(ResponseError {
                        code: error["code"].as_i64().unwrap_or_default(),
                        message: error["message"].as_str().unwrap_or_default().to_owned(),
                        data: error.get("data").cloned().unwrap_or(Value::Null),
                    }),
                    None => Ok(message.get("result").cloned().unwrap_or(Value::Null)),
                };
                let id = id.as_i64().unwrap_or(-1);
                self.update(|state| {
                    if state.responses.insert(id, response).is_some() {
                        state.closed = Some(format!("request {id} was answered twice"));
                    }
                });
            }
            (None, None) => self.update(|state| {
                state.closed = Some(format!("the server sent no JSON-RPC message: {message}"));
            }),
        }
    }

    /// The client's answer to a request of the server.
    fn answer(&self, method: &str, params: &Value) -> Option<Value> {
        match method {
            "workspace/configuration" => {
                let configuration = self.configuration.lock().unwrap_or_else(|poison| poison.into_inner());
                let items = params["items"].as_array().cloned().unwrap_or_default();
                Some(
                    items
                        .iter()
                        .map(|item| {
                            let section = item["section"].as_str().unwrap_or_default();
                            configuration.get(section).cloned().unwrap_or(Value::Null)
                        })
                        .collect(),
                )
            }
            "workspace/applyEdit" => Some(json!({ "applied": true })),
            "window/showDocument" => Some(json!({ "success": true })),
            "client/registerCapability"
            | "client/unregisterCapability"
            | "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/workspaceFolders"
            | "workspace/inlayHint/refresh"
            | "workspace/semanticTokens/refresh"
            | "workspace/diagnostic/refresh"
            | "workspace/codeLens/refresh" => Some(Value::Null),
            _ => None,
        }
    }
}

/// Reads one message; `None` at the end of the stream.
fn read_message(reader: &mut impl BufRead) -> Result<Option<Value>, String> {
    let Some(body) = read_body(reader)? else {
        return Ok(None);
    };
    serde_json::from_slice(&body)
        .map(Some)
        .map_err(|error| format!("a message that is not JSON: {error}"))
}

/// Reads one message and leaves it as it came; `None` at the end of the stream.
pub(crate) fn read_body(reader: &mut impl BufRead) -> Result<Option<Vec<u8>>, String> {
    let mut length = None;
    let mut any = false;
    loop {
        let mut line = String::new();
        let read = reader
            .read_line(&mut line)
            .map_err(|error| format!("unreadable header: {error}"))?;
        if read == 0 {
            return if any {
                Err("the stream ended inside a header".to_owned())
            } else {
                Ok(None)
            };
        }
        any = true;
        let line = line
            .strip_suffix("\r\n")
            .ok_or_else(|| format!("not a header line: {line:?}"))?;
        if line.is_empty() {
            break;
        }
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                let value = value.parse::<usize>();
                length = Some(value.map_err(|error| format!("bad Content-Length: {error}"))?);
            }
            Some(_) => {}
            None => return Err(format!("not a header line: {line:?}")),
        }
    }
    let mut body = vec![0; length.ok_or("a message without Content-Length")?];
    reader
        .read_exact(&mut body)
        .map_err(|error| format!("the stream ended inside a message: {error}"))?;
    Ok(Some(body))
}

/// The environment variable that says after how many milliseconds a server answers with what it knows.
pub const ANSWER_WITHIN: &str = "GRIDFUSE_ANSWER_WITHIN_MS";

/// Whether a progress only says that the server works: such a one may come at any time.
pub fn is_working(progress: &Value) -> bool {
    progress["token"]
        .as_str()
        .is_some_and(|token| token.starts_with("gridfuse/working/"))
}

/// A client with a running server.
///
/// Methods that wait panic after the timeout. Dropping the client ends the server.
pub struct Client {
    shared: Arc<Shared>,
    process: Option<Child>,
    next_id: i64,
    timeout: Duration,
    encoding: PositionEncoding,
    server_capabilities: Value,
    documents: BTreeMap<PathBuf, Document>,
    /// The last version of every document that was open: what is opened again goes on from there, so that diagnostics of its former
    /// text aren't taken for those of the new one.
    versions: HashMap<PathBuf, i64>,
    requests: HashMap<i64, String>,
}

impl Client {
    /// Starts `program` and connects to its standard input and output.
    pub fn spawn(program: &Path, args: &[&str]) -> Client {
        let mut command = Command::new(program);
        command.args(args);
        // A server writes documentation to link to there.
        command.env("XDG_CACHE_HOME", crate::workspace::target_dir().join("test-cache"));
        // Nothing is kept there.
        command.env("XDG_STATE_HOME", crate::workspace::target_dir().join("test-no-state"));
        Self::spawn_command(command)
    }

    /// Starts a prepared command, for tests that set the directory or the environment.
    pub fn spawn_command(mut command: Command) -> Client {
        if !command.get_envs().any(|(name, _)| name == ANSWER_WITHIN) {
            // However busy the machine is, tests see whole answers.
            command.env(ANSWER_WITHIN, "600000");
        }
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let stdin = process.stdin.take().expect("a piped stdin");
        let stdout = process.stdout.take().expect("a piped stdout");
        let mut stderr = BufReader::new(process.stderr.take().expect("a piped stderr"));
        let mut client = Self::over(stdout, stdin);
        client.process = Some(process);
        let shared = Arc::clone(&client.shared);
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while matches!(stderr.read_until(b'\n', &mut line), Ok(read) if read > 0) {
                shared.update(|state| state.stderr.push_str(&String::from_utf8_lossy(&line)));
                line.clear();
            }
        });
        client
    }

    /// The server's process, when it is one.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Connects to a server that is no process of its own.
    pub fn over(reader: impl Read + Send + 'static, writer: impl Write + Send + 'static) -> Client {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            writer: Mutex::new(Some(Box::new(writer))),
            configuration: Mutex::default(),
        });
        let receiver = Arc::clone(&shared);
        std::thread::spawn(move || {
            let mut reader = BufReader::new(reader);
            let reason = loop {
                match read_message(&mut reader) {
                    Ok(Some(message)) => receiver.receive(message),
                    Ok(None) => break "the server closed its output".to_owned(),
                    Err(reason) => break reason,
                }
            };
            receiver.update(|state| {
                state.closed.get_or_insert(reason);
            });
        });
        Client {
            shared,
            process: None,
            next_id: 1,
            timeout: TIMEOUT,
            encoding: PositionEncoding::Utf16,
            server_capabilities: Value::Null,
            documents: BTreeMap::new(),
            versions: HashMap::new(),
            requests: HashMap::new(),
        }
    }

    /// Changes how long the client waits.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Sets what the server gets when it asks for the configuration of `section`.
    pub fn set_configuration(&self, section: &str, value: Value) {
        self.shared
            .configuration
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
            .insert(section.to_owned(), value);
    }

    /// Does the `initialize` handshake and returns the server's `InitializeResult`.
    pub fn initialize(&mut self, root: Option<&Path>, capabilities: &Capabilities) -> Value {
        self.initialize_with(root, capabilities, Value::Null)
    }

    /// Like [`Client::initialize`], with `initializationOptions`.
    pub fn initialize_with(&mut self, root: Option<&Path>, capabilities: &Capabilities, options: Value) -> Value {
        let root = root.map(uri);
        let mut params = json!({
            "processId": std::process::id(),
            "clientInfo": { "name": "gridfuse-tests" },
            "rootUri": root,
            "capabilities": capabilities.to_json(),
            "workspaceFolders": root.map(|uri| json!([{ "uri": uri, "name": "tests" }])),
        });
        if !options.is_null() {
            params["initializationOptions"] = options;
        }
        let result = self.request("initialize", params);
        self.server_capabilities = result["capabilities"].clone();
        if let Some(name) = self.server_capabilities["positionEncoding"].as_str() {
            self.encoding =
                PositionEncoding::from_name(name).unwrap_or_else(|| panic!("unknown position encoding `{name}`"));
            let offered = &capabilities.position_encodings;
            assert!(
                offered.contains(&self.encoding) || self.encoding == PositionEncoding::Utf16,
                "the server chose {name}, which the client did not offer"
            );
        }
        self.notify("initialized", json!({}));
        result
    }

    /// The server's capabilities, after [`Client::initialize`].
    pub fn server_capabilities(&self) -> &Value {
        &self.server_capabilities
    }

    /// The position encoding that client and server agreed on.
    pub fn encoding(&self) -> PositionEncoding {
        self.encoding
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: Value) {
        self.send(&message(None, method, params), method);
    }

    /// Sends a request without waiting; see [`Client::wait_response`] and [`Client::cancel`].
    pub fn send_request(&mut self, method: &str, params: Value) -> RequestId {
        let id = self.next_id;
        self.next_id += 1;
        self.requests.insert(id, method.to_owned());
        self.send(&message(Some(id), method, params), method);
        RequestId(id)
    }

    /// Waits for the response to a request.
    pub fn wait_response(&self, id: RequestId) -> Result<Value, ResponseError> {
        let method = self.requests.get(&id.0).map_or("?", String::as_str);
        self.wait_for(&format!("the response to {method}"), |state| {
            state.responses.get(&id.0).cloned()
        })
    }

    /// The response to a request, if it has already come.
    pub fn poll_response(&self, id: RequestId) -> Option<Result<Value, ResponseError>> {
        self.shared.state().responses.get(&id.0).cloned()
    }

    /// Sends a request and waits for its response, which may be an error.
    pub fn try_request(&mut self, method: &str, params: Value) -> Result<Value, ResponseError> {
        let id = self.send_request(method, params);
        self.wait_response(id)
    }

    /// Sends a request and waits for its result.
    ///
    /// # Panics
    /// When the server answers with an error.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        match self.try_request(method, params) {
            Ok(result) => result,
            Err(error) => panic!("{method}: {error}{}", self.story()),
        }
    }

    /// Asks the server to give up a request.
    pub fn cancel(&self, id: RequestId) {
        self.notify("$/cancelRequest", json!({ "id": id.0 }));
    }

    /// Opens a document with the language id `cuda-cpp`: as version 1, or the one after its last when it was open before.
    pub fn open(&mut self, path: &Path, text: &str) {
        self.open_as(path, "cuda-cpp", text);
    }

    /// Opens a document with another language id.
    pub fn open_as(&mut self, path: &Path, language: &str, text: &str) {
        let version = self.versions.get(path).map_or(1, |last| last + 1);
        self.remember(path, version, text.to_owned());
        self.notify(
            "textDocument/didOpen",
            json!({ "textDocument": {
                "uri": uri(path), "languageId": language, "version": version, "text": text,
            } }),
        );
    }

    /// Replaces ranges of bytes, each range in the text that the one before it left, as one version.
    pub fn change(&mut self, path: &Path, edits: &[(Range<usize>, &str)]) {
        let document = self.document(path);
        let (version, mut text) = (document.version + 1, document.text.clone());
        let changes: Vec<Value> = edits
            .iter()
            .map(|(range, new)| {
                let change = json!({ "range": self.encoding.range(&text, range.clone()), "text": new });
                text.replace_range(range.clone(), new);
                change
            })
            .collect();
        self.send_change(path, version, text, &changes);
    }

    /// Replaces the first occurrence of `from`.
    ///
    /// # Panics
    /// When the document does not contain it.
    pub fn replace(&mut self, path: &Path, from: &str, to: &str) {
        let start = self.find(path, from);
        self.change(path, &[(start..start + from.len(), to)]);
    }

    /// Replaces the whole text.
    pub fn change_full(&mut self, path: &Path, text: &str) {
        let version = self.document(path).version + 1;
        self.send_change(path, version, text.to_owned(), &[json!({ "text": text })]);
    }

    fn send_change(&mut self, path: &Path, version: i64, text: String, changes: &[Value]) {
        self.remember(path, version, text);
        self.notify(
            "textDocument/didChange",
            json!({
                "textDocument": { "uri": uri(path), "version": version },
                "contentChanges": changes,
            }),
        );
    }

    /// Saves a document: writes it to disk and tells the server.
    pub fn save(&mut self, path: &Path) {
        let text = self.text(path).to_owned();
        fs::write(path, &text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.notify(
            "textDocument/didSave",
            json!({ "textDocument": { "uri": uri(path) }, "text": text }),
        );
    }

    /// Closes a document.
    pub fn close(&mut self, path: &Path) {
        self.documents.remove(path);
        self.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri(path) } }));
    }

    /// The text of an open document, as the server should have it.
    pub fn text(&self, path: &Path) -> &str {
        &self.document(path).text
    }

    /// The version of an open document.
    pub fn version(&self, path: &Path) -> i64 {
        self.document(path).version
    }

    /// The byte offset of the first occurrence of `needle` in an open document.
    ///
    /// # Panics
    /// When there is none.
    pub fn find(&self, path: &Path, needle: &str) -> usize {
        let text = self.text(path);
        text.find(needle)
            .unwrap_or_else(|| panic!("{} has no `{needle}`:\n{text}", path.display()))
    }

    /// The position of a byte offset in an open document.
    pub fn position(&self, path: &Path, offset: usize) -> Value {
        self.encoding.position(self.text(path), offset)
    }

    /// The range of some bytes of an open document.
    pub fn range(&self, path: &Path, bytes: Range<usize>) -> Value {
        self.encoding.range(self.text(path), bytes)
    }

    /// Sends `method` for a document, with `extra` beside its `textDocument`.
    pub fn document_request(&mut self, method: &str, path: &Path, extra: Value) -> Value {
        let params = document_params(path, extra);
        self.request(method, params)
    }

    /// Asks for the hover at a byte offset; null when there is none.
    pub fn hover(&mut self, path: &Path, offset: usize) -> Value {
        let position = self.position(path, offset);
        self.document_request("textDocument/hover", path, json!({ "position": position }))
    }

    /// Asks for the code actions for a range of bytes; `only` may name kinds.
    pub fn code_actions(
        &mut self,
        path: &Path,
        bytes: Range<usize>,
        only: &[&str],
        diagnostics: &[Value],
    ) -> Vec<Value> {
        let mut context = json!({ "diagnostics": diagnostics, "triggerKind": 1 });
        if !only.is_empty() {
            context["only"] = json!(only);
        }
        let range = self.range(path, bytes);
        let extra = json!({ "range": range, "context": context });
        array(self.document_request("textDocument/codeAction", path, extra))
    }

    /// Asks for what a code action left out.
    pub fn resolve(&mut self, action: &Value) -> Value {
        self.request("codeAction/resolve", action.clone())
    }

    /// Asks for the inlay hints of a whole document.
    pub fn inlay_hints(&mut self, path: &Path) -> Vec<Value> {
        let range = self.range(path, 0..self.text(path).len());
        array(self.document_request("textDocument/inlayHint", path, json!({ "range": range })))
    }

    /// Asks for the code lenses of a document.
    pub fn code_lenses(&mut self, path: &Path) -> Vec<Value> {
        array(self.document_request("textDocument/codeLens", path, Value::Null))
    }

    /// Asks for a document's diagnostics, and returns the whole report.
    pub fn pull_diagnostics(&mut self, path: &Path, previous: Option<&str>) -> Value {
        let extra = match previous {
            Some(previous) => json!({ "previousResultId": previous }),
            None => Value::Null,
        };
        self.document_request("textDocument/diagnostic", path, extra)
    }

    /// Waits for the diagnostics that the server publishes for the current version of a document.
    pub fn diagnostics(&self, path: &Path) -> Vec<Value> {
        let document = self.document(path);
        let (version, before) = (document.version, document.published_before);
        self.wait_for(
            &format!("the diagnostics of {} version {version}", path.display()),
            |state| {
                state
                    .published
                    .iter()
                    .enumerate()
                    .rev()
                    .filter(|(_, published)| is_uri_of(&published.uri, path))
                    .find(|(index, published)| match published.version {
                        Some(published) => published == version,
                        None => *index >= before,
                    })
                    .map(|(_, published)| published.diagnostics.clone())
            },
        )
    }

    /// Everything that was published for a document so far, oldest first.
    pub fn published(&self, path: &Path) -> Vec<Published> {
        self.shared
            .state()
            .published
            .iter()
            .filter(|published| is_uri_of(&published.uri, path))
            .cloned()
            .collect()
    }

    /// Waits until something that the server published for a document fulfils a condition.
    pub fn wait_published(&self, path: &Path, condition: impl Fn(&Published) -> bool) -> Published {
        self.wait_for(&format!("certain diagnostics of {}", path.display()), |state| {
            state
                .published
                .iter()
                .rev()
                .find(|published| is_uri_of(&published.uri, path) && condition(published))
                .cloned()
        })
    }

    /// Waits for a notification of the server, and returns its parameters.
    pub fn wait_notification(&self, method: &str, condition: impl Fn(&Value) -> bool) -> Value {
        self.wait_for(&format!("the notification {method}"), |state| {
            find_message(&state.notifications, method, &condition)
        })
    }

    /// Waits for a request of the server, which the client has answered, and returns its parameters.
    pub fn wait_server_request(&self, method: &str, condition: impl Fn(&Value) -> bool) -> Value {
        self.wait_for(&format!("the server's request {method}"), |state| {
            find_message(&state.server_requests, method, &condition)
        })
    }

    /// All requests of the server so far.
    pub fn server_requests(&self) -> Vec<(String, Value)> {
        self.shared.state().server_requests.clone()
    }

    /// All notifications of the server so far.
    pub fn notifications(&self) -> Vec<(String, Value)> {
        self.shared.state().notifications.clone()
    }

    /// What the server has written to its standard error.
    pub fn stderr(&self) -> String {
        self.shared.state().stderr.clone()
    }

    /// Ends the server in the regular way and checks that its exit code is 0.
    pub fn shutdown(mut self) {
        let result = self.request("shutdown", Value::Null);
        assert!(result.is_null(), "shutdown has to return null, not {result}");
        let code = self.exit();
        assert_eq!(code, Some(0), "the exit code after shutdown{}", self.story());
    }

    /// Sends `exit` and returns the exit code, `None` for a server killed by a signal.
    ///
    /// Without an earlier `shutdown` request the protocol wants 1.
    pub fn exit(&mut self) -> Option<i32> {
        self.notify("exit", Value::Null);
        self.wait_exit()
    }

    /// Closes the server's input, as an editor that crashed does, and returns the exit code.
    pub fn hang_up(&mut self) -> Option<i32> {
        self.shared
            .writer
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
            .take();
        self.wait_exit()
    }

    fn wait_exit(&mut self) -> Option<i32> {
        let deadline = Instant::now() + self.timeout;
        let Some(process) = self.process.as_mut() else {
            return Some(0);
        };
        loop {
            match process.try_wait() {
                Ok(Some(status)) => return status.code(),
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(None) => panic!(
                    "the server is still running {:?} after it had to end{}",
                    self.timeout,
                    self.story()
                ),
                Err(error) => panic!("the server cannot be waited for: {error}"),
            }
        }
    }

    fn document(&self, path: &Path) -> &Document {
        self.documents
            .get(path)
            .unwrap_or_else(|| panic!("{} is not open", path.display()))
    }

    fn remember(&mut self, path: &Path, version: i64, text: String) {
        let published_before = self.shared.state().published.len();
        let document = Document {
            version,
            text,
            published_before,
        };
        self.documents.insert(path.to_path_buf(), document);
        self.versions.insert(path.to_path_buf(), version);
    }

    fn send(&self, message: &Value, method: &str) {
        if let Err(error) = self.shared.send(message) {
            // The server's last words tell more than the broken pipe; they need a moment to arrive.
            std::thread::sleep(Duration::from_millis(100));
            panic!("{method} cannot be sent: {error}{}", self.story());
        }
    }

    fn wait_for<T>(&self, what: &str, find: impl Fn(&State) -> Option<T>) -> T {
        let deadline = Instant::now() + self.timeout;
        let mut state = self.shared.state();
        let problem = loop {
            if let Some(found) = find(&state) {
                return found;
            }
            if let Some(reason) = &state.closed {
                break reason.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break format!("nothing came in {:?}", self.timeout);
            }
            state = match self.shared.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poison) => poison.into_inner().0,
            };
        };
        drop(state);
        std::thread::sleep(Duration::from_millis(100));
        panic!("waiting for {what}: {problem}{}", self.story());
    }

    /// What a panic message ends with: how things stand with the server.
    fn story(&self) -> String {
        let state = self.shared.state();
        let mut story = String::new();
        if let Some(reason) = &state.closed {
            story.push_str(&format!("\n--- connection: {reason}"));
        }
        let mut open: Vec<_> = self
            .requests
            .iter()
            .filter(|(id, _)| !state.responses.contains_key(id))
            .collect();
        open.sort();
        if !open.is_empty() {
            story.push_str(&format!("\n--- unanswered requests: {open:?}"));
        }
        let last = state.notifications.len().saturating_sub(5);
        for (method, params) in &state.notifications[last..] {
            let params: String = params.to_string().chars().take(300).collect();
            story.push_str(&format!("\n--- the server sent {method}: {params}"));
        }
        if state.stderr.is_empty() {
            story.push_str("\n--- the server's standard error is empty");
        } else {
            story.push_str(&format!("\n--- the server's standard error:\n{}", state.stderr));
        }
        story
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(process) = self.process.as_mut() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn message(id: Option<i64>, method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    if let Some(id) = id {
        message["id"] = json!(id);
    }
    if !params.is_null() {
        message["params"] = params;
    }
    message
}

fn document_params(path: &Path, extra: Value) -> Value {
    let mut params = json!({ "textDocument": { "uri": uri(path) } });
    merge(&mut params, &extra);
    params
}

fn find_message(messages: &[(String, Value)], method: &str, condition: impl Fn(&Value) -> bool) -> Option<Value> {
    messages
        .iter()
        .find(|(name, params)| name == method && condition(params))
        .map(|(_, params)| params.clone())
}

fn array(value: Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(values) => values,
        other => panic!("expected an array, not {other}"),
    }
}

/// The `file:` URI of an absolute path.
///
/// # Panics
/// When the path is relative.
pub fn uri(path: &Path) -> String {
    Url::from_file_path(path)
        .unwrap_or_else(|()| panic!("{} is not absolute", path.display()))
        .into()
}

/// The path of a `file:` URI.
pub fn path_of(uri: &str) -> Option<PathBuf> {
    Url::parse(uri).ok()?.to_file_path().ok()
}

fn is_uri_of(uri: &str, path: &Path) -> bool {
    path_of(uri).is_some_and(|uri| uri == path)
}

/// Applies `TextEdit`s, which all speak of the text before any of them, to a text.
pub fn apply_text_edits(text: &str, edits: &[Value], encoding: PositionEncoding) -> Result<String, String> {
    let mut replacements = Vec::new();
    for edit in edits {
        let new = edit["newText"]
            .as_str()
            .ok_or_else(|| format!("an edit without newText: {edit}"))?;
        replacements.push((encoding.bytes(text, &edit["range"])?, new));
    }
    // Stable: several insertions at one place keep their order.
    replacements.sort_by_key(|(range, _)| (range.start, range.end));
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for (range, new) in replacements {
        if range.start < done {
            return Err(format!(
                "edits overlap at line {}",
                text[..range.start].matches('\n').count()
            ));
        }
        result.push_str(&text[done..range.start]);
        result.push_str(new);
        done = range.end;
    }
    result.push_str(&text[done..]);
    Ok(result)
}

/// Applies a `WorkspaceEdit` to the files below `root`, and returns the files that it touched.
///
/// Knows `changes` and `documentChanges` with creating, renaming and deleting files. An edit that
/// reaches outside `root` is an error, as is one that does not fit the files.
pub fn apply_workspace_edit(root: &Path, edit: &Value, encoding: PositionEncoding) -> Result<Vec<PathBuf>, String> {
    let mut touched = Vec::new();
    if let Some(operations) = edit["documentChanges"].as_array() {
        for operation in operations {
            apply_operation(root, operation, encoding, &mut touched)?;
        }
    } else if let Some(changes) = edit["changes"].as_object() {
        for (uri, edits) in changes {
            apply_edits(&inside(root, uri)?, edits, encoding, &mut touched)?;
        }
    } else {
        return Err(format!("neither documentChanges nor changes: {edit}"));
    }
    touched.sort();
    touched.dedup();
    Ok(touched)
}

fn apply_operation(
    root: &Path,
    operation: &Value,
    encoding: PositionEncoding,
    touched: &mut Vec<PathBuf>,
) -> Result<(), String> {
    let path = |name: &str| inside(root, operation[name].as_str().unwrap_or_default());
    let option = |name: &str| operation["options"][name].as_bool().unwrap_or(false);
    let failed = |error: io::Error| format!("{operation}: {error}");
    match operation["kind"].as_str() {
        None => {
            let uri = operation["textDocument"]["uri"].as_str().unwrap_or_default();
            apply_edits(&inside(root, uri)?, &operation["edits"], encoding, touched)
        }
        Some("create") => {
            let path = path("uri")?;
            if path.exists() && !option("overwrite") {
                return if option("ignoreIfExists") {
                    Ok(())
                } else {
                    Err(format!("{} is there already", path.display()))
                };
            }
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(failed)?;
            }
            fs::write(&path, "").map_err(failed)?;
            touched.push(path);
            Ok(())
        }
        Some("rename") => {
            let (from, to) = (path("oldUri")?, path("newUri")?);
            if to.exists() && !option("overwrite") {
                return if option("ignoreIfExists") {
                    Ok(())
                } else {
                    Err(format!("{} is there already", to.display()))
                };
            }
            fs::rename(&from, &to).map_err(failed)?;
            touched.extend([from, to]);
            Ok(())
        }
        Some("delete") => {
            let path = path("uri")?;
            if !path.exists() && option("ignoreIfNotExists") {
                return Ok(());
            }
            fs::remove_file(&path).map_err(failed)?;
            touched.push(path);
            Ok(())
        }
        Some(kind) => Err(format!("unknown operation `{kind}`")),
    }
}

fn apply_edits(
    path: &Path,
    edits: &Value,
    encoding: PositionEncoding,
    touched: &mut Vec<PathBuf>,
) -> Result<(), String> {
    let edits = edits
        .as_array()
        .ok_or_else(|| format!("no edits for {}", path.display()))?;
    let located = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| located(&error))?;
    let text = apply_text_edits(&text, edits, encoding).map_err(|error| located(&error))?;
    fs::write(path, text).map_err(|error| located(&error))?;
    touched.push(path.to_path_buf());
    Ok(())
}

/// The path of `uri`, if it is below `root`.
fn inside(root: &Path, uri: &str) -> Result<PathBuf, String> {
    let path = path_of(uri).ok_or_else(|| format!("`{uri}` is not the URI of a file"))?;
    if path.starts_with(root) {
        Ok(path)
    } else {
        Err(format!("{} is outside {}", path.display(), root.display()))
    }
}

#[cfg(test)]
mod tests;
