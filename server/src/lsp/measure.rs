//! `gridfuse.measure` and `gridfuse.tune`: runs the command of that name as a process of its own, tells the editor how far it is, and
//! ends it on request.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tower_lsp_server::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp_server::ls_types::{
    Command as LspCommand, MessageType, NumberOrString, ProgressParams, ProgressParamsValue, ProgressToken,
    ShowDocumentParams, Uri, WorkDoneProgress, WorkDoneProgressBegin, WorkDoneProgressCreateParams,
    WorkDoneProgressEnd, WorkDoneProgressReport, notification, request,
};

use super::actions::failed;
use super::build_errors::BuildErrors;
use super::convert::path_of;
use super::state::State;
use super::tuned;
use crate::manifests::Manifests;
use crate::measure::lacking::Lacking;
use crate::measure::markdown;
use crate::measure::report::Report;
use crate::measure::served::{Message, Unsaved};

/// Builds and runs a program as it is and rewritten; the result is what `gridfuse measure --json` prints.
pub const MEASURE: &str = "gridfuse.measure";

/// Searches what is fastest; the result is what `gridfuse tune --json` prints, and the edit that leads there.
pub const TUNE: &str = "gridfuse.tune";

/// What a user reads who may run it.
pub const TITLE: &str = "Run on GPU";

/// The same who may tune.
const TUNE_TITLE: &str = "Tune on GPU";

/// A process that was asked to end and doesn't is killed after this time. It gives the programs that it measures 30 s.
const PATIENCE: Duration = Duration::from_secs(40);

/// Lines on standard error that are kept in case the process fails without a word.
const LAST_WORDS: usize = 12;

/// What is done with a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// [`MEASURE`].
    Measure,
    /// [`TUNE`].
    Tune,
}

impl Task {
    /// The task of a command.
    pub fn of(command: &str) -> Option<Task> {
        match command {
            MEASURE => Some(Task::Measure),
            TUNE => Some(Task::Tune),
            _ => None,
        }
    }

    fn command(self) -> &'static str {
        match self {
            Task::Measure => MEASURE,
            Task::Tune => TUNE,
        }
    }

    /// As on the command line.
    fn subcommand(self) -> &'static str {
        match self {
            Task::Measure => "measure",
            Task::Tune => "tune",
        }
    }

    fn doing(self) -> &'static str {
        match self {
            Task::Measure => "Measuring",
            Task::Tune => "Tuning",
        }
    }
}

/// The argument of [`MEASURE`] and of [`TUNE`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Argument {
    uri: Uri,
    /// Rewrite the launch on this line only, or the launches of the function whose head is there; from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    /// As after `--rewrites`; all when it's empty. Only to measure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rewrites: Vec<String>,
    /// Arguments of the program, quoted as in a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    args: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repeat: Option<u16>,
    /// In seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<u32>,
    /// In seconds. Only to tune.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget: Option<u32>,
    /// The caller does nothing with the result: the server shows it.
    #[serde(default)]
    show: bool,
    /// Nothing is measured: the answer is `null` where that can be tried, else the error that would come.
    #[serde(default, skip_serializing_if = "is_false")]
    check: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The command for a launch or a function on a line, or for all of a file, as a client passes it on.
pub fn command(uri: &Uri, line: Option<u32>) -> LspCommand {
    let argument = Argument {
        uri: uri.clone(),
        line,
        rewrites: Vec::new(),
        args: None,
        repeat: None,
        timeout: None,
        budget: None,
        show: true,
        check: false,
    };
    LspCommand {
        title: TITLE.to_owned(),
        command: MEASURE.to_owned(),
        arguments: serde_json::to_value(argument).ok().map(|argument| vec![argument]),
    }
}

/// The same for the values of launches that are rewritten already.
pub fn tune_command(uri: &Uri, line: Option<u32>) -> LspCommand {
    LspCommand {
        title: TUNE_TITLE.to_owned(),
        command: TUNE.to_owned(),
        ..command(uri, line)
    }
}

/// A measurement that is under way.
#[derive(Debug)]
pub struct Running {
    file: PathBuf,
    token: Option<ProgressToken>,
    stop: Arc<Stop>,
}

/// Ends a measurement.
#[derive(Debug, Default)]
struct Stop {
    /// The process ends when its input is closed.
    input: Mutex<Option<ChildStdin>>,
    stopped: AtomicBool,
}

impl Stop {
    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.input.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Keeps the input open, unless the measurement was stopped before.
    fn hold(&self, input: ChildStdin) {
        let mut held = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_stopped() {
            *held = Some(input);
        }
    }
}

/// The client has cancelled the request: its future is dropped.
struct StopOnDrop(Arc<Stop>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The place of the one measurement that may run; free again when it's dropped.
struct Slot(Arc<State>);

impl Slot {
    /// Takes the place. One that was cancelled is still ending for a moment: that is waited for, and it ends, as [`wait`] kills it otherwise.
    async fn take(state: &Arc<State>, running: Running) -> Result<Slot> {
        while Slot::is_ending(state) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let mut place = state.measurement.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = place.as_ref() {
            return Err(failed(format!(
                "{} is being measured: two measurements at once would disturb each other; wait for it, or cancel it",
                other.file.display()
            )));
        }
        *place = Some(running);
        Ok(Slot(state.clone()))
    }

    fn is_ending(state: &State) -> bool {
        let place = state.measurement.lock().unwrap_or_else(PoisonError::into_inner);
        place.as_ref().is_some_and(|running| running.stop.is_stopped())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *self.0.measurement.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The client is leaving: what is under way ends.
pub fn leave(state: &State) {
    let place = state.measurement.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(running) = place.as_ref() {
        running.stop.stop();
    }
}

/// The user has pressed the button of a progress.
pub fn cancel(state: &State, token: &ProgressToken) {
    let place = state.measurement.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(running) = place.as_ref().filter(|running| running.token.as_ref() == Some(token)) {
        running.stop.stop();
    }
}

/// The manifest that counts for a file names a machine, as it is on disk now: the server may not have read it yet.
fn names_a_runner(file: &Path) -> bool {
    let (manifests, _) = Manifests::read(file.parent(), &Manifests::default());
    manifests.of(file).is_some_and(|manifest| manifest.runner.is_some())
}

/// Executes a command. `token`: the client's, for progress.
pub async fn execute(
    state: &Arc<State>,
    what: Task,
    arguments: Vec<Value>,
    token: Option<ProgressToken>,
) -> Result<Option<Value>> {
    state.trust.require().map_err(failed)?;
    if !state.allowed.run {
        return Err(failed("this server builds and runs nothing".to_owned()));
    }
    let argument = arguments.into_iter().next().unwrap_or_default();
    let name = what.command();
    let argument: Argument = serde_json::from_value(argument)
        .map_err(|error| Error::invalid_params(format!("`{name}` takes an object with a document: {error}")))?;
    if what == Task::Tune && !argument.rewrites.is_empty() || what == Task::Measure && argument.budget.is_some() {
        return Err(Error::invalid_params(format!(
            "`{name}` takes neither the rewrites nor the budget of others"
        )));
    }
    let file = path_of(&argument.uri);
    if !file.is_absolute() || !file.is_file() {
        return Err(failed(
            "save the document first: the compiler has to know where it is among the other files".to_owned(),
        ));
    }
    let (lacking, elsewhere) = {
        let snapshot = state.snapshot();
        match snapshot.measures_elsewhere(&file) || (state.allowed.disk && names_a_runner(&file)) {
            true => (None, true),
            false => (snapshot.lacking(&file), false),
        }
    };
    if let Some(lacking) = lacking {
        return Err(lacks(lacking, lacking.advice().to_owned()));
    }
    if argument.check {
        return Ok(None);
    }
    let Prepared {
        command,
        unsaved,
        directory,
    } = prepare(state, what, &file, &argument)?;
    let (token, create) = match token {
        Some(token) => (Some(token), false),
        None => {
            static NEXT: AtomicU64 = AtomicU64::new(1);
            let own = || format!("{name}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
            let token = state
                .session()
                .work_done_progress
                .then(|| NumberOrString::String(own()));
            (token, true)
        }
    };
    let stop = Arc::new(Stop::default());
    let slot = Slot::take(
        state,
        Running {
            file: file.clone(),
            token: token.clone(),
            stop: stop.clone(),
        },
    )
    .await?;
    let guard = StopOnDrop(stop.clone());
    show_build_errors(state, BuildErrors::default());
    let measured = unsaved.clone();
    let worker = state.clone();
    // A task of its own: when the request is cancelled, the progress still has to come to its end.
    let task = tokio::spawn(async move {
        let progress = Progress::begin(&worker, what, token, create, &file).await;
        let outcome = follow(command, unsaved, stop, slot, &progress).await;
        progress.end(&outcome).await;
        outcome
    });
    let mut outcome = task.await.unwrap_or_else(|_| Err(Error::internal_error()));
    if let Err(error) = &mut outcome
        && !elsewhere
        && let Some(lacking) = Lacking::of_message(&error.message)
    {
        let options = Lacking::is_said_for_the_command_line(&error.message);
        let message = if options {
            lacking.advice().to_owned()
        } else {
            error.message.to_string()
        };
        *error = lacks(lacking, message);
    }
    drop(guard);
    if what == Task::Measure
        && let Ok(Ok(report)) = outcome.as_ref().map(Report::deserialize)
    {
        show_build_errors(state, BuildErrors::of(&report, &directory, &measured));
    }
    if outcome.is_ok() && state.session().refresh_lenses {
        // What was measured stands in them. Not awaited: a client may be slow to answer.
        let client = state.client.clone();
        tokio::spawn(async move { client.code_lens_refresh().await });
    }
    if what == Task::Tune {
        return tuned::finish(state, outcome?, argument.show).await.map(Some);
    }
    let shown = match &outcome {
        Ok(report) if argument.show => serde_json::from_value(report.clone()).ok(),
        _ => None,
    };
    if let Some(report) = shown {
        present(state, &report).await;
    }
    outcome.map(Some)
}

/// Shows what the compiler said, in place of what it said before.
fn show_build_errors(state: &Arc<State>, errors: BuildErrors) {
    let changed = state.update(|shared| {
        let before = std::mem::replace(&mut shared.build_errors, Arc::new(errors));
        !(before.is_empty() && shared.build_errors.is_empty())
    });
    let session = state.session();
    if changed == Some(true) && session.pull_diagnostics && session.refresh_diagnostics {
        let client = state.client.clone();
        // Not awaited: a client may answer late or never.
        tokio::spawn(async move { client.workspace_diagnostic_refresh().await });
    }
}

/// What a measurement is started with.
struct Prepared {
    command: Command,
    /// What the editor shows of the files.
    unsaved: Unsaved,
    /// Where it runs: the paths of its report count from there.
    directory: PathBuf,
}

/// The process's command line, and what the editor shows of the files.
fn prepare(state: &State, what: Task, file: &Path, argument: &Argument) -> Result<Prepared> {
    // The one that runs, even when a newer one has taken its place on disk.
    let running = Path::new("/proc/self/exe");
    let program = if running.exists() {
        running.to_path_buf()
    } else {
        std::env::current_exe().map_err(|error| failed(format!("cannot find the program of the server: {error}")))?
    };
    let mut command = Command::new(program);
    command.arg(what.subcommand()).arg(file).args(["--json", "--served"]);
    if let Some(line) = argument.line {
        command.arg("--at").arg(line.saturating_add(1).to_string());
    }
    if !argument.rewrites.is_empty() {
        command.arg(format!("--rewrites={}", argument.rewrites.join(",")));
    }
    if let Some(args) = &argument.args {
        command.arg(format!("--args={args}"));
    }
    if let Some(repeat) = argument.repeat {
        command.arg(format!("--repeat={repeat}"));
    }
    if let Some(timeout) = argument.timeout {
        command.arg(format!("--timeout={timeout}"));
    }
    if let Some(budget) = argument.budget {
        command.arg(format!("--budget={budget}"));
    }
    let shared = state.lock();
    let folder = shared.project.folders.iter().find(|folder| file.starts_with(folder));
    let directory = folder.map(PathBuf::as_path).or(file.parent()).unwrap_or(Path::new("/"));
    // As the process sees it: it knows where it is by its real path.
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
    command.current_dir(&directory);
    for directory in shared.project.client_include_dirs.iter().filter(|dir| dir.is_dir()) {
        command.arg("-I").arg(directory);
    }
    if let Some(runner) = &shared.project.client_runner {
        command.arg(format!("--runner={runner}"));
    }
    let mut unsaved = BTreeMap::new();
    for path in shared.documents.keys() {
        // JSON can't hold other paths; what is on disk counts for those.
        if path.is_absolute()
            && path.to_str().is_some()
            && let Some(document) = shared.host.file(path)
        {
            unsaved.insert(path.clone(), document.text(shared.host.db()));
        }
    }
    Ok(Prepared {
        command,
        unsaved,
        directory,
    })
}

/// Runs the process to its end, and passes on how far it is.
async fn follow(
    command: Command,
    unsaved: Unsaved,
    stop: Arc<Stop>,
    slot: Slot,
    progress: &Progress<'_>,
) -> Result<Value> {
    let (sender, mut receiver) = unbounded_channel();
    let stopping = stop.clone();
    let process = tokio::task::spawn_blocking(move || {
        let _slot = slot;
        run(command, &unsaved, &stopping, &sender)
    });
    while let Some((percent, what)) = receiver.recv().await {
        progress.report(percent, what).await;
    }
    let ended = process.await.map_err(|_| Error::internal_error())?;
    if stop.is_stopped() {
        return Err(Error::request_cancelled());
    }
    ended.map_err(failed)
}

/// The answer where something is missing: a client can offer what helps.
fn lacks(lacking: Lacking, message: String) -> Error {
    Error {
        data: Some(json!({ "missing": lacking.name() })),
        ..failed(message)
    }
}

/// Runs the process, and returns its report. An error is a sentence.
fn run(
    mut command: Command,
    unsaved: &Unsaved,
    stop: &Stop,
    progress: &UnboundedSender<(u8, String)>,
) -> std::result::Result<Value, String> {
    let cannot = |error: std::io::Error| format!("cannot start the measurement: {error}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    let output = child.stdout.take();
    let errors = child.stderr.take();
    if let Some(mut input) = child.stdin.take() {
        let texts = serde_json::to_string(unsaved).map_err(|error| format!("cannot pass the texts on: {error}"))?;
        // A process that doesn't read has failed, and says why.
        let _ = input.write_all(texts.as_bytes()).and_then(|()| input.write_all(b"\n"));
        stop.hold(input);
    }
    std::thread::scope(|scope| {
        let printed = scope.spawn(|| {
            let mut text = String::new();
            if let Some(mut output) = output {
                // What isn't text is no report.
                let _ = output.read_to_string(&mut text);
            }
            text
        });
        let said = scope.spawn(|| errors.map_or_else(Said::default, |errors| listen(errors, progress)));
        let status = wait(&mut child, stop);
        let (printed, said) = (printed.join().unwrap_or_default(), said.join().unwrap_or_default());
        if let Some(message) = said.error {
            return Err(message);
        }
        serde_json::from_str(&printed).map_err(|_| {
            let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            let mut message = format!("the measurement broke off ({status}); please report it");
            for line in said.last {
                message.push('\n');
                message.push_str(&line);
            }
            message
        })
    })
}

/// Waits until it ends; kills it when it was asked to end and doesn't.
fn wait(child: &mut Child, stop: &Stop) -> std::io::Result<std::process::ExitStatus> {
    let mut asked = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.is_stopped() && asked.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            child.kill()?;
            return child.wait();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a process says on standard error.
#[derive(Default)]
struct Said {
    error: Option<String>,
    last: Vec<String>,
}

fn listen(errors: ChildStderr, progress: &UnboundedSender<(u8, String)>) -> Said {
    let mut said = Said::default();
    for line in BufReader::new(errors).split(b'\n') {
        let Ok(line) = line else { break };
        let line = String::from_utf8_lossy(&line).into_owned();
        match Message::parse(&line) {
            Some(Message::Progress { percent, what }) => {
                // Nobody listens any more: it's being stopped.
                let _ = progress.send((percent, what));
            }
            Some(Message::Error(message)) => said.error = Some(message),
            None => {
                if said.last.len() == LAST_WORDS {
                    said.last.remove(0);
                }
                said.last.push(line);
            }
        }
    }
    said
}

/// A progress in the editor, if it wants one.
struct Progress<'a> {
    state: &'a State,
    token: Option<ProgressToken>,
}

impl<'a> Progress<'a> {
    async fn begin(
        state: &'a State,
        what: Task,
        token: Option<ProgressToken>,
        create: bool,
        file: &Path,
    ) -> Progress<'a> {
        let mut token = token;
        if create && let Some(own) = token.clone() {
            let params = WorkDoneProgressCreateParams { token: own };
            if state
                .client
                .send_request::<request::WorkDoneProgressCreate>(params)
                .await
                .is_err()
            {
                token = None;
            }
        }
        let progress = Progress { state, token };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        progress
            .send(WorkDoneProgress::Begin(WorkDoneProgressBegin {
                title: format!("{} {name}", what.doing()),
                cancellable: Some(true),
                message: None,
                percentage: Some(0),
            }))
            .await;
        progress
    }

    async fn report(&self, percent: u8, what: String) {
        self.send(WorkDoneProgress::Report(WorkDoneProgressReport {
            cancellable: Some(true),
            message: Some(what),
            percentage: Some(u32::from(percent.min(100))),
        }))
        .await;
    }

    async fn end(&self, outcome: &Result<Value>) {
        let message = match outcome {
            Ok(_) => "done",
            Err(error) if error.code == ErrorCode::RequestCancelled => "cancelled",
            Err(_) => "failed",
        };
        let message = Some(message.to_owned());
        self.send(WorkDoneProgress::End(WorkDoneProgressEnd { message })).await;
        if self.token.is_some() {
            self.state.progress_ends.passed().await;
        }
    }

    async fn send(&self, progress: WorkDoneProgress) {
        if let Some(token) = self.token.clone() {
            let value = ProgressParamsValue::WorkDone(progress);
            let params = ProgressParams { token, value };
            self.state
                .client
                .send_notification::<notification::Progress>(params)
                .await;
        }
    }
}

/// Shows a report as a document where the client can, else its summary as a message.
async fn present(state: &State, report: &Report) {
    let snapshot_shows = state.session().show_document;
    let document = snapshot_shows
        .then(|| state.measurement_page(&markdown::page(report)))
        .flatten();
    if let Some(uri) = document {
        let document = ShowDocumentParams {
            uri,
            external: Some(false),
            take_focus: Some(true),
            selection: None,
        };
        if state.client.show_document(document).await.is_ok_and(|shown| shown) {
            return;
        }
    }
    let text = format!("gridfuse: {}", markdown::summary(report));
    state.client.show_message(MessageType::INFO, text).await;
}
