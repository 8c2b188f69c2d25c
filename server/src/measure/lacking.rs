//! What this machine lacks for measuring, as far as can be seen without starting a program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{nvcc, probe};

/// Something without which nothing can be measured here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    /// CUDA's compiler.
    Nvcc,
    /// An NVIDIA GPU with its driver.
    Gpu,
}

/// Files by which a GPU's driver shows itself: on a PC, under Windows' Linux, on a Jetson.
const DRIVERS: [&str; 7] = [
    "/proc/driver/nvidia/version",
    "/dev/nvidiactl",
    "/usr/lib/wsl/lib/nvidia-smi",
    "/dev/nvhost-gpu",
    "/dev/nvgpu",
    "/dev/nvmap",
    r"C:\Windows\System32\nvidia-smi.exe",
];

impl Lacking {
    /// The first thing that isn't there; `None`: it may well be possible to measure.
    pub fn here(variable: &dyn Fn(&str) -> Option<OsString>, is_there: &dyn Fn(&Path) -> bool) -> Option<Lacking> {
        let smi = if cfg!(windows) { "nvidia-smi.exe" } else { "nvidia-smi" };
        let path = variable("PATH").unwrap_or_default();
        let mut drivers = std::env::split_paths(&path)
            .map(|directory| directory.join(smi))
            .chain(DRIVERS.iter().map(PathBuf::from));
        if !nvcc::is_there(variable, is_there) {
            return Some(Lacking::Nvcc);
        }
        (!drivers.any(|file| is_there(&file))).then_some(Lacking::Gpu)
    }

    /// What a measurement has failed for, by its message.
    pub fn of_message(message: &str) -> Option<Lacking> {
        if message.contains(nvcc::NOT_FOUND) {
            return Some(Lacking::Nvcc);
        }
        message.contains(probe::NO_GPU).then_some(Lacking::Gpu)
    }

    /// A message of a failed measurement that names options of the command line, which editors don't have.
    pub fn is_said_for_the_command_line(message: &str) -> bool {
        message.contains(" --")
    }

    /// For programs.
    pub fn name(self) -> &'static str {
        match self {
            Lacking::Nvcc => "nvcc",
            Lacking::Gpu => "gpu",
        }
    }

    /// Behind a title: `no GPU here`.
    pub fn short(self) -> &'static str {
        match self {
            Lacking::Nvcc => "no nvcc here",
            Lacking::Gpu => "no GPU here",
        }
    }

    /// What is missing, and what to do, in an editor.
    pub fn advice(self) -> &'static str {
        match self {
            Lacking::Nvcc => {
                "There is no nvcc on this machine. Install the CUDA toolkit, 12 or newer, and put nvcc on the PATH; or measure on a \
                 machine that has it and a GPU: write `runner = \"ssh HOST\"` below [measure] in gridfuse.toml."
            }
            Lacking::Gpu => {
                "There is no NVIDIA GPU on this machine, or no driver for it. Install NVIDIA's driver where a GPU is; or measure on a \
                 machine that has one: write `runner = \"ssh HOST\"` below [measure] in gridfuse.toml."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_seen() {
        let variable = |name: &str| (name == "PATH").then(|| OsString::from("/bin:/cuda/bin"));
        let nvcc = if cfg!(windows) { "nvcc.exe" } else { "nvcc" };
        let here = |files: &[&str]| {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            Lacking::here(&variable, &|path| files.iter().any(|file| file == path))
        };
        if cfg!(windows) {
            return;
        }
        let nvcc = format!("/cuda/bin/{nvcc}");
        assert_eq!(here(&[]), Some(Lacking::Nvcc));
        assert_eq!(here(&["/dev/nvidiactl"]), Some(Lacking::Nvcc));
        assert_eq!(here(&[&nvcc]), Some(Lacking::Gpu));
        assert_eq!(here(&["/usr/local/cuda/bin/nvcc", "/bin/nvidia-smi"]), None);
        for driver in &DRIVERS[..6] {
            assert_eq!(here(&[&nvcc, driver]), None, "{driver}");
        }
    }

    #[test]
    fn an_editor_is_told_nothing_of_the_command_line() {
        for lacking in [Lacking::Nvcc, Lacking::Gpu] {
            let advice = lacking.advice();
            assert!(
                advice.contains("runner = \"ssh HOST\"") && !advice.contains(" --"),
                "{advice}"
            );
        }
        let missing = nvcc::find_by(&|_| None);
        if let Err(message) = missing {
            assert_eq!(Lacking::of_message(&message), Some(Lacking::Nvcc));
        }
        assert_eq!(Lacking::of_message("the program hangs"), None);
    }
}
