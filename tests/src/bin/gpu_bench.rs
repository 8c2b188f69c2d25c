//! `gpu-bench`: measures the corpus on a GPU. See `--help` and `tests/gpu/plan.toml`.

use std::process::ExitCode;

use clap::Parser;
use gridfuse_tests::gpu::bench::{self, Options};

fn main() -> ExitCode {
    match bench::run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("gpu-bench: {error:#}");
            ExitCode::from(2)
        }
    }
}
