//! Installs the packages that `.ci/package` has made, each in an empty directory, and writes down how that went.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use gridfuse_tests::installing::{record, routes};

/// Install each package in an empty directory, look at a program with it, and write tests/install/record.json
#[derive(Debug, Parser)]
struct Args {
    /// Where the packages are
    packages: PathBuf,
    /// Only these routes: tar, pip, npx, dpkg, cargo
    routes: Vec<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let made = args.packages.canonicalize()?;
    let record = routes::try_them(&made, &args.routes)?;
    record.write().map_err(anyhow::Error::msg)?;
    println!("written: {}", record::path().display());
    Ok(())
}
