//! What the rewrites gain over all programs: the best of them for each input against the naive launches and against the serial
//! loop, each of them as the only choice, and what `optimize` chooses.

use std::fmt::Write as _;

use super::record::{Results, Run};
use super::tables::{escaped, milliseconds};

const SERIAL: &str = "serial";
const NAIVE: &str = "naive";
const NAIVE_PER_THREAD: &str = "naive-per-thread-stream";

/// How the names of variants begin that collect launches.
const COLLECT: &str = "aggregate-";

/// What the variants are called in which `optimize` chose.
const OPTIMIZE: &str = "optimize";

/// How much slower than the serial loop a rewritten program may be: one of both.
const ALLOWED_PERCENT: f64 = 5.0;
const ALLOWED_MICROSECONDS: f64 = 5.0;

/// Times of one program on one input.
pub(super) struct Case<'a> {
    pub(super) results: &'a Results,
    pub(super) input: &'a str,
}

impl<'a> Case<'a> {
    /// Program and input, as a table shows them.
    fn name(&self) -> String {
        format!("{}, {}", escaped(&self.results.program), escaped(self.input))
    }

    /// In ms, if the result was right.
    pub(super) fn time(&self, variant: &str) -> Option<f64> {
        self.results.run(variant, self.input)?.time_ms
    }

    /// The fastest run of a rewritten program.
    pub(super) fn best(&self) -> Option<&Run> {
        self.fastest(|_| true)
    }

    /// The fastest run of a rewritten program among some variants.
    fn fastest(&self, wanted: impl Fn(&str) -> bool) -> Option<&Run> {
        self.least(|variant| wanted(variant) && is_rewritten(self.results, variant))
    }

    /// The fastest run of all among some variants.
    pub(super) fn least(&self, wanted: impl Fn(&str) -> bool) -> Option<&'a Run> {
        let runs = self.results.runs.iter();
        runs.filter(|run| run.input == self.input && run.time_ms.is_some() && wanted(&run.variant))
            .min_by(|a, b| f64::total_cmp(&a.time_ms.unwrap_or(f64::MAX), &b.time_ms.unwrap_or(f64::MAX)))
    }

    /// By how much `time` is more than that of the serial loop, in words, if it is; and whether that is too much.
    fn excess(&self, time: f64) -> Option<(String, bool)> {
        let serial = self.time(SERIAL)?;
        let (percent, microseconds) = ((time / serial - 1.0) * 100.0, (time - serial) * 1000.0);
        (percent > 0.0).then(|| {
            let text = format!("{percent:.0} %, {microseconds:.1} µs");
            (text, percent > ALLOWED_PERCENT && microseconds > ALLOWED_MICROSECONDS)
        })
    }
}

/// Whether gridfuse has rewritten the source of a variant.
fn is_rewritten(results: &Results, variant: &str) -> bool {
    results
        .builds
        .iter()
        .filter(|build| build.variants.iter().any(|name| name == variant))
        .any(|build| build.commands.iter().any(|command| command.starts_with("gridfuse ")))
}

/// One for each input.
pub(super) fn cases(results: &Results) -> impl Iterator<Item = Case<'_>> {
    results.inputs.iter().map(move |input| Case { results, input })
}

/// The geometric mean, if there is anything to take it of.
pub(super) fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value.ln();
        count += 1.0;
    }
    (count > 0.0).then(|| (sum / count).exp())
}

/// The mean over programs of the means over their inputs, so that each program weighs the same.
fn mean_of_programs(all: &[Results], ratio: impl Fn(&Case<'_>) -> Option<f64>) -> Option<f64> {
    geometric_mean(
        all.iter()
            .filter_map(|results| geometric_mean(cases(results).filter_map(|case| ratio(&case)))),
    )
}

fn over(numerator: Option<f64>, denominator: Option<f64>) -> Option<f64> {
    Some(numerator? / denominator?)
}

/// A ratio of times.
pub(super) fn factor(ratio: Option<f64>) -> String {
    match ratio {
        Some(ratio) if ratio >= 100.0 => format!("{ratio:.0}"),
        Some(ratio) if ratio >= 10.0 => format!("{ratio:.1}"),
        Some(ratio) => format!("{ratio:.2}"),
        None => "–".to_owned(),
    }
}

/// A time in ms.
pub(super) fn shown(time: Option<f64>) -> String {
    time.map_or("–".to_owned(), milliseconds)
}

/// The Markdown, or `None` when nothing was rewritten.
pub fn markdown(all: &[Results]) -> Option<String> {
    // What has no serial loop to compare with, or nobody's launches, measures something else.
    let rewritten = |results: &&Results| {
        let has = |wanted: &dyn Fn(&str) -> bool| results.variants.iter().any(|variant| wanted(variant));
        let launches = has(&|variant| variant == NAIVE || variant == NAIVE_PER_THREAD);
        let mut variants = results.variants.iter();
        has(&|variant| variant == SERIAL) && launches && variants.any(|variant| is_rewritten(results, variant))
    };
    let all: Vec<Results> = all.iter().filter(rewritten).cloned().collect();
    if all.is_empty() {
        return None;
    }
    Some(format!("{}\n{}{}", best_of_each(&all), choices(&all), optimized(&all)))
}

/// What `optimize` chose, against the best of the others; nothing where it wasn't measured.
fn optimized(all: &[Results]) -> String {
    let by_model = |variant: &str| variant.starts_with(OPTIMIZE);
    let mut rows = String::new();
    let mut ratios = Vec::new();
    let mut too_slow = Vec::new();
    for case in all.iter().flat_map(cases) {
        let chosen = case.fastest(by_model);
        let best = case.fastest(|variant| !by_model(variant));
        let (Some(chosen), Some(best)) = (chosen, best) else {
            continue;
        };
        let ratio = over(best.time_ms, chosen.time_ms);
        ratios.extend(ratio);
        let name = case.name();
        if let Some((excess, true)) = chosen.time_ms.and_then(|time| case.excess(time)) {
            too_slow.push(format!("{name} ({excess})"));
        }
        let _ = writeln!(
            rows,
            "| {name} | {} | {} | {} | {} |",
            shown(chosen.time_ms),
            escaped(&best.variant),
            shown(best.time_ms),
            factor(ratio),
        );
    }
    let Some(least) = ratios.iter().copied().min_by(f64::total_cmp) else {
        return String::new();
    };
    format!(
        r#"
| `optimize` against the best of all rewrites that were measured | its time in ms | best | its time in ms | best ÷ optimize |
| --- | ---: | --- | ---: | ---: |
{rows}| geometric mean | | | | {} |
| least | | | | {} |

{}"#,
        factor(geometric_mean(ratios.into_iter())),
        factor(Some(least)),
        slower_than_serial("`optimize` slower", &too_slow),
    )
}

/// The sentence that names the cases in which what the subject says takes too much longer than the serial loop.
fn slower_than_serial(subject: &str, too_slow: &[String]) -> String {
    let named = match too_slow {
        [] => "none".to_owned(),
        some => some.join("; "),
    };
    format!("{subject} than the serial loop by more than {ALLOWED_PERCENT} % and {ALLOWED_MICROSECONDS} µs: {named}.\n")
}

/// The programs in which many threads launch, so that launches can be collected; in the others a block launches.
fn launched_by_threads(all: &[Results]) -> Vec<Results> {
    let threads_launch = |results: &&Results| results.variants.iter().any(|variant| variant.starts_with(COLLECT));
    all.iter().filter(threads_launch).cloned().collect()
}

/// The best rewrite for each program and input.
fn best_of_each(all: &[Results]) -> String {
    let mut text =
        r#"| time in ms | serial | naive | naive, per thread | best rewrite | its time | naive per thread ÷ best | serial ÷ best | slower than serial |
| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |
"#
            .to_owned();
    let mut too_slow = Vec::new();
    for results in all {
        for case in cases(results) {
            let best = case.best();
            let time = best.and_then(|best| best.time_ms);
            let name = case.name();
            let excess = match time.and_then(|time| case.excess(time)) {
                Some((excess, true)) => {
                    too_slow.push(format!("{name} ({excess})"));
                    format!("**{excess}**")
                }
                Some((excess, false)) => excess,
                None => "–".to_owned(),
            };
            let _ = writeln!(
                text,
                "| {name} | {} | {} | {} | {} | {} | {} | {} | {excess} |",
                shown(case.time(SERIAL)),
                shown(case.time(NAIVE)),
                shown(case.time(NAIVE_PER_THREAD)),
                best.map_or("–".to_owned(), |best| escaped(&best.variant)),
                shown(time),
                factor(over(case.time(NAIVE_PER_THREAD), time)),
                factor(over(case.time(SERIAL), time)),
            );
        }
    }
    let best = |case: &Case<'_>| case.best()?.time_ms;
    let threads_launch = launched_by_threads(all);
    for (name, programs) in [
        ("programs whose threads launch", threads_launch.as_slice()),
        ("programs", all),
    ] {
        if programs.is_empty() || programs.len() == all.len() && name != "programs" {
            continue;
        }
        let against_naive = mean_of_programs(programs, |case| over(case.time(NAIVE_PER_THREAD), best(case)));
        let against_serial = mean_of_programs(programs, |case| over(case.time(SERIAL), best(case)));
        let _ = writeln!(
            text,
            "| geometric mean of {} {name} | | | | | | **{}** | **{}** | |",
            programs.len(),
            factor(against_naive),
            factor(against_serial),
        );
    }
    let _ = write!(text, "\n{}", slower_than_serial("Slower", &too_slow));
    text
}

/// Each rewrite that all programs whose threads launch have been measured with, as the only choice.
fn choices(all: &[Results]) -> String {
    let all = &launched_by_threads(all);
    let mut text = r#"| one choice for all | naive per thread ÷ it | serial ÷ it | too slow against serial |
| --- | ---: | ---: | --- |
"#
    .to_owned();
    let first = all
        .first()
        .map(|results| results.variants.as_slice())
        .unwrap_or_default();
    let everywhere = |variant: &&String| all.iter().all(|results| is_rewritten(results, variant));
    for variant in first.iter().filter(everywhere) {
        let against = |other: &str| mean_of_programs(all, |case| over(case.time(other), case.time(variant)));
        let too_slow = all
            .iter()
            .flat_map(cases)
            .filter(|case| {
                let excess = case.time(variant).and_then(|time| case.excess(time));
                excess.is_some_and(|(_, too_much)| too_much)
            })
            .count();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {too_slow} of {} |",
            escaped(variant),
            factor(against(NAIVE_PER_THREAD)),
            factor(against(SERIAL)),
            all.iter().map(|results| results.inputs.len()).sum::<usize>(),
        );
    }
    text
}
