//! `gpu-tables`: makes the tables of `docs/measurements.md` from `tests/gpu/results/*.json`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use gridfuse_tests::gpu::tables;

/// Makes the tables of docs/measurements.md from the results of gpu-bench.
#[derive(Debug, Parser)]
#[command(name = "gpu-tables", version)]
struct Options {
    /// Where the results are.
    #[arg(long, value_name = "DIR", default_value = "tests/gpu/results")]
    results: PathBuf,
    /// The document with the tables.
    #[arg(long, value_name = "FILE", default_value = "docs/measurements.md")]
    document: PathBuf,
    /// Change nothing, and fail if there is something to change.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match tables::generate(&options.results, &options.document, options.check) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gpu-tables: {error:#}");
            ExitCode::FAILURE
        }
    }
}
