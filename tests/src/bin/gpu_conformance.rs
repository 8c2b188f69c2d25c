//! `gpu-conformance`: records what the emulator's conformance programs print on a GPU. See `--help`.

use std::process::ExitCode;

use clap::Parser;
use gridfuse_tests::gpu::conformance::{self, Options};

fn main() -> ExitCode {
    match conformance::run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("gpu-conformance: {error:#}");
            ExitCode::from(2)
        }
    }
}
