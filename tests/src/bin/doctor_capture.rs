//! Writes down what `gridfuse doctor` says on a machine, for the page of `docs/`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use gridfuse_tests::doctor_captures::{MACHINES, capture, path};

/// Run `gridfuse doctor` on a machine that has this much of what this one has, and write tests/doctor/NAME.txt
#[derive(Debug, Parser)]
struct Args {
    /// nothing, nvcc or gpu
    name: String,
    /// Write into this directory instead
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let machine = MACHINES.iter().find(|machine| machine.name == args.name);
    let machine = machine.context("the machines are nothing, nvcc and gpu")?;
    let said = capture(machine)?;
    let mut file = path(machine);
    if let Some(directory) = args.output {
        file = directory.join(format!("{}.txt", machine.name));
    }
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(&file, &said)?;
    print!("{said}");
    Ok(())
}
