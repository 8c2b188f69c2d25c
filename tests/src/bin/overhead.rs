//! `overhead`: makes `docs/overhead.md` with a CUDA compiler; no GPU is needed. `overhead compile-time` makes `docs/compile-time.md`.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use gridfuse_tests::nvcc::Nvcc;
use gridfuse_tests::{compile_time, overhead, workspace};

fn main() -> Result<ExitCode> {
    let nvcc = Nvcc::try_get().map_err(anyhow::Error::msg)?;
    let (name, page) = match std::env::args().nth(1).as_deref() {
        None => ("overhead.md", overhead::page(nvcc)?),
        Some("compile-time") => ("compile-time.md", compile_time::page(nvcc)?),
        Some(other) => bail!("`{other}`: the only argument that there is, is `compile-time`"),
    };
    let path = workspace::root().join("docs").join(name);
    std::fs::write(&path, page).with_context(|| format!("{} cannot be written", path.display()))?;
    println!("{}", path.display());
    Ok(ExitCode::SUCCESS)
}
