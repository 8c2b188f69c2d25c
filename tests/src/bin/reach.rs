//! Counts what is offered for the programs of `tests/reach`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use gridfuse_tests::reach;

/// Count what is offered for the launch sites of tests/reach, and compare it with what was recorded
#[derive(Debug, Parser)]
struct Args {
    /// Write the numbers down
    #[arg(long)]
    record: bool,
    /// Print for each launch of a half what is offered, and why the others aren't
    #[arg(long, value_name = "HALF")]
    details: Option<String>,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if let Some(half) = &args.details {
        for launch in reach::launches(half) {
            println!("{}:{}: {}", launch.file, launch.at, launch.offered().join(" "));
            for id in [
                "aggregate-block",
                "threshold",
                "aggregate-grid-stream",
                "flatten-recursion",
                "persistent-loop",
            ] {
                for reason in launch.reasons(id) {
                    println!("    {id}: {reason}");
                }
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let now = reach::count();
    println!("{}", serde_json::to_string_pretty(&now)?);
    if args.record {
        let text = format!("{}\n", serde_json::to_string_pretty(&now)?);
        std::fs::write(reach::record_file(), text).context("the record can't be written")?;
        return Ok(ExitCode::SUCCESS);
    }
    let fallen = reach::fallen(&reach::recorded().map_err(anyhow::Error::msg)?, &now);
    for line in &fallen {
        eprintln!("{line}");
    }
    Ok(if fallen.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
