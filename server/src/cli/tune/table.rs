//! A search as a table for the terminal.

use std::io::Write;

use super::super::CliError;
use super::super::fitted_table::FittedTable;
use super::super::measure::table::print_kernels;
use super::super::output::note;
use crate::measure::kernels::{grouped, lines, of_outcome};
use crate::measure::phrases::{milliseconds, times};
use crate::measure::report::{Agreement, Outcome};
use crate::measure::tune::report::{TriedPoint, TuneReport};

/// Prints a report.
pub fn print(report: &TuneReport, out: &mut dyn Write) -> Result<(), CliError> {
    let header = ["combination", "GPU time, ms", "least … most", "speedup", "result"];
    let mut table = FittedTable::new(&header, header.len() - 1).with_numbers_in(1..header.len() - 1);
    let mut add = |name: &str, outcome: &Outcome, speedup: Option<f64>| {
        let (cells, result) = row(name, outcome, speedup);
        table.row(cells, vec![result]);
    };
    add("as it is", &report.original, None);
    for TriedPoint { point, outcome } in &report.points {
        let speedup = report.original.median().zip(outcome.median());
        let speedup = speedup
            .filter(|(_, own)| *own > 0.0)
            .map(|(original, own)| original / own);
        add(point, outcome, speedup);
    }
    table.print(out)?;
    let found = &report.search;
    let gpus = report.machine.times(report.gpus);
    let resumed = match found.resumed {
        0 => String::new(),
        resumed => format!(", {resumed} of them known from an interrupted search"),
    };
    writeln!(
        out,
        "{gpus}; {} of {} combinations tried in {:.0} s{resumed}; {} stopped early; begun at {}",
        found.tried, found.possible, found.seconds, found.stopped, report.guess
    )?;
    match (&found.best, found.speedup) {
        (Some(best), Some(speedup)) if speedup > 1.0 => {
            writeln!(out, "{best} is {} as fast as the program as it is", times(speedup))?;
        }
        (Some(best), _) => writeln!(
            out,
            "no combination is faster than the program as it is; the next is {best}"
        )?,
        (None, _) => writeln!(out, "no combination computes the same as the program as it is")?,
    }
    for other in &found.as_fast {
        writeln!(
            out,
            "{} is as fast as far as can be told, but keeps {} threads resident on a multiprocessor in place of {}",
            other.point,
            grouped(other.resident_threads.into()),
            grouped(other.best_resident_threads.into())
        )?;
    }
    let best = found
        .best
        .as_deref()
        .zip(found.speedup)
        .filter(|(_, speedup)| *speedup > 1.0);
    let best = best.and_then(|(best, _)| report.points.iter().find(|tried| tried.point == best));
    let best = best.map(|tried| (tried.point.as_str(), of_outcome(&tried.outcome)));
    let programs = std::iter::once(("as it is", of_outcome(&report.original))).chain(best);
    print_kernels(&lines(&programs.collect::<Vec<_>>()), out)?;
    if let Some(all) = &report.exhaustive {
        let best = all.best.as_deref().unwrap_or("none");
        write!(
            out,
            "all combinations: {} in {:.0} s, the best is {best}",
            all.points, all.seconds
        )?;
        if let Some(ms) = all.best_ms {
            write!(out, " with {} ms", milliseconds(ms))?;
        }
        if let Some(excess) = all.excess {
            write!(out, "; what the search has found takes {:.1} % longer", 100.0 * excess)?;
        }
        writeln!(out)?;
        let share = &all.share;
        writeln!(
            out,
            "the search took {:.0} % of the time of that, {:.0} % of the programs and {:.0} % of the GPU's time",
            100.0 * share.seconds,
            100.0 * share.builds,
            100.0 * share.run_seconds
        )?;
    }
    if !report.deterministic {
        note("two runs of the program as it is disagree: what differs between them was not compared");
    }
    for assumption in &report.assumptions {
        note(&format!("it assumes: {assumption}"));
    }
    Ok(())
}

/// The cells of a program, and what became of it.
fn row(name: &str, outcome: &Outcome, speedup: Option<f64>) -> (Vec<String>, String) {
    let none = || "-".to_owned();
    let (time, spread, result) = match outcome {
        Outcome::Ran(run) => {
            let (least, most) = run.spread();
            let right = matches!(run.agreement, Agreement::Original | Agreement::Agrees { .. });
            let result = match &run.agreement {
                Agreement::Original => String::new(),
                Agreement::Agrees { .. } => "agrees".to_owned(),
                Agreement::Differs(_) => "DIFFERS".to_owned(),
                Agreement::PrintsOtherwise { expected, found } => {
                    format!("DIFFERS: prints `{found}` instead of `{expected}`")
                }
                Agreement::Unknown { reason } => format!("not compared: {reason}"),
                Agreement::NotShown(alone) => format!("not compared: {}", alone.reason),
            };
            let spread = format!("{} … {}", milliseconds(least), milliseconds(most));
            match right {
                true => (milliseconds(run.median_ms), spread, result),
                false => (none(), none(), result),
            }
        }
        Outcome::NotBuilt { message, .. } => (none(), none(), format!("does not compile:\n{message}")),
        Outcome::Failed { message, .. } => (none(), none(), message.clone()),
        Outcome::TimedOut { seconds } => (none(), none(), format!("did not finish in {seconds} s")),
        Outcome::Refused { .. } => (none(), none(), none()),
    };
    let speedup = speedup.filter(|_| time != "-").map_or_else(none, times);
    (vec![name.to_owned(), time, spread, speedup], result)
}
