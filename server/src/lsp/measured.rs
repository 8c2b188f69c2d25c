//! What was measured of a function's launches, for hovers and lenses.

use gridfuse_analysis::hir::items::FunctionItem;

use super::markdown::{table, words};
use super::state::Snapshot;
use crate::measure::fingerprint;
use crate::measure::history::{History, Measured};
use crate::measure::phrases::{milliseconds, times};

/// At most this many rewrites are listed.
const MAX_LISTED: usize = 8;

/// What was measured of the launches of a function, the best first; nothing where the history can't be read.
pub fn of_function(snapshot: &Snapshot, function: FunctionItem<'_>) -> Vec<Measured> {
    read(snapshot, function).unwrap_or_default()
}

/// What the best of them has brought, in a phrase; empty where nothing was measured.
pub fn best(snapshot: &Snapshot, function: FunctionItem<'_>) -> String {
    of_function(snapshot, function)
        .first()
        .map(Measured::phrase)
        .unwrap_or_default()
}

/// The same as a section of a hover.
pub fn markdown(snapshot: &Snapshot, function: FunctionItem<'_>) -> String {
    let measured = match read(snapshot, function) {
        Ok(measured) => measured,
        Err(problem) => return format!("\n{}\n", words(&problem)),
    };
    let Some(best) = measured.first() else {
        return String::new();
    };
    let rows: Vec<Vec<String>> = measured
        .iter()
        .take(MAX_LISTED)
        .map(|measured| {
            let speedup = match (measured.speedup, measured.original_timed_out) {
                _ if measured.agrees == Some(false) => "wrong results".to_owned(),
                (Some(speedup), _) => times(speedup),
                (None, Some(seconds)) => format!("original: over {seconds} s"),
                (None, None) => "–".to_owned(),
            };
            let tuned = if measured.tuned { "tuned: " } else { "" };
            let when = match measured.current {
                true => measured.ago.clone(),
                false => format!("{}, stale", measured.ago),
            };
            vec![
                words(&format!("{tuned}{}", measured.rewrites)),
                milliseconds(measured.median_ms),
                speedup,
                words(&measured.gpu),
                words(&measured.args.join(" ")),
                when,
            ]
        })
        .collect();
    let header = ["Measured", "ms", "speedup", "GPU", "arguments", ""];
    let occupancy = best.occupancy().map_or_else(String::new, |occupancy| {
        format!(
            "\n*Occupancy* of `{}`: {}\n",
            function.name(&snapshot.db),
            words(&occupancy)
        )
    });
    format!(
        "\n*Measured*: {}\n\n{}{occupancy}",
        words(&best.phrase()),
        table(&header, &rows)
    )
}

fn read(snapshot: &Snapshot, function: FunctionItem<'_>) -> Result<Vec<Measured>, String> {
    let db = &snapshot.db;
    let file = function.file(db);
    let path = file.path(db);
    // Documents that were never saved weren't measured.
    if !path.is_absolute() {
        return Ok(Vec::new());
    }
    let history = History::read(path)
        .map_err(|broken| format!("The history in {} can't be read: {}", broken.path.display(), broken.why))?;
    Ok(history.of_function(function.name(db), || fingerprint::of_program(db, file)))
}
