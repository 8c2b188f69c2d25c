//! What a measurement was made on.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::process;

/// The machine behind a measurement; fields that could not be found out are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The GPU, such as `NVIDIA H200`.
    pub gpu: Option<String>,
    /// Its memory.
    pub gpu_memory: Option<String>,
    /// The driver's version.
    pub driver: Option<String>,
    /// The compiler's version, such as `13.0.88`.
    pub cuda: Option<String>,
    /// The host's processor.
    pub cpu: Option<String>,
    /// How many of its cores the measurement could use.
    pub cores: Option<usize>,
}

impl Machine {
    /// Asks the machine.
    pub fn detect(nvcc: &Path) -> Machine {
        let mut machine = Machine {
            cuda: ask(nvcc, &["--version"]).and_then(|text| cuda_version(&text)),
            cpu: std::fs::read_to_string("/proc/cpuinfo")
                .ok()
                .and_then(|text| cpu_model(&text)),
            cores: std::thread::available_parallelism().ok().map(usize::from),
            ..Machine::default()
        };
        let query = ["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"];
        // The first GPU is the one that programs use.
        if let Some(text) = ask(Path::new("nvidia-smi"), &query)
            && let Some(line) = text.lines().next()
        {
            let mut fields = line.split(',').map(|field| Some(field.trim().to_owned()));
            machine.gpu = fields.next().flatten();
            machine.gpu_memory = fields.next().flatten();
            machine.driver = fields.next().flatten();
        }
        machine
    }
}

fn ask(program: &Path, args: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(args);
    let finished = process::run(&mut command, Duration::from_secs(60)).ok()?;
    finished.success().then_some(finished.stdout)
}

fn cuda_version(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("release ")?;
    let line = rest.lines().next()?;
    let version = match line.split_once(", V") {
        Some((_, version)) => version,
        None => line,
    };
    Some(version.trim().to_owned())
}

fn cpu_model(text: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == "model name")
        .map(|(_, model)| model.trim().to_owned())
}

/// Finds nvcc: the given one, `GRIDFUSE_TEST_NVCC`, on the `PATH`, in `CUDA_HOME`, at the usual place.
pub fn find_nvcc(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(given) = given {
        if !given.is_file() {
            bail!("{} is not a file", given.display());
        }
        return Ok(given.to_path_buf());
    }
    if let Some(configured) = std::env::var_os("GRIDFUSE_TEST_NVCC") {
        return find_nvcc(Some(Path::new(&configured)));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("bin"));
    std::env::split_paths(&path)
        .chain(home)
        .chain([PathBuf::from("/usr/local/cuda/bin")])
        .map(|directory| directory.join("nvcc"))
        .find(|nvcc| nvcc.is_file())
        .ok_or_else(|| anyhow::anyhow!("there is no nvcc on the PATH; give --nvcc or set GRIDFUSE_TEST_NVCC"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_names_are_found() {
        let nvcc = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88\nBuild x\n";
        assert_eq!(cuda_version(nvcc).as_deref(), Some("13.0.88"));
        assert_eq!(cuda_version("other"), None);
        let cpu = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: Other\n";
        assert_eq!(cpu_model(cpu).as_deref(), Some("Some CPU @ 2 GHz"));
    }
}
