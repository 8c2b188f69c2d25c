//! Writes the generated pages of `docs/`, or checks them.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::Parser;
use gridfuse_tests::{
    assumptions, docs, doctor_captures, examples, installing, newcomers, reach, screens, severities, tutorial,
    workspace,
};

/// Make docs/diagnostics, docs/rewrites, docs/assumptions.md and docs/README.md from what `gridfuse list` says, and docs/screens.md,
/// docs/tutorial.md and docs/examples from real runs, and the severities in editors/vscode/package.json
#[derive(Debug, Parser)]
struct Args {
    /// Change nothing; fail when a page is missing, stale or left over
    #[arg(long)]
    check: bool,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let output = Command::new(workspace::gridfuse_bin())
        .args(["list", "--format", "json"])
        .output()?;
    if !output.status.success() {
        bail!("gridfuse list failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let report = serde_json::from_slice(&output.stdout).context("gridfuse list printed no JSON")?;
    let mut pages = docs::pages(&report, &assumptions::recorded()).map_err(anyhow::Error::msg)?;
    pages.insert(reach::NAME.to_owned(), reach::page().map_err(anyhow::Error::msg)?);
    let record = installing::record::Record::read().map_err(anyhow::Error::msg)?;
    pages.insert(installing::page::NAME.to_owned(), installing::page::page(&record));
    pages.insert(doctor_captures::NAME.to_owned(), doctor_captures::page());
    pages.insert(screens::NAME.to_owned(), screens::page());
    pages.insert(tutorial::NAME.to_owned(), tutorial::page());
    pages.insert(newcomers::NAME.to_owned(), newcomers::page(&newcomers::rows()));
    pages.extend(examples::pages(&examples::all()));
    let directory = workspace::root().join("docs");
    let differences = docs::differences(&directory, &pages).context("docs cannot be read")?;
    if args.check && !differences.is_empty() {
        for difference in &differences {
            eprintln!("docs/{difference}");
        }
        eprintln!("run: cargo run -p gridfuse-tests --bin docs");
        return Ok(ExitCode::FAILURE);
    }
    if !args.check {
        docs::write(&directory, &pages).context("docs cannot be written")?;
        let manifest = workspace::root().join(severities::MANIFEST);
        let text = std::fs::read_to_string(&manifest).context(severities::MANIFEST)?;
        let text = severities::manifest(&report, &text).map_err(anyhow::Error::msg)?;
        std::fs::write(&manifest, text).context(severities::MANIFEST)?;
    }
    println!("{} pages, {} changed", pages.len(), differences.len());
    Ok(ExitCode::SUCCESS)
}
