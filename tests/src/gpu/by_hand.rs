//! Rewritten programs against those that do the same by hand, in `docs/measurements.md`: the baselines whose names begin with `klap`.

use std::fmt::Write as _;

use super::record::Results;
use super::summary::{cases, factor, geometric_mean, shown};
use super::tables::escaped;

/// The section of the document.
pub const SECTION: &str = "klap";

/// How the names of baselines begin that collect launches as El Hajj's compiler does.
const PREFIX: &str = "klap";

/// How many times as fast as the fastest of them a rewritten program is to be.
const WANTED: f64 = 1.2;

/// The Markdown; `None` when no program has such a baseline.
pub fn markdown(all: &[Results]) -> Option<String> {
    let mut text = r#"| time in ms | by hand | its time | fastest rewrite | its time | by hand ÷ rewrite |
| --- | --- | ---: | --- | ---: | ---: |
"#
    .to_owned();
    let mut ratios = Vec::new();
    let mut missed = Vec::new();
    for case in all.iter().flat_map(cases) {
        let (Some(hand), Some(best)) = (case.least(|variant| variant.starts_with(PREFIX)), case.best()) else {
            continue;
        };
        let name = format!("{}, {}", escaped(&case.results.program), escaped(case.input));
        let ratio = hand.time_ms.zip(best.time_ms).map(|(hand, best)| hand / best);
        ratios.extend(ratio);
        if let Some(ratio) = ratio.filter(|ratio| *ratio < WANTED) {
            missed.push(format!("{name} ({}×)", factor(Some(ratio))));
        }
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} |",
            escaped(&hand.variant),
            shown(hand.time_ms),
            escaped(&best.variant),
            shown(best.time_ms),
            factor(ratio),
        );
    }
    let mean = geometric_mean(ratios.into_iter())?;
    let _ = writeln!(
        text,
        "| geometric mean | | | | | {} |\n\nLess than {WANTED} times as fast: {}.",
        factor(Some(mean)),
        match missed.is_empty() {
            true => "none".to_owned(),
            false => missed.join("; "),
        }
    );
    Some(text)
}
