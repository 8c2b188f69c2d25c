//! `gridfuse list`: all diagnostics and rewrites.

use std::io::Write;

use clap::Args;
use gridfuse_analysis::diagnostics::KINDS;
use gridfuse_codeactions::fixes::FIXES;
use gridfuse_codeactions::handlers::REWRITES;
use gridfuse_codeactions::rewrite::OptionSpec;

use super::output::json;
use super::{CLEAN, CliResult, Format};
use crate::schema::{self, ListReport, ListedDiagnostic, ListedOption, ListedRewrite};

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Form of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

fn report() -> ListReport {
    let rewrites = REWRITES
        .iter()
        .map(|r| listed(r.id, "launch", r.title, r.doc, r.options));
    let fixes = FIXES.iter().map(|f| listed(f.id, "place", f.title, f.doc, f.options));
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
        rewrites: rewrites.chain(fixes).collect(),
    }
}

fn listed(
    id: &'static str,
    at: &'static str,
    title: &'static str,
    doc: &'static str,
    options: &'static [OptionSpec],
) -> ListedRewrite {
    let options = options.iter().map(|option| ListedOption {
        name: option.name,
        default: option.default,
        doc: option.doc,
    });
    ListedRewrite {
        id,
        at,
        title,
        doc,
        options: options.collect(),
    }
}

/// Runs `list`.
pub fn run(args: &ListArgs, out: &mut dyn Write) -> CliResult {
    let report = report();
    if args.format == Format::Json {
        json(out, &report)?;
        return Ok(CLEAN);
    }
    writeln!(out, "# Diagnostics\n")?;
    for kind in &report.diagnostics {
        let severity = format!("{:?}", kind.severity).to_lowercase();
        writeln!(out, "## {} ({severity})\n\n{}\n", kind.id, nested(kind.doc))?;
    }
    writeln!(out, "# Rewrites\n")?;
    for rewrite in &report.rewrites {
        writeln!(out, "## {}: {}\n\n{}\n", rewrite.id, rewrite.title, nested(rewrite.doc))?;
        for option in &rewrite.options {
            writeln!(out, "- `--set {}={}`: {}", option.name, option.default, option.doc)?;
        }
        if !rewrite.options.is_empty() {
            writeln!(out)?;
        }
    }
    Ok(CLEAN)
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
    fn headings_go_one_deeper_outside_of_code() {
        let text = "## A\n```cuda\n# include <x>\n```\n#include\n# B";
        assert_eq!(
            super::nested(text),
            "### A\n```cuda\n# include <x>\n```\n#include\n## B"
        );
    }
}
