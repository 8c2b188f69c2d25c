//! What `gridfuse tune --json` has found out about programs; with `--exhaustive` how near the best a search ends, and which part of the time of
//! measuring all that takes.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::tables::{escaped, milliseconds};

/// How the names of the records begin; they are kept in `tests/gpu/results/`, beside the measurements. The program's name follows, and
/// behind a hyphen which of its inputs was searched for, where there are several.
pub const PREFIX: &str = "tune_";

/// The name of the section with the table.
pub const SECTION: &str = "tune";

/// What a table needs of a record.
#[derive(Debug, Deserialize)]
pub struct Tuned {
    args: Vec<String>,
    machine: Machine,
    search: Search,
    exhaustive: Option<Swept>,
    /// Of the program as it is.
    original: Original,
}

#[derive(Debug, Deserialize)]
struct Machine {
    gpu: String,
}

#[derive(Debug, Deserialize)]
struct Original {
    median_ms: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Search {
    possible: usize,
    tried: usize,
    seconds: f64,
    best: Option<String>,
    best_ms: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Swept {
    seconds: f64,
    best: Option<String>,
    best_ms: Option<f64>,
    found_ms: Option<f64>,
    share: Option<Share>,
}

/// The search's part of what all combinations take.
#[derive(Debug, Deserialize)]
struct Share {
    builds: f64,
    run_seconds: f64,
}

/// The records of a directory, by the programs' names.
pub fn load_all(directory: &Path) -> Result<Vec<(String, Tuned)>> {
    let mut all = Vec::new();
    if directory.is_dir() {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(program) = name.strip_prefix(PREFIX) else {
                continue;
            };
            let text = std::fs::read_to_string(&path)?;
            let tuned = serde_json::from_str(&text).with_context(|| format!("{} is no record", path.display()))?;
            all.push((program.to_owned(), tuned));
        }
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(all)
}

/// The table, unless there are no records.
pub fn markdown(all: &[(String, Tuned)]) -> Option<String> {
    let (_, first) = all.first()?;
    let mut text = String::from(
        r#"| program | as it is, ms | combinations tried | found | ms | best of all | ms | longer | time of the search |
| --- | ---: | ---: | --- | ---: | --- | ---: | ---: | ---: |
"#,
    );
    let time = |ms: Option<f64>| ms.map_or_else(|| "–".to_owned(), milliseconds);
    let name = |point: Option<&String>| point.map_or_else(|| "–".to_owned(), |point| escaped(point));
    for (record, tuned) in all {
        let program = record.split('-').next().unwrap_or(record);
        let search = &tuned.search;
        let all = tuned.exhaustive.as_ref();
        // What is compared with the best of all has run again, in turn with it.
        let found = all.map_or(search.best_ms, |all| all.found_ms);
        let best = all.and_then(|all| all.best_ms);
        let longer = found.zip(best).map_or_else(
            || "–".to_owned(),
            |(found, best)| format!("{:.1} %", 100.0 * (found / best - 1.0)),
        );
        let share = all.map_or_else(
            || format!("{:.0} s", search.seconds),
            |all| {
                let parts = all.share.as_ref().map_or_else(String::new, |share| {
                    let percent = |part: f64| 100.0 * part;
                    format!(
                        " ({:.0} % of the GPU's time, {:.0} % of the programs)",
                        percent(share.run_seconds),
                        percent(share.builds)
                    )
                });
                format!(
                    "{:.0} of {:.0} s, {:.0} %{parts}",
                    search.seconds,
                    all.seconds,
                    100.0 * search.seconds / all.seconds
                )
            },
        );
        let _ = writeln!(
            text,
            "| {program} `{}` | {} | {} of {} | {} | {} | {} | {} | {longer} | {share} |",
            escaped(&tuned.args.join(" ")),
            time(tuned.original.median_ms),
            search.tried,
            search.possible,
            name(search.best.as_ref()),
            time(found),
            name(all.and_then(|all| all.best.as_ref())),
            time(best),
        );
    }
    let _ = write!(text, "\n{}.\n", first.machine.gpu);
    Some(text)
}
