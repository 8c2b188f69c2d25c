//! `gpu-scale`: measures rewritten programs on inputs that grow, beside peers. See `--help`.

use std::process::ExitCode;

use clap::Parser;
use gridfuse_tests::gpu::scale::measure::{self, Options};

fn main() -> ExitCode {
    match measure::run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("gpu-scale: {error:#}");
            ExitCode::from(2)
        }
    }
}
