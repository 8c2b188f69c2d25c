//! What was found out about each rule, in `tests/rule-mutants/results.json`.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::directory;

/// What was found out about a rule.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The tests notice that it is taken out.
    pub killed: bool,
    /// Which of them does.
    pub by: Option<String>,
    /// How long they took.
    pub seconds: f64,
    /// The commit that it was tried on.
    pub commit: String,
    /// Of the rule as it was then.
    pub fingerprint: String,
}

/// The records by the rules' names.
pub type Records = BTreeMap<String, Record>;

/// Those that are written down; none where there is no file.
///
/// # Errors
/// When the file says something else.
pub fn records() -> Result<Records> {
    let path = directory().join("results.json");
    match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).with_context(|| format!("{} holds no records", path.display())),
        Err(_) => Ok(Records::new()),
    }
}

/// Writes them down.
///
/// # Errors
/// When the file can't be written.
pub fn write_records(records: &Records) -> Result<()> {
    let path = directory().join("results.json");
    let text = format!("{}\n", serde_json::to_string_pretty(records)?);
    fs::write(&path, text).with_context(|| format!("{} can't be written", path.display()))
}
