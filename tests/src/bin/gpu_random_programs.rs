//! `gpu-random-programs`: random programs and their rewrites on a GPU. See `--help`.

use std::process::ExitCode;

use clap::Parser;
use gridfuse_tests::gpu::random_programs::{self, Options};

fn main() -> ExitCode {
    match random_programs::run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("gpu-random-programs: {error:#}");
            ExitCode::from(2)
        }
    }
}
