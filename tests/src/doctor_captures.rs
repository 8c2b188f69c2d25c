//! What `gridfuse doctor` says on three machines, as recorded in `tests/doctor`, and the page of `docs/` with it.
//!
//! A machine is made of links to the programs that there are here: `/usr/bin` and `/usr/local/cuda` below a temporary directory, which is then
//! left out of what is printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cli::{Directory, state_home};
use crate::docs::NOTE;
use crate::nvcc::Nvcc;
use crate::workspace;

/// Name of the page.
pub const NAME: &str = "doctor.md";

/// Columns of the terminal.
const COLUMNS: &str = "100";

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its name on the command line, and of its record.
    pub name: &'static str,
    title: &'static str,
    has_nvcc: bool,
    has_gpu: bool,
}

/// The machines of the page.
pub const MACHINES: [Machine; 3] = [
    Machine {
        name: "nothing",
        title: "Nothing is installed",
        has_nvcc: false,
        has_gpu: false,
    },
    Machine {
        name: "nvcc",
        title: "With a compiler, without a GPU",
        has_nvcc: true,
        has_gpu: false,
    },
    Machine {
        name: "gpu",
        title: "With a compiler and a GPU",
        has_nvcc: true,
        has_gpu: true,
    },
];

/// Where the record of a machine is.
pub fn path(machine: &Machine) -> PathBuf {
    workspace::root()
        .join("tests/doctor")
        .join(format!("{}.txt", machine.name))
}

/// What this machine has that isn't hidden by a `PATH`.
pub fn has_what_cannot_be_hidden() -> bool {
    [
        "/usr/local/cuda/bin/nvcc",
        "/opt/cuda/bin/nvcc",
        "/proc/driver/nvidia",
        "/usr/lib/wsl/lib/nvidia-smi",
    ]
    .iter()
    .any(|path| Path::new(path).exists())
}

/// Runs `gridfuse doctor` on a machine.
#[cfg(unix)]
pub fn capture(machine: &Machine) -> Result<String> {
    use std::os::unix::fs::symlink;
    ensure!(
        machine.has_gpu || !has_what_cannot_be_hidden(),
        "this machine has CUDA or a driver in the usual place, which `{}` must not see",
        machine.name
    );
    let disk = Directory::new();
    for directory in ["usr/bin", "usr/local", "project/.git"] {
        fs::create_dir_all(disk.file(directory))?;
    }
    let mut programs = Vec::new();
    let mut root = None;
    if machine.has_nvcc {
        let toolkit = Nvcc::get().root().canonicalize()?;
        symlink(&toolkit, disk.file("usr/local/cuda"))?;
        root = Some(toolkit);
        programs.push("g++");
    }
    if machine.has_gpu {
        programs.push("nvidia-smi");
    }
    for name in programs {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&path)
            .map(|directory| directory.join(name))
            .find(|program| program.is_file());
        symlink(
            program.with_context(|| format!("{name} is not on the PATH"))?,
            disk.file("usr/bin").join(name),
        )?;
    }
    let output = Command::new(workspace::gridfuse_bin())
        .arg("doctor")
        .current_dir(disk.file("project"))
        .env("PATH", disk.file("usr/bin"))
        .env("CUDA_HOME", disk.file("usr/local/cuda"))
        .env("COLUMNS", COLUMNS)
        .env("XDG_STATE_HOME", state_home())
        .env_remove("CUDA_PATH")
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("NVCC_CCBIN")
        .env_remove("CUDA_VISIBLE_DEVICES")
        .stdin(Stdio::null())
        .output()?;
    let works = output.status.success();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        works == machine.has_gpu,
        "this is not what a machine with `{}` says:\n{said}",
        machine.name
    );
    let mut said = said;
    // The links lead to it.
    if let Some(root) = root {
        said = said.replace(&root.display().to_string(), "/usr/local/cuda");
    }
    Ok(said.replace(&disk.path().display().to_string(), ""))
}

/// Makes the page of the records that there are.
pub fn page() -> String {
    let mut page = format!(
        "{NOTE}\n\n# What doctor says\n\n`gridfuse doctor` says what is there to measure with, what is missing, and how to get it. It runs \
         nothing of your project. Checking and rewriting need none of it.\n"
    );
    for machine in &MACHINES {
        if let Ok(said) = fs::read_to_string(path(machine)) {
            page += &format!("\n## {}\n\n```text\n{said}```\n", machine.title);
        }
    }
    page += "\nRecorded by `cargo run -p gridfuse-tests --bin doctor-capture -- NAME` in a terminal of 100 columns; paths are shown as those of a \
             usual installation.\n";
    page
}
