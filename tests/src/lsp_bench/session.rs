//! A client with a clock: each answer bears the moment at which it had arrived, and the server's processor time then.
//!
//! A clock is read right before a message that is ready is written, and by the thread that reads right behind the last byte of an
//! answer, before it is looked into. So what the client itself does isn't measured, but for waking up; [`super::echo`] tells how much
//! that is.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::watch::{Memory, Watched};
use crate::lsp_client::{Capabilities, PositionEncoding, path_of, read_body, uri};

/// How often a server is looked at that is waited for to become idle.
const LOOK: Duration = Duration::from_millis(2);

/// By how much a wait is prolonged.
const STEP: Duration = Duration::from_secs(1);

/// The share of time that an idle process may use.
const IDLE_SHARE: u32 = 50;

/// How long something took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// On the clock.
    pub wall: Duration,
    /// Processor time of the server.
    pub cpu: Duration,
}

/// What came of a request.
#[derive(Debug)]
pub enum Answer {
    /// A result.
    Came(Spent, Value),
    /// An error.
    Refused(String),
    /// Nothing, within the limit.
    Late,
}

/// How a wait for idleness ended.
#[derive(Debug, Clone, Copy)]
pub struct Settled {
    /// When the server was last seen to do something.
    pub at: Instant,
    /// Its processor time in all.
    pub cpu: Duration,
    /// False when it still did something at the end of the wait.
    pub idle: bool,
}

/// A moment: on the clock, and in the server's processor time.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// On the clock.
    pub at: Instant,
    /// The server's processor time.
    pub cpu: Duration,
}

struct Incoming {
    moment: Moment,
    message: Value,
}

/// The document that is open.
#[derive(Debug)]
struct Document {
    uri: String,
    path: std::path::PathBuf,
    text: String,
    version: i64,
}

/// A running server with at most one open document.
pub struct Session {
    process: Child,
    watched: Watched,
    started: Instant,
    input: Arc<Mutex<ChildStdin>>,
    incoming: Receiver<Incoming>,
    errors: File,
    next_id: i64,
    encoding: PositionEncoding,
    capabilities: Value,
    document: Option<Document>,
    /// How many diagnostics were last published for the document.
    diagnostics: usize,
    limit: Duration,
}

impl Session {
    /// Starts a server. Each answer is waited for until the server has worked for `limit`, or has been idle at its end.
    ///
    /// # Errors
    /// When it doesn't start.
    pub fn start(command: &mut Command, limit: Duration) -> Result<Session> {
        let errors = tempfile::tempfile()?;
        let started = Instant::now();
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone()?)
            .spawn()
            .with_context(|| format!("{command:?} does not start"))?;
        let watched = Watched::new(process.id())?;
        let input = Arc::new(Mutex::new(process.stdin.take().context("no standard input")?));
        let output = process.stdout.take().context("no standard output")?;
        let (sender, incoming) = channel();
        let answers = Arc::clone(&input);
        std::thread::spawn(move || {
            let mut output = BufReader::with_capacity(1 << 16, output);
            while let Ok(Some(body)) = read_body(&mut output) {
                let at = Instant::now();
                let cpu = watched.cpu().unwrap_or_default();
                let Ok(message) = serde_json::from_slice::<Value>(&body) else {
                    break;
                };
                if message.get("method").is_some() && message.get("id").is_some() {
                    let answer = encode(&answer(&message));
                    if let Ok(mut input) = answers.lock() {
                        let _ = input.write_all(&answer).and_then(|()| input.flush());
                    }
                }
                let moment = Moment { at, cpu };
                if sender.send(Incoming { moment, message }).is_err() {
                    break;
                }
            }
        });
        Ok(Session {
            process,
            watched,
            started,
            input,
            incoming,
            errors,
            next_id: 1,
            encoding: PositionEncoding::Utf16,
            capabilities: Value::Null,
            document: None,
            diagnostics: 0,
            limit,
        })
    }

    /// Says hello; `pull` is a client that asks for diagnostics.
    ///
    /// # Errors
    /// When the server refuses, or doesn't answer in time.
    pub fn initialize(&mut self, root: &Path, pull: bool) -> Result<()> {
        let capabilities = Capabilities {
            pull_diagnostics: pull,
            ..Capabilities::default()
        };
        let root = uri(root);
        let params = json!({
            "processId": std::process::id(),
            "clientInfo": { "name": "gridfuse-bench" },
            "rootUri": root,
            "capabilities": capabilities.to_json(),
            "workspaceFolders": [{ "uri": root, "name": "bench" }],
        });
        let result = match self.request("initialize", &params)? {
            Answer::Came(_, result) => result,
            Answer::Refused(error) => bail!("initialize: {error}"),
            Answer::Late => bail!("no answer to initialize within {:?}", self.limit),
        };
        self.capabilities = result["capabilities"].clone();
        if let Some(name) = self.capabilities["positionEncoding"].as_str() {
            self.encoding =
                PositionEncoding::from_name(name).with_context(|| format!("unknown position encoding `{name}`"))?;
        }
        self.notify("initialized", &json!({}))
    }

    /// Whether the server has said that it can do this: `hoverProvider`.
    pub fn can(&self, capability: &str) -> bool {
        !matches!(
            self.capabilities.get(capability),
            None | Some(Value::Null | Value::Bool(false))
        )
    }

    /// Whether it resolves what it leaves out: `codeActionProvider`, `codeLensProvider`.
    pub fn resolves(&self, capability: &str) -> bool {
        self.capabilities[capability]["resolveProvider"] == true
    }

    /// When the server was started, with no processor time.
    pub fn beginning(&self) -> Moment {
        Moment {
            at: self.started,
            cpu: Duration::ZERO,
        }
    }

    /// Now.
    ///
    /// # Errors
    /// When the server has ended.
    pub fn now(&self) -> Result<Moment> {
        let cpu = self.watched.cpu().context("the server has ended")?;
        Ok(Moment {
            at: Instant::now(),
            cpu,
        })
    }

    /// The server's memory; `None` when it has ended.
    pub fn memory(&self) -> Option<Memory> {
        self.watched.memory()
    }

    /// The text of the open document, empty when there is none.
    pub fn text(&self) -> &str {
        self.document.as_ref().map_or("", |document| &document.text)
    }

    /// How many diagnostics the server last published for the open document.
    pub fn diagnostics(&self) -> usize {
        self.diagnostics
    }

    /// Opens a document and waits for its first diagnostics, unless they come on request only; `None` when they didn't come in time.
    ///
    /// # Errors
    /// When the server has ended.
    pub fn open(&mut self, path: &Path, text: &str, pull: bool) -> Result<Option<(Spent, Moment)>> {
        let uri = uri(path);
        let document = json!({ "uri": uri, "languageId": "cuda-cpp", "version": 1, "text": text });
        self.document = Some(Document {
            uri,
            path: path.to_path_buf(),
            text: text.to_owned(),
            version: 1,
        });
        let message = notification("textDocument/didOpen", &json!({ "textDocument": document }));
        self.diagnostics_after(&message, pull)
    }

    /// Changes the document and waits for the diagnostics of what it has become; `None` when they didn't come in time.
    ///
    /// # Errors
    /// When the server has ended.
    pub fn edit(&mut self, bytes: Range<usize>, new: &str, pull: bool) -> Result<Option<Spent>> {
        let message = self.change(bytes, new)?;
        Ok(self.diagnostics_after(&message, pull)?.map(|(spent, _)| spent))
    }

    fn diagnostics_after(&mut self, message: &[u8], pull: bool) -> Result<Option<(Spent, Moment)>> {
        self.drain();
        let uri = self.document()?.uri.clone();
        let id = self.next_id;
        let mut message = message.to_vec();
        if pull {
            self.next_id += 1;
            let params = json!({ "textDocument": { "uri": uri } });
            message.extend(request(id, "textDocument/diagnostic", &params));
        }
        let begin = self.write(&message)?;
        let version = self.document()?.version;
        let arrived = if pull {
            self.wait_patiently(begin, |_, message| is_response(message, id))?
        } else {
            self.wait_patiently(begin, |session, message| {
                session.published(message).is_some_and(|of| of >= version)
            })?
        };
        Ok(arrived.map(|arrived| (since(begin, arrived.moment), arrived.moment)))
    }

    /// Changes the document without waiting; returns when the change was sent.
    ///
    /// # Errors
    /// When the server has ended.
    pub fn send_edit(&mut self, bytes: Range<usize>, new: &str) -> Result<Moment> {
        let message = self.change(bytes, new)?;
        self.write(&message)
    }

    /// Waits until a moment for diagnostics of the document, and returns of which version they are.
    ///
    /// # Errors
    /// When the server has ended.
    pub fn next_published(&mut self, until: Instant) -> Result<Option<(i64, Moment)>> {
        let arrived = self.wait(until, |session, message| session.published(message).is_some())?;
        Ok(arrived.and_then(|arrived| Some((self.published(&arrived.message)?, arrived.moment))))
    }

    /// The version of the document.
    ///
    /// # Errors
    /// When none is open.
    pub fn version(&self) -> Result<i64> {
        Ok(self.document()?.version)
    }

    /// Asks for something about the document, with `extra` beside it.
    ///
    /// # Errors
    /// When the server has ended.
    pub fn ask(&mut self, method: &str, extra: &Value) -> Result<Answer> {
        let mut params = json!({ "textDocument": { "uri": self.document()?.uri } });
        for (name, value) in extra.as_object().into_iter().flatten() {
            params[name.as_str()] = value.clone();
        }
        self.request(method, &params)
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// When the server has ended.
    pub fn request(&mut self, method: &str, params: &Value) -> Result<Answer> {
        let id = self.next_id;
        self.next_id += 1;
        let message = request(id, method, params);
        self.drain();
        let begin = self.write(&message)?;
        let Some(arrived) = self.wait_patiently(begin, |_, message| is_response(message, id))? else {
            self.notify("$/cancelRequest", &json!({ "id": id }))?;
            return Ok(Answer::Late);
        };
        let mut message = arrived.message;
        Ok(match message.get("error") {
            Some(error) => Answer::Refused(error["message"].as_str().unwrap_or_default().to_owned()),
            None => Answer::Came(since(begin, arrived.moment), message["result"].take()),
        })
    }

    /// The position of a byte of the document.
    pub fn position(&self, at: usize) -> Value {
        self.encoding.position(self.text(), at)
    }

    /// The range of the whole document.
    pub fn whole(&self) -> Value {
        self.encoding.range(self.text(), 0..self.text().len())
    }

    /// Waits until the server has been idle for a while: no thread runs or waits for a disk, and its clock stands still. Gives up after `limit`.
    ///
    /// # Errors
    /// When the server has ended.
    pub fn settle(&mut self, quiet: Duration, limit: Duration) -> Result<Settled> {
        let begin = Instant::now();
        let mut last = self.now()?;
        // The beginning of the span in which hardly anything was done.
        let mut calm = last;
        let mut active = last.at;
        loop {
            self.wait(last.at + LOOK, |_, _| false)?;
            let now = self.now()?;
            if now.cpu.saturating_sub(last.cpu) > LOOK / IDLE_SHARE || !self.watched.sleeps() {
                active = now.at;
            }
            if now.cpu.saturating_sub(calm.cpu) > quiet / IDLE_SHARE || active > calm.at {
                calm = now;
            }
            last = now;
            let idle = now.at - calm.at >= quiet;
            if idle || now.at - begin > limit {
                let cpu = now.cpu;
                return Ok(Settled { at: active, cpu, idle });
            }
        }
    }

    /// Ends the server.
    pub fn end(mut self) {
        let id = self.next_id;
        if self.write(&request(id, "shutdown", &Value::Null)).is_ok() {
            let until = Instant::now() + Duration::from_secs(2);
            let _ = self.wait(until, |_, message| is_response(message, id));
            let _ = self.notify("exit", &Value::Null);
            while Instant::now() < until && matches!(self.process.try_wait(), Ok(None)) {
                std::thread::sleep(LOOK);
            }
        }
    }

    fn document(&self) -> Result<&Document> {
        self.document.as_ref().context("no document is open")
    }

    /// The message of a change, which is made here as well.
    fn change(&mut self, bytes: Range<usize>, new: &str) -> Result<Vec<u8>> {
        let range = self.encoding.range(self.text(), bytes.clone());
        let document = self.document.as_mut().context("no document is open")?;
        document.text.replace_range(bytes, new);
        document.version += 1;
        Ok(notification(
            "textDocument/didChange",
            &json!({
                "textDocument": { "uri": document.uri, "version": document.version },
                "contentChanges": [{ "range": range, "text": new }],
            }),
        ))
    }

    fn notify(&mut self, method: &str, params: &Value) -> Result<()> {
        self.write(&notification(method, params)).map(drop)
    }

    fn write(&mut self, message: &[u8]) -> Result<Moment> {
        let moment = self.now()?;
        let mut input = self
            .input
            .lock()
            .map_err(|_| anyhow::anyhow!("the reader has failed"))?;
        let written = input.write_all(message).and_then(|()| input.flush());
        drop(input);
        written.with_context(|| format!("the server reads no more\n{}", self.said()))?;
        Ok(moment)
    }

    /// Takes what has come.
    fn drain(&mut self) {
        while let Ok(incoming) = self.incoming.try_recv() {
            self.note(&incoming.message);
        }
    }

    /// Waits up to the limit. On a machine that is busy with other things the limit is one of the server's processor time: it goes on as
    /// long as the server does.
    fn wait_patiently(&mut self, begin: Moment, is_it: impl Fn(&Session, &Value) -> bool) -> Result<Option<Incoming>> {
        let mut until = begin.at + self.limit;
        let mut before = begin.cpu;
        loop {
            if let Some(incoming) = self.wait(until, &is_it)? {
                return Ok(Some(incoming));
            }
            let cpu = self.now()?.cpu;
            let goes_on = cpu > before || !self.watched.sleeps();
            if !goes_on || cpu.saturating_sub(begin.cpu) >= self.limit {
                return Ok(None);
            }
            before = cpu;
            until = Instant::now() + STEP;
        }
    }

    fn wait(&mut self, until: Instant, is_it: impl Fn(&Session, &Value) -> bool) -> Result<Option<Incoming>> {
        loop {
            match self
                .incoming
                .recv_timeout(until.saturating_duration_since(Instant::now()))
            {
                Ok(incoming) => {
                    self.note(&incoming.message);
                    if is_it(self, &incoming.message) {
                        return Ok(Some(incoming));
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => bail!("the server has ended\n{}", self.said()),
            }
        }
    }

    fn note(&mut self, message: &Value) {
        if self.published(message).is_some() {
            self.diagnostics = message["params"]["diagnostics"].as_array().map_or(0, Vec::len);
        }
    }

    /// The version of the document that a message publishes diagnostics of; the newest when the server doesn't say.
    fn published(&self, message: &Value) -> Option<i64> {
        let document = self.document.as_ref()?;
        if message["method"] != "textDocument/publishDiagnostics" {
            return None;
        }
        let params = &message["params"];
        let path = path_of(params["uri"].as_str()?)?;
        (path == document.path).then(|| params["version"].as_i64().unwrap_or(document.version))
    }

    /// The end of what the server wrote to its standard error.
    fn said(&mut self) -> String {
        let mut text = Vec::new();
        let _ = self.errors.seek(SeekFrom::Start(0));
        let _ = self.errors.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// How much lies between two moments.
pub fn since(begin: Moment, end: Moment) -> Spent {
    Spent {
        wall: end.at.saturating_duration_since(begin.at),
        cpu: end.cpu.saturating_sub(begin.cpu),
    }
}

fn is_response(message: &Value, id: i64) -> bool {
    message.get("method").is_none() && message["id"] == id
}

/// What the client answers to a request of the server.
fn answer(message: &Value) -> Value {
    let result = match message["method"].as_str() {
        Some("workspace/configuration") => {
            let items = message["params"]["items"].as_array().map_or(0, Vec::len);
            Value::Array(vec![Value::Null; items])
        }
        Some("workspace/applyEdit") => json!({ "applied": false }),
        _ => Value::Null,
    };
    json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })
}

fn request(id: i64, method: &str, params: &Value) -> Vec<u8> {
    let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
    if !params.is_null() {
        message["params"] = params.clone();
    }
    encode(&message)
}

fn notification(method: &str, params: &Value) -> Vec<u8> {
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    if !params.is_null() {
        message["params"] = params.clone();
    }
    encode(&message)
}

fn encode(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    [
        format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(),
        body.as_bytes(),
    ]
    .concat()
}
