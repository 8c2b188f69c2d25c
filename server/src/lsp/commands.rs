//! Commands that the client lets the server execute.

use std::sync::Arc;

use gridfuse_analysis::base::span::TextRange;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower_lsp_server::jsonrpc::{Error, Result};
use tower_lsp_server::ls_types::{
    Command, ExecuteCommandParams, Location, MessageType, Position, ShowDocumentParams, Uri, WorkspaceEdit,
};

use super::actions::{failed, workspace_edit};
use super::convert::path_of;
use super::hover::{self, kernel, launch};
use super::markdown::describe;
use super::measure::{self, MEASURE, TUNE, Task};
use super::state::{Snapshot, State};
use crate::graph::Graph;
use crate::launches::{LaunchSite, by_function, function_headed_on, overlapping};
use crate::recipe;
use crate::through_calls::through_calls;

/// Explains what stands at a position; the result is Markdown.
pub const EXPLAIN: &str = "gridfuse.explain";

/// A command of the client, which says that it knows it: shows a list of places. Its arguments are those of VS Code's
/// `editor.action.showReferences`: the document, a position, and the places.
pub const SHOW_LAUNCHES: &str = "gridfuse.showLaunches";

/// A command of the client, which says that it knows it: lists the rewrites of the launches in a range. Its arguments are the document and
/// the range.
pub const SHOW_REWRITES: &str = "gridfuse.showRewrites";

/// Draws the launch graph of a document.
pub const GRAPH: &str = "gridfuse.graph";

/// Applies rewrites one after the other to the launches of a document; the result is the edit, which the client applies.
pub const REWRITE: &str = "gridfuse.rewrite";

/// The commands that the server executes.
pub const ALL: &[&str] = &[EXPLAIN, GRAPH, MEASURE, REWRITE, TUNE];

/// The argument of [`GRAPH`].
#[derive(Debug, Deserialize)]
struct GraphArgument {
    uri: Uri,
}

/// What [`GRAPH`] answers.
#[derive(Debug, Serialize)]
struct DrawnGraph {
    /// The picture. The attribute `data-node` of a shape is an index in `nodes`.
    svg: String,
    /// The same in Mermaid's language, for editors that show no pictures.
    mermaid: String,
    nodes: Vec<DrawnNode>,
    /// What the picture shows, for those who don't see it.
    launches: Vec<DrawnLaunch>,
}

#[derive(Debug, Serialize)]
struct DrawnNode {
    label: String,
    /// Where it is defined.
    location: Option<Location>,
    /// `1 error, 2 warnings`; empty: nothing is found in it.
    findings: String,
}

/// A launch of one node by another, each an index in `nodes`.
#[derive(Debug, Serialize)]
struct DrawnLaunch {
    from: usize,
    to: usize,
    /// `up to blockDim per grid`; empty: it isn't known.
    count: String,
    /// `false`: it may be another kernel that is launched, or another function that launches.
    certain: bool,
}

/// The argument of [`REWRITE`].
#[derive(Debug, Deserialize)]
struct RewriteArgument {
    uri: Uri,
    /// Line of the launch, or of the head of the function with the launches, from 0; without it, all launches of the document.
    line: Option<u32>,
    /// `threshold+aggregate-block`
    rewrites: String,
}

/// What [`REWRITE`] answers.
#[derive(Debug, Serialize)]
struct Rewritten {
    edit: WorkspaceEdit,
    /// What the rewrites take for granted.
    assumptions: Vec<String>,
    /// Of what kind each of that is: ids of `list`'s assumptions.
    kinds: Vec<&'static str>,
}

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
    let ExecuteCommandParams {
        command,
        arguments,
        work_done_progress_params,
    } = params;
    if let Some(task) = Task::of(&command) {
        return measure::execute(state, task, arguments, work_done_progress_params.work_done_token).await;
    }
    let argument = arguments.into_iter().next().unwrap_or_default();
    match command.as_str() {
        EXPLAIN => {
            let argument = understand(EXPLAIN, "a document and a position", argument)?;
            explain_place(state, argument).await
        }
        GRAPH => {
            let argument: GraphArgument = understand(GRAPH, "a document", argument)?;
            let drawn = state.request(move |snapshot| graph(snapshot, &argument.uri)).await?;
            Ok(serde_json::to_value(drawn).ok())
        }
        REWRITE => {
            let argument: RewriteArgument = understand(REWRITE, "a document and rewrites", argument)?;
            let rewritten = state.request(move |snapshot| rewrite(snapshot, &argument)).await?;
            Ok(serde_json::to_value(rewritten).ok())
        }
        other => Err(Error::invalid_params(format!("there is no command `{other}`"))),
    }
}

fn understand<T: serde::de::DeserializeOwned>(command: &str, takes: &str, argument: Value) -> Result<T> {
    serde_json::from_value(argument)
        .map_err(|error| Error::invalid_params(format!("`{command}` takes {takes}: {error}")))
}

async fn explain_place(state: &State, argument: ExplainArgument) -> Result<Option<Value>> {
    let show = argument.show;
    let explained = state
        .request(move |snapshot| Ok(explanation(snapshot, &argument)))
        .await?;
    if show {
        present(state, explained.as_ref()).await;
    }
    Ok(explained.map(|explained| Value::String(explained.text)))
}

fn unknown_document() -> Error {
    failed("the document is not known; save it as a .cu file and try again".to_owned())
}

fn graph(snapshot: &Snapshot, uri: &Uri) -> Result<DrawnGraph> {
    let file = snapshot.file(&path_of(uri)).ok_or_else(unknown_document)?;
    let mut graph = Graph::default();
    graph.add_file(&snapshot.db, file);
    let nodes = graph.nodes.iter().map(|node| DrawnNode {
        label: node.label.clone(),
        location: node.place.and_then(|place| snapshot.location(place)),
        findings: node.findings.phrase(),
    });
    let launches = graph.edges.iter().filter(|edge| !edge.call).map(|edge| DrawnLaunch {
        from: edge.from,
        to: edge.to,
        count: edge.label.clone(),
        certain: !edge.uncertain,
    });
    Ok(DrawnGraph {
        nodes: nodes.collect(),
        launches: launches.collect(),
        svg: graph.svg().map_err(failed)?,
        mermaid: graph.mermaid(),
    })
}

fn rewrite(snapshot: &Snapshot, argument: &RewriteArgument) -> Result<Rewritten> {
    let path = path_of(&argument.uri);
    let file = snapshot.file(&path).ok_or_else(unknown_document)?;
    let steps = recipe::steps(&argument.rewrites).map_err(Error::invalid_params)?;
    let within = argument.line.map(|line| {
        let at = |line| snapshot.offset(file, Position { line, character: 0 });
        let whole = TextRange::new(at(line), at(line + 1).saturating_sub(1).max(at(line)));
        if overlapping(&snapshot.db, file, whole)
            .iter()
            .any(LaunchSite::device_side)
        {
            return whole;
        }
        let db = &snapshot.db;
        let launches = |function| by_function(db, function).iter().any(LaunchSite::device_side);
        function_headed_on(db, file, line, launches).unwrap_or(whole)
    });
    let edit = recipe::apply(&snapshot.db, file, within, &steps)
        .map_err(|reasons| failed(format!("cannot be applied: {}", reasons.join("; "))))?;
    snapshot.remember(&edit);
    Ok(Rewritten {
        edit: workspace_edit(snapshot, &edit, &argument.rewrites)?,
        kinds: edit.assumptions.iter().map(|assumed| assumed.kind.id()).collect(),
        assumptions: edit
            .assumptions
            .into_iter()
            .map(|assumed| assumed.reason.text)
            .collect(),
    })
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
    let mut sites = function.map_or_else(Vec::new, |function| by_function(&snapshot.db, function));
    let called = function.map_or_else(Vec::new, |function| through_calls(&snapshot.db, function));
    sites.extend(called.iter().filter_map(|launch| launch.site));
    let text = match function {
        // Of a function everything: itself, and each of its launches.
        Some(function) if !sites.is_empty() => {
            let mut text = kernel::page(snapshot, function);
            for site in sites.iter().filter(|site| site.device_side()) {
                // What was measured stands on the function's part of the page.
                let launch = describe(snapshot, |describe| {
                    launch::markdown(&describe.launch(site), "", snapshot)
                });
                text.push_str(&format!("\n---\n\n{launch}\n"));
            }
            text
        }
        _ => hover::content(snapshot, file, offset)?.0,
    };
    let shows = argument.show && snapshot.session.show_document;
    Some(Explanation {
        document: shows.then(|| snapshot.pages.explanation(&text)).flatten(),
        text: hover::page_for_client(snapshot, text),
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
