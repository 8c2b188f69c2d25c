//! A measurement as a table for the terminal.

use std::io::Write;

use super::super::CliError;
use super::super::fitted_table::FittedTable;
use super::super::output::note;
use crate::measure::kernels::{self, EXPLANATION};
use crate::measure::phrases::{about, milliseconds, notes, result, speedup, times, tried};
use crate::measure::report::{Outcome, Report};

/// Prints a report.
pub fn print(report: &Report, out: &mut dyn Write) -> Result<(), CliError> {
    let header = [
        "program",
        "GPU time, ms",
        "least … most",
        "speedup",
        "launches",
        "result",
    ];
    let mut table = FittedTable::new(&header, header.len() - 1).with_numbers_in(1..header.len() - 1);
    table.row(
        row("original", &report.original, None),
        results(&report.original, report),
    );
    for variant in tried(report) {
        let speedup = speedup(report, &variant.outcome);
        table.row(
            row(&variant.rewrites, &variant.outcome, speedup),
            results(&variant.outcome, report),
        );
    }
    table.print(out)?;
    writeln!(out, "{}", about(report))?;
    print_kernels(&kernels::of_report(report), out)?;
    for text in notes(report) {
        note(&text);
    }
    Ok(())
}

/// Prints what kernels need, a line each.
pub fn print_kernels(lines: &[String], out: &mut dyn Write) -> Result<(), CliError> {
    if !lines.is_empty() {
        writeln!(out, "kernels: {EXPLANATION}")?;
    }
    for line in lines {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

/// What became of a program, as the one reason of its row, if anything.
fn results(outcome: &Outcome, report: &Report) -> Vec<String> {
    vec![result(outcome, report)]
}

/// The cells in front of it.
fn row(name: &str, outcome: &Outcome, speedup: Option<f64>) -> Vec<String> {
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
    ]
}
