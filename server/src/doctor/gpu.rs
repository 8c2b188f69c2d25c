//! The driver and the GPU.

use std::path::{Path, PathBuf};

use super::{Surroundings, missing, note, ok};
use crate::schema::Check;

const DRIVER: &str = "driver";
const GPU: &str = "GPU";

/// The oldest driver for CUDA 12.
const OLDEST_DRIVER: u32 = 525;

/// Where the kernel's module says that it's loaded.
const MODULE: &str = "/proc/driver/nvidia/version";

/// Under Windows' Linux, nvidia-smi may not be on the `PATH`.
const OF_WSL: &str = "/usr/lib/wsl/lib/nvidia-smi";

const INSTALL: &str =
    "install NVIDIA's driver, 525 or newer (https://www.nvidia.com/drivers); start a container with `--gpus all`";

const ELSEWHERE: &str = "measure where one is: `runner = \"ssh HOST\"` below [measure] in gridfuse.toml, or --runner \"ssh HOST\"; nothing has \
                         to be installed there but the CUDA toolkit";

/// What there is to run programs on.
pub fn checks(surroundings: &Surroundings<'_>) -> Vec<Check> {
    let name = if cfg!(windows) { "nvidia-smi.exe" } else { "nvidia-smi" };
    let wsl = Some(PathBuf::from(OF_WSL)).filter(|path| path.is_file());
    let Some(program) = surroundings.on_path(name).or(wsl) else {
        return match Path::new(MODULE).exists() {
            true => vec![
                note(DRIVER, "loaded", "nvidia-smi, which tells its version, was not found"),
                note(GPU, "not known", "`gridfuse measure` finds out"),
            ],
            false => vec![
                missing(DRIVER, "no NVIDIA driver was found", INSTALL),
                missing(GPU, "none without a driver", ELSEWHERE),
            ],
        };
    };
    if !surroundings.may_run(&program) {
        let found = format!("{} lies in the project, and is not asked", program.display());
        return vec![note(
            DRIVER,
            found,
            "put the system's own directories first on the PATH",
        )];
    }
    let query = ["--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"];
    let hidden = (surroundings.variable)("CUDA_VISIBLE_DEVICES");
    match surroundings.ask(&program, &query) {
        Err(error) => vec![
            missing(DRIVER, format!("nvidia-smi: {error}"), INSTALL),
            missing(GPU, "none without a driver", ELSEWHERE),
        ],
        Ok(said) => understand(
            &said,
            hidden.is_some_and(|devices| devices.to_string_lossy().trim() == "-1"),
        ),
    }
}

/// What nvidia-smi prints: a line for each GPU.
fn understand(said: &str, hidden: bool) -> Vec<Check> {
    let lines = said.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(',').map(str::trim).collect();
        match words.as_slice() {
            [name, capability, driver] => Some((*name, *capability, *driver)),
            _ => None,
        }
    });
    let gpus: Vec<(&str, &str, &str)> = lines.collect();
    let Some((_, _, driver)) = gpus.first() else {
        return vec![ok(DRIVER, "loaded"), missing(GPU, "nvidia-smi lists no GPU", ELSEWHERE)];
    };
    let number = |text: &str| text.split('.').next().and_then(|major| major.parse::<u32>().ok());
    let driver = match number(driver) {
        Some(major) if major < OLDEST_DRIVER => {
            missing(DRIVER, format!("{driver} is too old: it knows no CUDA 12"), INSTALL)
        }
        _ => ok(DRIVER, (*driver).to_owned()),
    };
    let shown = |(name, capability, _): &(&str, &str, &str)| format!("{name} (compute capability {capability})");
    let fit: Vec<String> = gpus.iter().filter(|gpu| number(gpu.1) >= Some(7)).map(shown).collect();
    let gpu = match fit.as_slice() {
        _ if hidden => missing(
            GPU,
            "CUDA_VISIBLE_DEVICES hides all of them",
            "unset it, or name one there: CUDA_VISIBLE_DEVICES=0",
        ),
        [] => {
            let all: Vec<String> = gpus.iter().map(shown).collect();
            let found = format!("{}: measuring needs compute capability 7.0", all.join(", "));
            missing(GPU, found, ELSEWHERE)
        }
        [one] => ok(GPU, one.clone()),
        [first, _] => ok(GPU, format!("{first}, and 1 more GPU")),
        [first, rest @ ..] => ok(GPU, format!("{first}, and {} more GPUs", rest.len())),
    };
    vec![driver, gpu]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::CheckStatus;

    #[test]
    fn what_nvidia_smi_says() {
        use CheckStatus::{Missing, Ok};
        for (said, driver, gpu, part) in [
            ("NVIDIA H100 80GB HBM3, 9.0, 570.86.10\n", Ok, Ok, "NVIDIA H100"),
            (
                "NVIDIA H200, 9.0, 580.1\nNVIDIA H200, 9.0, 580.1\n",
                Ok,
                Ok,
                "and 1 more GPU",
            ),
            ("Tesla P100, 6.0, 535.1\n", Ok, Missing, "needs compute capability 7.0"),
            ("Tesla V100, 7.0, 470.1\n", Missing, Ok, "Tesla V100"),
            ("", Ok, Missing, "lists no GPU"),
            ("No devices were found\n", Ok, Missing, "lists no GPU"),
            ("NVIDIA GB300, 10.3, [N/A]\n", Ok, Ok, "10.3"),
        ] {
            let checks = understand(said, false);
            assert_eq!((checks[0].status, checks[1].status), (driver, gpu), "{said}");
            assert!(checks[1].found.contains(part), "{said}: {}", checks[1].found);
        }
        let hidden = understand("NVIDIA H200, 9.0, 580.1\n", true);
        assert_eq!(hidden[1].status, Missing);
    }
}
