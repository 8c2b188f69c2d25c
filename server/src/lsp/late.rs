//! What takes longer than a user waits without a sign: the client shows that the server works, and a request is answered with what is
//! known by then. The rest is worked out meanwhile, so that whoever asks again gets it.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower_lsp_server::jsonrpc::{Error, Result};
use tower_lsp_server::ls_types::{
    NumberOrString, ProgressParams, ProgressParamsValue, ProgressToken, WorkDoneProgress, WorkDoneProgressBegin,
    WorkDoneProgressCreateParams, WorkDoneProgressEnd, notification, request,
};

use super::state::{Snapshot, State};

/// From about here on a user notices that nothing comes.
const NOTICED: Duration = Duration::from_millis(50);

/// So long a request is worked on before it is answered with what is known.
const PATIENCE: Duration = Duration::from_secs(1);

/// The environment variable that sets another patience, in milliseconds.
const PATIENCE_VARIABLE: &str = "GRIDFUSE_ANSWER_WITHIN_MS";

/// How the tokens of this module's progress begin.
const TOKEN: &str = "gridfuse/working/";

/// Whether a progress is one of this module: no command's answer has to follow its end.
pub fn is_working(token: &serde_json::Value) -> bool {
    token.as_str().is_some_and(|token| token.starts_with(TOKEN))
}

/// How long a request may take; what can't be read in the environment counts as not set.
pub fn patience() -> Duration {
    let set = std::env::var(PATIENCE_VARIABLE).ok();
    let set = set.and_then(|text| text.trim().parse().ok());
    set.map_or(PATIENCE, Duration::from_millis)
}

/// Shows that the server works, whenever that takes longer than a user notices. Runs as long as the server lives.
pub async fn run(state: Arc<State>) {
    if !state.session().work_done_progress {
        return;
    }
    let mut running = state.answers.running();
    let mut number = 0u64;
    // The sender lives as long as the state.
    while running.wait_for(|queries| *queries > 0).await.is_ok() {
        if timeout(NOTICED, running.wait_for(|queries| *queries == 0))
            .await
            .is_ok()
        {
            continue;
        }
        number += 1;
        let token = NumberOrString::String(format!("{TOKEN}{number}"));
        let create = WorkDoneProgressCreateParams { token: token.clone() };
        let created = state.client.send_request::<request::WorkDoneProgressCreate>(create);
        if created.await.is_err() {
            // Who wants none is not asked again for every query.
            return;
        }
        let begin = WorkDoneProgressBegin {
            title: "gridfuse: reading the code".to_owned(),
            cancellable: Some(false),
            ..WorkDoneProgressBegin::default()
        };
        send(&state, &token, WorkDoneProgress::Begin(begin)).await;
        let _ = running.wait_for(|queries| *queries == 0).await;
        send(&state, &token, WorkDoneProgress::End(WorkDoneProgressEnd::default())).await;
    }
}

async fn send(state: &State, token: &ProgressToken, progress: WorkDoneProgress) {
    let params = ProgressParams {
        token: token.clone(),
        value: ProgressParamsValue::WorkDone(progress),
    };
    let sent = state.client.send_notification::<notification::Progress>(params);
    sent.await;
}

/// An answer, and whether it is all that there is to say.
pub enum Answer<T> {
    /// The whole answer.
    Whole(T),
    /// What was known when the client's patience ended. The query goes on.
    Late(T, JoinHandle<Result<T>>),
}

impl<T> Answer<T> {
    /// What the client is answered.
    pub fn now(self) -> T {
        match self {
            Answer::Whole(answer) | Answer::Late(answer, _) => answer,
        }
    }
}

/// Runs a request's query as [`State::request`] does. When it takes longer than the client waits, the request is answered with what
/// `known` finds quickly, else with `sentence`, and the query goes on.
///
/// # Errors
///
/// Those of the query.
pub async fn request<T: Send + 'static>(
    state: &Arc<State>,
    query: impl Fn(&Snapshot) -> Result<T> + Send + Sync + 'static,
    known: impl Fn(&Snapshot) -> T + Send + Sync + 'static,
    sentence: impl FnOnce() -> T,
) -> Result<Answer<T>> {
    // Before the first await: the query sees what was sent before the request.
    let snapshot = state.snapshot();
    let asked = snapshot.number();
    let mut work = Box::pin({
        let state = state.clone();
        async move { state.query_in(snapshot, query).await.map_err(Error::from)? }
    });
    // It begins here and now, on a thread of its own: a change waits for all snapshots, also for one in a task that nobody has polled
    // yet, perhaps because the change holds the thread that would. Dropped with the request, it's cancelled.
    if let Ok(whole) = timeout(state.patience, &mut work).await {
        return whole.map(Answer::Whole);
    }
    let again = state.snapshot();
    let found = match again.number() == asked {
        true => timeout(NOTICED, state.query_in(again, known)).await.ok(),
        // The client asks again after an edit.
        false => {
            drop(again);
            None
        }
    };
    let answer = found.and_then(std::result::Result::ok).unwrap_or_else(sentence);
    Ok(Answer::Late(answer, tokio::spawn(work)))
}
