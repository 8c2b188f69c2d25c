//! A measurement as a page in Markdown.

use super::kernels::{self, EXPLANATION};
use super::phrases::{about, capital, milliseconds, notes, result, speedup, times, tried};
use super::report::{Outcome, Report};

pub use super::phrases::summary;

/// The page.
pub fn page(report: &Report) -> String {
    let mut out = format!(
        "# {}\n\n{}.\n\n",
        inline(&report.file),
        inline(&capital(&summary(report)))
    );
    out.push_str("| program | GPU time, ms | least … most | speedup | device-side launches | result |\n");
    out.push_str("|---|---:|---:|---:|---:|---|\n");
    out.push_str(&row("original", &report.original, report));
    for variant in tried(report) {
        out.push_str(&row(&variant.rewrites, &variant.outcome, report));
    }
    out.push_str(&format!("\n{}.\n", inline(&about(report))));
    if !report.args.is_empty() {
        out.push_str(&format!("\nArguments: `{}`\n", report.args.join(" ").replace('`', "'")));
    }
    let kernels = kernels::of_report(report);
    if !kernels.is_empty() {
        out.push_str(&format!("\n{}:\n\n", capital(&format!("kernels: {EXPLANATION}"))));
    }
    for line in kernels {
        out.push_str(&format!("- {}\n", inline(&line)));
    }
    let notes = notes(report);
    if !notes.is_empty() {
        out.push('\n');
    }
    for note in notes {
        out.push_str(&format!("- {}\n", inline(&note)));
    }
    for variant in &report.variants {
        if variant.diff.is_empty() {
            continue;
        }
        out.push_str(&format!("\n## {}\n\n", inline(&variant.rewrites)));
        for created in &variant.creates {
            out.push_str(&format!("Adds `{created}`.\n\n"));
        }
        let fence = "`".repeat(longest_run(&variant.diff, '`').max(2) + 1);
        out.push_str(&format!("{fence}diff\n{}\n{fence}\n", variant.diff.trim_end()));
    }
    out
}

fn row(name: &str, outcome: &Outcome, report: &Report) -> String {
    let none = || "–".to_owned();
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
    let speedup = match name {
        "original" => none(),
        _ => speedup(report, outcome).map_or_else(none, times),
    };
    let result = inline(result(outcome, report).trim());
    format!(
        "| {} | {time} | {spread} | {speedup} | {launches} | {result} |\n",
        inline(name)
    )
}

/// Text that means itself, on one line.
fn inline(text: &str) -> String {
    let mut out = String::new();
    // Between backquotes characters mean themselves.
    let balanced = text.matches('`').count().is_multiple_of(2);
    let mut code = false;
    for c in text.trim().chars() {
        match c {
            '\n' if out.ends_with(':') => out.push(' '),
            '\n' => out.push_str("; "),
            '`' if balanced => {
                code = !code;
                out.push(c);
            }
            '|' => out.push_str("\\|"),
            other if code => out.push(other),
            '\\' | '*' | '_' | '[' | ']' | '<' | '#' | '`' => {
                out.push('\\');
                out.push(c);
            }
            other => out.push(other),
        }
    }
    out
}

/// Length of the longest run of a character.
fn longest_run(text: &str, wanted: char) -> usize {
    text.split(|c| c != wanted).map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_means_itself() {
        assert_eq!(inline("a_b | <c>\nd"), "a\\_b \\| \\<c>; d");
        assert_eq!(longest_run("a``b```c`", '`'), 3);
        assert_eq!(inline("so:\n`a_b|<c>` `d_e"), "so: \\`a\\_b\\|\\<c>\\` \\`d\\_e");
        assert_eq!(inline("`a_b|<c>` d_e"), "`a_b\\|<c>` d\\_e");
    }
}
