//! Runs a program that was built for another platform, with an emulator, and writes down what it did.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use gridfuse_tests::installing::cross::{PLATFORMS, path, try_one, write};

/// Check, rewrite and serve with a program for another platform, and write tests/install/cross.json
#[derive(Debug, Parser)]
struct Args {
    /// x86_64-pc-windows-gnu or aarch64-unknown-linux-gnu
    target: String,
    /// The program
    program: PathBuf,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let platform = PLATFORMS.iter().find(|platform| platform.target == args.target);
    let platform = platform.with_context(|| format!("nothing here runs programs for {}", args.target))?;
    let program = args
        .program
        .canonicalize()
        .with_context(|| args.program.display().to_string())?;
    write(try_one(platform, &program)?)?;
    println!("written: {}", path().display());
    Ok(())
}
