//! A measurement as a page of HTML that needs nothing but itself: no script, no image, no font, nothing from a network.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::kernels::{self, EXPLANATION};
use super::phrases::{about, best, capital, milliseconds, notes, result, speedup, summary, times, tried};
use super::report::{Outcome, Report, Run};

/// All of the page's style. Its content security policy allows it by its place in the page, and nothing else.
const STYLE: &str = include_str!("report.css");

/// Width of the longest bar.
const BAR_WIDTH: f64 = 120.0;

/// Height of a bar.
const BAR_HEIGHT: f64 = 12.0;

/// The page.
pub fn page(report: &Report) -> String {
    let title = format!("gridfuse: {}", report.file);
    let notes = notes(report);
    let kernels = kernels::of_report(report);
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "gridfuse " (env!("CARGO_PKG_VERSION")) };
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (report.file) }
                    p.summary { (capital(&summary(report))) "." }
                    (programs(report))
                    p { (about(report)) "." }
                    @if !report.args.is_empty() {
                        p { "Arguments: " @for arg in &report.args { code { (arg) } " " } }
                    }
                    @if !kernels.is_empty() {
                        h2 { "Kernels" }
                        p { (capital(EXPLANATION)) "." }
                        ul { @for line in &kernels { li { (line) } } }
                    }
                    @if !notes.is_empty() {
                        h2 { "Notes" }
                        ul { @for note in &notes { li { (note) } } }
                    }
                    (changes(report))
                }
            }
        }
    };
    markup.into_string()
}

/// The table of all programs.
fn programs(report: &Report) -> Markup {
    let variants = tried(report).map(|variant| (variant.rewrites.as_str(), &variant.outcome));
    let all: Vec<(&str, &Outcome)> = std::iter::once(("original", &report.original))
        .chain(variants)
        .collect();
    let runs = || all.iter().filter_map(|(_, outcome)| ran(outcome));
    let most_time = runs().map(|run| run.median_ms).fold(0.0, f64::max);
    let most_launches = runs().filter_map(|run| run.device_launches).max().unwrap_or(0) as f64;
    let most_speedup = all
        .iter()
        .filter_map(|(_, outcome)| speedup(report, outcome))
        .fold(0.0, f64::max);
    let best = best(report).map(|(variant, _)| variant.rewrites.as_str());
    html! {
        div.scroll tabindex="0" role="region" aria-label="Programs" { table {
            caption { "GPU time, speedup, and launches by device code" }
            thead {
                tr {
                    th scope="col" { "Program" }
                    th scope="col" colspan="2" { "GPU time, ms (least … most)" }
                    th scope="col" colspan="2" { "Speedup" }
                    th scope="col" colspan="2" { "Device-side launches" }
                    th scope="col" { "Result" }
                }
            }
            tbody {
                @for (name, outcome) in &all {
                    tr.best[best == Some(name)] .bad[outcome.is_bad()] {
                        th scope="row" { (name) }
                        @if let Some(run) = ran(outcome) {
                            @let (least, most) = run.spread();
                            td.number { (milliseconds(run.median_ms)) " (" (milliseconds(least)) " … " (milliseconds(most)) ")" }
                            td { (bar("time", run.median_ms, most_time)) }
                            @if let Some(speedup) = speedup(report, outcome) {
                                td.number { (times(speedup)) }
                                td { (bar("speedup", speedup, most_speedup)) }
                            } @else {
                                td.number { "–" }
                                td {}
                            }
                            @if let Some(launches) = run.device_launches {
                                td.number { (launches) }
                                td { (bar("launches", launches as f64, most_launches)) }
                            } @else {
                                td.number { "–" }
                                td {}
                            }
                        } @else {
                            td.number { "–" } td {} td.number { "–" } td {} td.number { "–" } td {}
                        }
                        td.result { (result(outcome, report)) }
                    }
                }
            }
        } }
    }
}

fn ran(outcome: &Outcome) -> Option<&Run> {
    match outcome {
        Outcome::Ran(run) => Some(run),
        _ => None,
    }
}

/// A bar as long as its part of the most. The number stands beside it: readers of screens pass it over.
fn bar(what: &str, value: f64, most: f64) -> Markup {
    let width = if most > 0.0 {
        (value / most * BAR_WIDTH).max(1.0)
    } else {
        0.0
    };
    html! {
        svg.bar.(what) width=(BAR_WIDTH) height=(BAR_HEIGHT) aria-hidden="true" focusable="false" {
            rect width=(format!("{width:.1}")) height=(BAR_HEIGHT) rx="2" {}
        }
    }
}

/// What each variant changes.
fn changes(report: &Report) -> Markup {
    html! {
        @for variant in report.variants.iter().filter(|variant| !variant.diff.is_empty()) {
            details {
                summary { h2 { (variant.rewrites) } }
                @for created in &variant.creates {
                    p { "Adds " code { (created) } "." }
                }
                pre.diff tabindex="0" aria-label={ "Changes of " (variant.rewrites) } {
                    @for line in variant.diff.lines() {
                        span.(class(line)) { (line) "\n" }
                    }
                }
            }
        }
    }
}

/// How a line of a diff is shown.
fn class(line: &str) -> &'static str {
    if line.starts_with("+++") || line.starts_with("---") {
        "file"
    } else {
        match line.as_bytes().first() {
            Some(b'+') => "added",
            Some(b'-') => "removed",
            Some(b'@') => "hunk",
            _ => "same",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::report::{Agreement, LeftOut, Machine, Variant};

    fn ran(ms: f64, launches: u64, agreement: Agreement) -> Outcome {
        Outcome::Ran(Box::new(Run {
            times_ms: vec![ms, ms],
            median_ms: ms,
            host_launches: 1,
            device_launches: Some(launches),
            errors: Vec::new(),
            agreement,
            kernels: Vec::new(),
        }))
    }

    #[test]
    fn nothing_of_the_program_becomes_markup() {
        let evil = "<script>alert('&')</script>\"";
        let report = Report {
            version: 1,
            file: evil.to_owned(),
            args: vec![evil.to_owned()],
            gpus: 1,
            machine: Machine {
                gpu: evil.to_owned(),
                ..Machine::default()
            },
            sites: Vec::new(),
            kernel: None,
            left_out: vec![LeftOut {
                path: evil.to_owned(),
                line: 1,
                reason: evil.to_owned(),
            }],
            original: ran(10.0, 100, Agreement::Original),
            deterministic: Some(true),
            variants: vec![
                Variant {
                    rewrites: evil.to_owned(),
                    assumptions: vec![evil.to_owned()],
                    diff: format!("--- a/{evil}\n+{evil}\n"),
                    creates: vec![evil.to_owned()],
                    outcome: ran(
                        0.5,
                        2,
                        Agreement::Agrees {
                            compared: 1,
                            unstable: 0,
                        },
                    ),
                },
                Variant {
                    rewrites: "coarsen".to_owned(),
                    assumptions: Vec::new(),
                    diff: String::new(),
                    creates: Vec::new(),
                    outcome: Outcome::Failed {
                        message: evil.to_owned(),
                        advice: Some(evil.to_owned()),
                    },
                },
            ],
        };
        let page = page(&report);
        assert!(!page.contains("<script") && page.contains("&lt;script"), "{page}");
        for outside in ["http://", "https://", "src=", "href=", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
        for part in [
            "20.0×",
            "<caption>",
            "scope=\"row\"",
            "class=\"added\"",
            "prefers-color-scheme",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        // The bars: the original's time is the longest, its speedup a twentieth.
        assert!(
            page.contains("width=\"120.0\"") && page.contains("width=\"6.0\""),
            "{page}"
        );
    }
}
