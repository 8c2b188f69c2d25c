//! What the client gets when a search is at its end: the report with the edit, and on request the question whether to apply it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gridfuse_codeactions::api::sequence::difference;
use gridfuse_codeactions::api::source_edit::SourceEdit;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::{Error, Result};
use tower_lsp_server::ls_types::{MessageActionItem, MessageType, WorkspaceEdit};

use super::actions::{failed, workspace_edit_if};
use super::state::{Snapshot, State};
use crate::measure::phrases::times;
use crate::measure::tune::report::{ChangedText, TuneReport};

/// What a user answers who wants the edit.
const APPLY: &str = "Apply";

/// Turns the texts of a report into an edit; `show`: the caller does nothing with the result, so the user is asked.
pub async fn finish(state: &State, report: Value, show: bool) -> Result<Value> {
    let mut report: TuneReport = serde_json::from_value(report).map_err(|_| Error::internal_error())?;
    let texts = std::mem::take(&mut report.texts);
    let title = report.search.best.clone().unwrap_or_default();
    let assumptions = report.assumptions.clone();
    let edit = match texts.is_empty() {
        true => None,
        false => Some(
            state
                .request(move |snapshot| edit_of(snapshot, &texts, &assumptions, &title))
                .await?,
        ),
    };
    if show {
        ask(state, &report, edit.clone()).await;
    }
    let mut answer = serde_json::to_value(&report).map_err(|_| Error::internal_error())?;
    if let Some(fields) = answer.as_object_mut() {
        fields.insert("edit".to_owned(), json!(edit));
    }
    Ok(answer)
}

/// The edit, unless what it is of has changed since the search began.
fn edit_of(
    snapshot: &Snapshot,
    texts: &BTreeMap<String, ChangedText>,
    assumptions: &[String],
    title: &str,
) -> Result<WorkspaceEdit> {
    let mut edit = SourceEdit::default();
    for (path, ChangedText { before, after }) in texts {
        let path = PathBuf::from(path);
        let Some(before) = before else {
            edit.creates.insert(path, after.as_str().into());
            continue;
        };
        let now = snapshot.file(&path).map(|file| file.text(&snapshot.db));
        if now.as_deref() != Some(before.as_str()) {
            return Err(failed(format!(
                "{} has changed since the search began: tune it again",
                path.display()
            )));
        }
        edit.edits.insert(path, difference(before, after));
    }
    let assumed: Vec<&str> = assumptions.iter().map(String::as_str).collect();
    workspace_edit_if(snapshot, &edit, &assumed, title)
}

async fn ask(state: &State, report: &TuneReport, edit: Option<WorkspaceEdit>) {
    let gpu = &report.machine.gpu;
    let (Some(best), Some(speedup), Some(edit)) = (&report.search.best, report.search.speedup, edit) else {
        let text = format!(
            "gridfuse: no combination is faster than the program as it is on {gpu}: leave it as it is, or tune it with other arguments"
        );
        return state.client.show_message(MessageType::INFO, text).await;
    };
    let mut text = format!(
        "gridfuse: {best} is {} as fast as the program as it is on {gpu}",
        times(speedup)
    );
    if !report.assumptions.is_empty() {
        text.push_str(&format!(", if this holds: {}", report.assumptions.join("; ")));
    }
    let apply = MessageActionItem {
        title: APPLY.to_owned(),
        properties: std::collections::HashMap::new(),
    };
    let answer = state
        .client
        .show_message_request(MessageType::INFO, text, Some(vec![apply]))
        .await;
    if answer.is_ok_and(|answer| answer.is_some_and(|answer| answer.title == APPLY)) {
        let done = state.client.apply_edit(edit).await;
        if !done.is_ok_and(|done| done.applied) {
            let text =
                format!("gridfuse: {best} was not applied: the text has changed since the search; tune it again");
            state.client.show_message(MessageType::WARNING, text).await;
        }
    }
}
