//! What a threshold in front of `aggregate-grid-stream` and `aggregate-grid` gains or costs, in `docs/measurements.md`, for the programs
//! whose inputs want different ones.

use std::fmt::Write as _;

use super::record::Results;
use super::summary::{Case, cases, factor};
use super::tables::escaped;

/// The section of the document.
pub const SECTION: &str = "thresholds";

/// Programs in which child grids differ in size, and whose inputs disagree.
const PROGRAMS: [&str; 3] = ["cc", "gc", "mstf"];

/// What a row is called, and its variant.
const ROWS: [(&str, &str); 6] = [
    ("`aggregate-grid-stream`", "aggregate-grid-stream-p2048"),
    ("16, then that", "threshold-16.aggregate-grid-stream-p2048"),
    ("64, then that", "threshold-64.aggregate-grid-stream-p2048"),
    ("`aggregate-grid`", "aggregate-grid-p2048"),
    ("16, then that", "threshold-16.aggregate-grid-p2048"),
    ("64, then that", "threshold-64.aggregate-grid-p2048"),
];

/// The Markdown: the best time of all rewrites divided by that with a threshold. `None` where one of the programs is missing.
pub fn markdown(all: &[Results]) -> Option<String> {
    let programs: Option<Vec<&Results>> = PROGRAMS
        .iter()
        .map(|name| all.iter().find(|results| results.program == *name))
        .collect();
    let columns: Vec<Case<'_>> = programs?.into_iter().flat_map(cases).collect();
    let mut text = "| threshold |".to_owned();
    for case in &columns {
        let _ = write!(text, " {}, {} |", escaped(&case.results.program), escaped(case.input));
    }
    text += "\n| --- |";
    text += &" ---: |".repeat(columns.len());
    text.push('\n');
    for (name, variant) in ROWS {
        let _ = write!(text, "| {name} |");
        for case in &columns {
            let best = case.best().and_then(|best| best.time_ms);
            let ratio = best.zip(case.time(variant)).map(|(best, time)| best / time);
            let _ = write!(text, " {} |", factor(ratio));
        }
        text.push('\n');
    }
    Some(text)
}
