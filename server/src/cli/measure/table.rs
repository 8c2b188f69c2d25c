//! A measurement as a table for the terminal.

use std::io::Write;

use comfy_table::{CellAlignment, Table, presets};

use super::super::CliError;
use super::super::output::note;
use crate::measure::phrases::{about, milliseconds, notes, result, speedup, times, tried};
use crate::measure::report::{Outcome, Report};

/// Prints a report.
pub fn print(report: &Report, out: &mut dyn Write) -> Result<(), CliError> {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "program",
        "GPU time, ms",
        "least … most",
        "speedup",
        "launches",
        "result",
    ]);
    for column in 1..=4 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.add_row(row("original", &report.original, None, report));
    for variant in tried(report) {
        let speedup = speedup(report, &variant.outcome);
        table.add_row(row(&variant.rewrites, &variant.outcome, speedup, report));
    }
    writeln!(out, "{table}")?;
    writeln!(out, "{}", about(report))?;
    for text in notes(report) {
        note(&text);
    }
    Ok(())
}

fn row(name: &str, outcome: &Outcome, speedup: Option<f64>, report: &Report) -> Vec<String> {
    let none = || "-".to_owned();
    let (time, spread, launches) = match outcome {
        Outcome::Ran(run) => {
            let (least, most) = run.spread();
            (
                milliseconds(run.median_ms),
                format!("{} … {}", milliseconds(least), milliseconds(most)),
                run.device_launches.map_or_else(none, |launches| launches.to_string()),
            )
        }
        _ => (none(), none(), none()),
    };
    vec![
        name.to_owned(),
        time,
        spread,
        speedup.map_or_else(none, times),
        launches,
        result(outcome, report),
    ]
}
