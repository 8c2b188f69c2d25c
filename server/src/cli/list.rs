//! `gridfuse list`: all diagnostics and rewrites, and what rewrites may take for granted.

use std::collections::BTreeSet;
use std::io::{self, Write};

use clap::Args;
use gridfuse_analysis::base::closest::closest;
use gridfuse_analysis::diagnostics::KINDS;
use gridfuse_codeactions::api::assumption::ASSUMPTIONS;
use gridfuse_codeactions::api::rewrite::Rewrite;
use gridfuse_codeactions::handlers::REWRITES;

use super::fitted_table::known_width;
use super::output::json;
use super::wrapped::hanging;
use super::{CLEAN, CliError, CliResult, Format};
use crate::schema::{self, ListReport, ListedAssumption, ListedDiagnostic, ListedOption, ListedRewrite};

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Diagnostics, rewrites and assumptions to print the complete page of; without any, all of them with a line each
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Print the complete pages of all
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Form of the output; JSON always has the complete pages
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

fn report() -> ListReport {
    ListReport {
        schema: schema::VERSION,
        version: env!("CARGO_PKG_VERSION"),
        diagnostics: KINDS
            .iter()
            .map(|kind| ListedDiagnostic {
                id: kind.id,
                severity: kind.severity,
                doc: kind.doc,
            })
            .collect(),
        rewrites: REWRITES.iter().map(listed).collect(),
        assumptions: ASSUMPTIONS
            .iter()
            .map(|kind| ListedAssumption {
                id: kind.id(),
                title: kind.title(),
                doc: kind.doc(),
            })
            .collect(),
    }
}

fn listed(rewrite: &Rewrite) -> ListedRewrite {
    let options = rewrite.options.iter().map(|option| ListedOption {
        name: option.name,
        default: option.default,
        doc: option.doc,
    });
    ListedRewrite {
        id: rewrite.id,
        at: rewrite.target.name(),
        title: rewrite.title,
        doc: rewrite.doc,
        options: options.collect(),
    }
}

/// The report about some of the diagnostics, rewrites and assumptions.
fn only(ids: &[String], mut report: ListReport) -> Result<ListReport, CliError> {
    let diagnostics = report.diagnostics.iter().map(|kind| kind.id);
    let rewrites = report.rewrites.iter().map(|rewrite| rewrite.id);
    let assumptions = report.assumptions.iter().map(|kind| kind.id);
    let known: BTreeSet<&str> = diagnostics.chain(rewrites).chain(assumptions).collect();
    if let Some(id) = ids.iter().find(|id| !known.contains(id.as_str())) {
        let text = match closest(id, known.iter().copied()) {
            Some(meant) => format!("no diagnostic, rewrite or assumption is called `{id}`; did you mean `{meant}`?"),
            None => format!("no diagnostic, rewrite or assumption is called `{id}`; `gridfuse list` names them"),
        };
        return Err(text.into());
    }
    let named = |id: &str| ids.iter().any(|named| named == id);
    report.diagnostics.retain(|kind| named(kind.id));
    report.rewrites.retain(|rewrite| named(rewrite.id));
    report.assumptions.retain(|kind| named(kind.id));
    Ok(report)
}

/// Runs `list`.
pub fn run(args: &ListArgs, out: &mut dyn Write) -> CliResult {
    let mut report = report();
    if !args.ids.is_empty() {
        report = only(&args.ids, report)?;
    }
    match args.format {
        Format::Json => json(out, &report)?,
        Format::Text if args.all || !args.ids.is_empty() => pages(&report, out)?,
        Format::Text => overview(&report, out)?,
    }
    Ok(CLEAN)
}

/// A line for each.
fn overview(report: &ListReport, out: &mut dyn Write) -> io::Result<()> {
    let diagnostics = report.diagnostics.iter().map(|kind| {
        let severity = format!("{:?}", kind.severity).to_lowercase();
        [kind.id.to_owned(), severity, first_sentence(kind.doc)]
    });
    writeln!(out, "Diagnostics\n{}", columns(&diagnostics.collect::<Vec<_>>()))?;
    let groups = [
        ("launch", "Rewrites of a launch by device code"),
        ("place", "Rewrites of what stands at a place"),
    ];
    for (at, heading) in groups {
        let rewrites = report
            .rewrites
            .iter()
            .filter(|rewrite| rewrite.at == at)
            .map(|rewrite| {
                let options = rewrite.options.iter();
                let options: Vec<String> = options.map(|o| format!("--set {}={}", o.name, o.default)).collect();
                [rewrite.id.to_owned(), rewrite.title.to_owned(), options.join(" ")]
            });
        writeln!(out, "{heading}\n{}", columns(&rewrites.collect::<Vec<_>>()))?;
    }
    writeln!(
        out,
        "`gridfuse list ID` prints one page, `gridfuse list --all` all of them.\nEach assumption has a page too: `explain` names it."
    )
}

/// A last column that has less room than this stands below the others.
const LEAST_ROOM: usize = 32;

/// Columns without lines between them, as wide as what is in them; the last one is continued below itself where the terminal is narrower.
fn columns(rows: &[[String; 3]]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or_default()
    };
    let (first, second) = (width(0), width(1));
    let has_room = known_width().is_none_or(|width| first + second + LEAST_ROOM <= width);
    let mut out = String::new();
    for [id, what, last] in rows {
        let begins = match has_room || last.is_empty() {
            true => format!(" {id:<first$}  {what:<second$}  "),
            false => {
                out.push_str(&format!(" {id:<first$}  {what}\n"));
                " ".repeat(first + 3)
            }
        };
        out.push_str(hanging(&begins, last).trim_end());
        out.push('\n');
    }
    out
}

/// On one line, without its full stop.
fn first_sentence(doc: &str) -> String {
    let paragraph = doc.trim().split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let sentence = paragraph.split(". ").next().unwrap_or_default();
    sentence.trim_end_matches('.').to_string()
}

fn pages(report: &ListReport, out: &mut dyn Write) -> io::Result<()> {
    if !report.diagnostics.is_empty() {
        writeln!(out, "# Diagnostics\n")?;
    }
    for kind in &report.diagnostics {
        let severity = format!("{:?}", kind.severity).to_lowercase();
        writeln!(out, "## {} ({severity})\n\n{}\n", kind.id, nested(kind.doc))?;
    }
    if !report.rewrites.is_empty() {
        writeln!(out, "# Rewrites\n")?;
    }
    for rewrite in &report.rewrites {
        writeln!(out, "## {}: {}\n\n{}\n", rewrite.id, rewrite.title, nested(rewrite.doc))?;
        for option in &rewrite.options {
            writeln!(out, "- `--set {}={}`: {}", option.name, option.default, option.doc)?;
        }
        if !rewrite.options.is_empty() {
            writeln!(out)?;
        }
    }
    if !report.assumptions.is_empty() {
        writeln!(out, "# Assumptions\n")?;
    }
    for kind in &report.assumptions {
        writeln!(out, "## {}: {}\n\n{}\n", kind.id, kind.title, nested(kind.doc))?;
    }
    Ok(())
}

/// The same Markdown one heading deeper, leaving code blocks (where `#include` stands) alone.
fn nested(markdown: &str) -> String {
    let mut code = false;
    let lines: Vec<String> = markdown
        .trim()
        .lines()
        .map(|line| {
            code ^= line.trim_start().starts_with("```");
            let heading = !code && line.starts_with('#') && line.trim_start_matches('#').starts_with(' ');
            if heading { format!("#{line}") } else { line.to_string() }
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_first_sentence_on_one_line() {
        let first = super::first_sentence;
        assert_eq!(
            first("Many child\ngrids. Each of them.\n\n## More. \n"),
            "Many child grids"
        );
        assert_eq!(first("`a.b` is read."), "`a.b` is read");
        assert_eq!(first(""), "");
    }

    #[test]
    fn headings_go_one_deeper_outside_of_code() {
        let text = "## A\n```cuda\n# include <x>\n```\n#include\n# B";
        assert_eq!(
            super::nested(text),
            "### A\n```cuda\n# include <x>\n```\n#include\n## B"
        );
    }
}
