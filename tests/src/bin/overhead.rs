//! `overhead`: makes `docs/overhead.md` with a CUDA compiler; no GPU is needed.

use std::process::ExitCode;

use anyhow::{Context, Result};
use gridfuse_tests::nvcc::Nvcc;
use gridfuse_tests::{overhead, workspace};

fn main() -> Result<ExitCode> {
    let nvcc = Nvcc::try_get().map_err(anyhow::Error::msg)?;
    let page = overhead::page(nvcc)?;
    let path = workspace::root().join("docs/overhead.md");
    std::fs::write(&path, page).with_context(|| format!("{} cannot be written", path.display()))?;
    println!("{}", path.display());
    Ok(ExitCode::SUCCESS)
}
