//! Commands that the client lets the server execute.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower_lsp_server::jsonrpc::{Error, Result};
use tower_lsp_server::ls_types::{Command, ExecuteCommandParams, MessageType, Position, ShowDocumentParams, Uri};

use super::convert::path_of;
use super::hover::{self, kernel, launch};
use super::markdown::describe;
use super::measure::{self, MEASURE};
use super::state::{Snapshot, State};
use crate::launches::by_function;

/// Explains what stands at a position; the result is Markdown.
pub const EXPLAIN: &str = "gridfuse.explain";

/// A command of the client, which says that it knows it: shows a list of places. Its arguments are those of VS Code's
/// `editor.action.showReferences`: the document, a position, and the places.
pub const SHOW_LAUNCHES: &str = "gridfuse.showLaunches";

/// The commands that the server executes.
pub const ALL: &[&str] = &[EXPLAIN, MEASURE];

/// The argument of [`EXPLAIN`].
#[derive(Debug, Serialize, Deserialize)]
struct ExplainArgument {
    uri: Uri,
    position: Position,
    /// The caller does nothing with the result: the server shows it.
    #[serde(default)]
    show: bool,
}

/// The command that explains what stands at a position, for a client that only passes it on.
pub fn explain(title: String, uri: &Uri, position: Position) -> Command {
    let argument = ExplainArgument {
        uri: uri.clone(),
        position,
        show: true,
    };
    Command {
        title,
        command: EXPLAIN.to_string(),
        arguments: serde_json::to_value(argument).ok().map(|argument| vec![argument]),
    }
}

/// Executes a command.
pub async fn execute(state: &Arc<State>, params: ExecuteCommandParams) -> Result<Option<Value>> {
    match params.command.as_str() {
        EXPLAIN => execute_explain(state, params.arguments).await,
        MEASURE => {
            let token = params.work_done_progress_params.work_done_token;
            measure::execute(state, params.arguments, token).await
        }
        other => Err(Error::invalid_params(format!("there is no command `{other}`"))),
    }
}

async fn execute_explain(state: &State, arguments: Vec<Value>) -> Result<Option<Value>> {
    let argument = arguments.into_iter().next().unwrap_or_default();
    let argument: ExplainArgument = serde_json::from_value(argument)
        .map_err(|error| Error::invalid_params(format!("`{EXPLAIN}` takes a document and a position: {error}")))?;
    let show = argument.show;
    let explained = state
        .request(move |snapshot| Ok(explanation(snapshot, &argument)))
        .await?;
    if show {
        present(state, explained.as_ref()).await;
    }
    Ok(explained.map(|explained| Value::String(explained.text)))
}

/// What is known about something.
struct Explanation {
    text: String,
    /// Where it can be read as a document.
    document: Option<Uri>,
}

fn explanation(snapshot: &Snapshot, argument: &ExplainArgument) -> Option<Explanation> {
    let file = snapshot.file(&path_of(&argument.uri))?;
    let offset = snapshot.offset(file, argument.position);
    let function = hover::named_at(snapshot, file, offset).map(|(function, _)| function);
    let sites = function.map_or_else(Vec::new, |function| by_function(&snapshot.db, function));
    let text = match function {
        // Of a function everything: itself, and each of its launches.
        Some(function) if !sites.is_empty() => {
            let mut text = kernel::markdown(snapshot, function);
            for site in sites.iter().filter(|site| site.device_side()) {
                let launch = describe(snapshot, |describe| launch::markdown(&describe.launch(site), snapshot));
                text.push_str(&format!("\n---\n\n{launch}\n"));
            }
            text
        }
        _ => hover::content(snapshot, file, offset)?.0,
    };
    let shows = argument.show && snapshot.session.show_document;
    Some(Explanation {
        document: shows.then(|| snapshot.pages.explanation(&text)).flatten(),
        text,
    })
}

/// Shows an explanation as a document where the client can, else as a message.
async fn present(state: &State, explained: Option<&Explanation>) {
    let Some(explained) = explained else {
        let text = "gridfuse: nothing is known about this place";
        return state.client.show_message(MessageType::INFO, text).await;
    };
    if let Some(uri) = &explained.document {
        let document = ShowDocumentParams {
            uri: uri.clone(),
            external: Some(false),
            take_focus: Some(true),
            selection: None,
        };
        if state.client.show_document(document).await.is_ok_and(|shown| shown) {
            return;
        }
    }
    state.client.show_message(MessageType::INFO, &explained.text).await;
}
