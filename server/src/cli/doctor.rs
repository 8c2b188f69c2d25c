//! `gridfuse doctor`: what is there to build and measure programs with, and how to get what is missing.

use std::io::{self, Write};

use clap::Args;

use super::output::json;
use super::wrapped::{hanging, wrapped};
use super::{CLEAN, CliError, CliResult, FINDINGS, Format};
use crate::doctor::{Surroundings, examine};
use crate::schema::{CheckStatus, DoctorReport};

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Form of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs `doctor`.
pub fn run(args: &DoctorArgs, out: &mut dyn Write) -> CliResult {
    let directory = std::env::current_dir().and_then(|here| here.canonicalize());
    let directory = directory.map_err(|error| format!("cannot look into the current directory: {error}"))?;
    let scratch = tempfile::tempdir().map_err(|error| format!("cannot create a temporary directory: {error}"))?;
    let report = examine(&Surroundings {
        directory,
        variable: &|name| std::env::var_os(name).filter(|value| !value.is_empty()),
        scratch: scratch.path().to_path_buf(),
    });
    match args.format {
        Format::Json => json(out, &report)?,
        Format::Text => text(&report, out).map_err(CliError::Output)?,
    }
    let elsewhere = report.runner.is_some();
    Ok(if report.measures || elsewhere { CLEAN } else { FINDINGS })
}

fn text(report: &DoctorReport, out: &mut dyn Write) -> io::Result<()> {
    let measuring = match (report.measures, &report.runner) {
        (_, Some(runner)) => {
            format!("measuring goes through `{runner}`, which was not called: what is missing here may be there")
        }
        (true, None) => "measuring does, too".to_owned(),
        (false, None) => format!("measuring lacks: {}", report.missing.join(", ")),
    };
    let version = report.version;
    let headline = format!("gridfuse {version}: checking and rewriting work; {measuring}");
    writeln!(out, "{}", wrapped(&headline).trim_end())?;
    writeln!(out)?;
    let width = report
        .checks
        .iter()
        .map(|check| check.name.len())
        .max()
        .unwrap_or_default();
    for check in &report.checks {
        let status = match check.status {
            CheckStatus::Ok => "ok",
            CheckStatus::Note => "note",
            CheckStatus::Missing => "missing",
        };
        let begins = format!("  {status:<7}  {:<width$}  ", check.name);
        writeln!(out, "{}", hanging(&begins, &check.found))?;
        if let Some(help) = &check.help {
            let begins = format!("           {:<width$}  -> ", "");
            writeln!(out, "{}", hanging(&begins, help))?;
        }
    }
    Ok(())
}
