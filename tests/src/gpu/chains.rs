//! The tables of the chains, in `docs/measurements.md`: programs with a kernel that launches itself for the next link, and say in
//! their report of how many `links` and `elements` the chain is.

use std::fmt::Write as _;

use super::record::{Results, Run};
use super::tables::milliseconds;

/// The section of the document.
pub const SECTION: &str = "chains";

/// The variant that launches link by link.
const NAIVE: &str = "naive";

/// The rewrites, from the one that waits most to the one that waits least.
const REWRITES: [&str; 3] = ["promote", "promote-overlap", "promote-lookback"];

/// What CUB does instead.
const CUB: &str = "cub";

/// The input on which the naive chain sets the measure: a longer one has more launches pending than may be.
const MEASURE: &str = "medium";

/// How many times the throughput of the naive chain on [`MEASURE`] the dissertation's promotion with aggregation and overlap (PAO)
/// has, on which input.
const PUBLISHED: [(&str, f64); 2] = [(MEASURE, 5.27), ("large", 21.8)];

/// The part of CUB's speed that is wanted.
const OF_CUB: f64 = 0.5;

/// The Markdown of all chains; `None` when no program is one.
pub fn markdown(results: &[Results]) -> Option<String> {
    let chains: Vec<&Results> = results
        .iter()
        .filter(|r| r.runs.iter().any(|run| links(run).is_some()))
        .collect();
    if chains.is_empty() {
        return None;
    }
    let mut tables = vec![time_per_link(&chains), throughput(&chains)];
    tables.extend(against_cub(&chains));
    Some(tables.join("\n"))
}

fn number(run: &Run, name: &str) -> Option<f64> {
    run.report.get(name)?.as_f64().filter(|number| *number > 0.0)
}

fn links(run: &Run) -> Option<f64> {
    number(run, "links")
}

fn time_ms(results: &Results, variant: &str, input: &str) -> Option<f64> {
    results.run(variant, input)?.time_ms
}

/// Elements in a millisecond.
fn speed(results: &Results, variant: &str, input: &str) -> Option<f64> {
    let run = results.run(variant, input)?;
    Some(number(run, "elements")? / run.time_ms?)
}

/// How many times the throughput of the naive chain on [`MEASURE`].
fn times_naive(results: &Results, variant: &str, input: &str) -> Option<f64> {
    Some(speed(results, variant, input)? / speed(results, NAIVE, MEASURE)?)
}

/// A Markdown table; from the column `numbers_from` on it holds numbers.
pub(in crate::gpu) fn table(head: &[&str], numbers_from: usize, rows: &[Vec<String>]) -> String {
    let mut text = format!("| {} |\n|", head.join(" | "));
    for column in 0..head.len() {
        text.push_str(if column < numbers_from { " --- |" } else { " ---: |" });
    }
    text.push('\n');
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

fn time_per_link(chains: &[&Results]) -> String {
    let mut rows = Vec::new();
    for results in chains {
        for input in &results.inputs {
            let count = results.runs.iter().filter(|run| run.input == *input).find_map(links);
            let Some(count) = count else { continue };
            let mut row = vec![results.program.clone(), input.clone(), format!("{count:.0}")];
            row.extend([NAIVE].iter().chain(&REWRITES).map(|variant| {
                or_dash(time_ms(results, variant, input).map(|time| milliseconds(time * 1000.0 / count)))
            }));
            rows.push(row);
        }
    }
    let mut head = vec!["time per link in µs", "input", "links", NAIVE];
    head.extend(REWRITES);
    table(&head, 2, &rows)
}

fn factor(factor: f64) -> String {
    format!("{}×", milliseconds(factor))
}

fn throughput(chains: &[&Results]) -> String {
    let mut rows = Vec::new();
    for results in chains {
        let mut row = vec![results.program.clone()];
        for (input, _) in PUBLISHED {
            row.extend(
                REWRITES
                    .iter()
                    .map(|variant| or_dash(times_naive(results, variant, input).map(factor))),
            );
        }
        rows.push(row);
    }
    let columns: Vec<String> = PUBLISHED
        .iter()
        .flat_map(|(input, _)| REWRITES.map(|variant| format!("{variant}, {input}")))
        .collect();
    let first = format!("throughput, naive on {MEASURE} = 1");
    let mut head = vec![first.as_str()];
    head.extend(columns.iter().map(String::as_str));
    let mut text = table(&head, 1, &rows);
    for (input, published) in PUBLISHED {
        for variant in &REWRITES[1..] {
            let found = chains
                .iter()
                .filter_map(|results| Some((results.program.as_str(), times_naive(results, variant, input)?)));
            let sentence = compared(found, published, factor);
            let _ = writeln!(
                text,
                "\n`{variant}` on {input}, at least {}: {sentence}.",
                factor(published)
            );
        }
    }
    text
}

/// Who reaches a figure and who doesn't, in words.
fn compared<'a>(found: impl Iterator<Item = (&'a str, f64)>, wanted: f64, shown: impl Fn(f64) -> String) -> String {
    let (reached, missed): (Vec<_>, Vec<_>) = found.partition(|(_, value)| *value >= wanted);
    let missed: Vec<String> = missed
        .iter()
        .map(|(program, value)| format!("{program} ({})", shown(*value)))
        .collect();
    let reached: Vec<&str> = reached.iter().map(|(program, _)| *program).collect();
    match (reached.is_empty(), missed.is_empty()) {
        (true, true) => "not measured".to_owned(),
        (false, true) => format!("reached by all ({})", reached.join(", ")),
        (true, false) => format!("missed by all: {}", missed.join(", ")),
        (false, false) => format!("reached by {}; missed by {}", reached.join(", "), missed.join(", ")),
    }
}

fn against_cub(chains: &[&Results]) -> Option<String> {
    let lookback = REWRITES[2];
    let mut rows = Vec::new();
    let mut found: Vec<(String, f64)> = Vec::new();
    for results in chains {
        for input in &results.inputs {
            let times = time_ms(results, CUB, input).zip(time_ms(results, lookback, input));
            let Some((cub, ours)) = times else { continue };
            found.push((format!("{} on {input}", results.program), cub / ours));
            rows.push(vec![
                results.program.clone(),
                input.clone(),
                milliseconds(cub),
                milliseconds(ours),
                format!("{:.2}", cub / ours),
            ]);
        }
    }
    if rows.is_empty() {
        return None;
    }
    let mut text = table(&["time in ms", "input", CUB, lookback, "CUB's time / ours"], 2, &rows);
    let found = found.iter().map(|(name, part)| (name.as_str(), *part));
    let sentence = compared(found, OF_CUB, |part| format!("{part:.2}"));
    let _ = writeln!(text, "\nAt least {OF_CUB} of CUB's speed: {sentence}.");
    Some(text)
}
