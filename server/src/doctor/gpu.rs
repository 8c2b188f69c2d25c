//! The driver and the GPU.

use std::path::{Path, PathBuf};

use super::{Surroundings, missing, note, ok};
use crate::schema::{Check, Gpu};

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

/// What there is to run programs on; and the GPUs, where the driver tells of them itself.
pub fn checks(surroundings: &Surroundings<'_>) -> (Vec<Check>, Vec<Gpu>) {
    let hidden = (surroundings.variable)("CUDA_VISIBLE_DEVICES");
    let hidden = hidden.is_some_and(|devices| devices.to_string_lossy().trim() == "-1");
    #[cfg(unix)]
    let failure = match surroundings.may_load().then(super::driver::ask).flatten() {
        Some(Ok(driver)) => {
            let version = std::fs::read_to_string(MODULE).ok();
            let version = version.as_deref().and_then(of_module);
            return (told_by_driver(driver.cuda, version, &driver.gpus, hidden), driver.gpus);
        }
        Some(Err(failure)) => Some(failure),
        None => None,
    };
    #[cfg(not(unix))]
    let failure = None;
    (told_by_program(surroundings, failure, hidden), Vec::new())
}

/// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 …`
#[cfg(unix)]
fn of_module(said: &str) -> Option<&str> {
    let words = said.lines().next()?.split_whitespace();
    let is_version = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    words.into_iter().find(is_version)
}

/// What the driver's library says.
#[cfg(unix)]
fn told_by_driver(cuda: (u32, u32), version: Option<&str>, gpus: &[Gpu], hidden: bool) -> Vec<Check> {
    let (major, minor) = cuda;
    let version = version.map_or(String::new(), |version| format!("{version}, "));
    let driver = match major < 12 {
        true => missing(
            DRIVER,
            format!("{version}for CUDA {major}.{minor}, is too old: it knows no CUDA 12"),
            INSTALL,
        ),
        false => ok(DRIVER, format!("{version}for CUDA {major}.{minor} and older")),
    };
    let shown = gpus.iter().map(|gpu| {
        let Gpu {
            name,
            compute_capability,
            multiprocessors,
            memory_bytes,
        } = gpu;
        #[allow(clippy::cast_precision_loss, reason = "it is rounded anyway")]
        let memory = *memory_bytes as f64 / f64::from(1 << 30);
        let text = format!(
            "{name} (compute capability {compute_capability}, {multiprocessors} multiprocessors, {memory:.1} GiB)"
        );
        (text, number(compute_capability))
    });
    vec![
        driver,
        gpu(&shown.collect::<Vec<_>>(), hidden, "the driver sees no GPU"),
    ]
}

/// What nvidia-smi says, where the driver can't be asked.
fn told_by_program(surroundings: &Surroundings<'_>, failure: Option<String>, hidden: bool) -> Vec<Check> {
    let name = if cfg!(windows) { "nvidia-smi.exe" } else { "nvidia-smi" };
    let wsl = Some(PathBuf::from(OF_WSL)).filter(|path| path.is_file());
    let Some(program) = surroundings.on_path(name).or(wsl) else {
        return match (failure, Path::new(MODULE).exists()) {
            (Some(failure), _) => vec![
                missing(DRIVER, failure, INSTALL),
                missing(GPU, "none without a driver", ELSEWHERE),
            ],
            (None, true) => vec![
                note(DRIVER, "loaded", "nvidia-smi, which tells its version, was not found"),
                note(GPU, "not known", "`gridfuse measure` finds out"),
            ],
            (None, false) => vec![
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
    match surroundings.ask(&program, &query) {
        Err(error) => vec![
            missing(DRIVER, format!("nvidia-smi: {error}"), INSTALL),
            missing(GPU, "none without a driver", ELSEWHERE),
        ],
        Ok(said) => understand(&said, hidden),
    }
}

/// The major version of `9.0`.
fn number(text: &str) -> Option<u32> {
    text.split('.').next().and_then(|major| major.parse::<u32>().ok())
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
    let driver = match number(driver) {
        Some(major) if major < OLDEST_DRIVER => {
            missing(DRIVER, format!("{driver} is too old: it knows no CUDA 12"), INSTALL)
        }
        _ => ok(DRIVER, (*driver).to_owned()),
    };
    let shown = gpus
        .iter()
        .map(|(name, capability, _)| (format!("{name} (compute capability {capability})"), number(capability)));
    vec![
        driver,
        gpu(&shown.collect::<Vec<_>>(), hidden, "nvidia-smi lists no GPU"),
    ]
}

/// Whether one of these GPUs can measure: how each is shown, and its compute capability's first number.
fn gpu(all: &[(String, Option<u32>)], hidden: bool, none: &str) -> Check {
    let fit: Vec<&String> = all.iter().filter(|gpu| gpu.1 >= Some(7)).map(|gpu| &gpu.0).collect();
    match fit.as_slice() {
        _ if hidden => missing(
            GPU,
            "CUDA_VISIBLE_DEVICES hides all of them",
            "unset it, or name one there: CUDA_VISIBLE_DEVICES=0",
        ),
        [] if all.is_empty() => missing(GPU, none, ELSEWHERE),
        [] => {
            let all: Vec<&str> = all.iter().map(|gpu| gpu.0.as_str()).collect();
            let found = format!("{}: measuring needs compute capability 7.0", all.join(", "));
            missing(GPU, found, ELSEWHERE)
        }
        [one] => ok(GPU, one.as_str()),
        [first, _] => ok(GPU, format!("{first}, and 1 more GPU")),
        [first, rest @ ..] => ok(GPU, format!("{first}, and {} more GPUs", rest.len())),
    }
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

    #[cfg(unix)]
    #[test]
    fn what_the_driver_says() {
        let h200 = Gpu {
            name: "NVIDIA H200".to_owned(),
            compute_capability: "9.0".to_owned(),
            multiprocessors: 132,
            memory_bytes: 150_000_000_000,
        };
        let checks = told_by_driver((13, 0), Some("580.95.05"), &[h200.clone(), h200.clone()], false);
        assert_eq!(checks[0].found, "580.95.05, for CUDA 13.0 and older");
        assert_eq!(
            checks[1].found,
            "NVIDIA H200 (compute capability 9.0, 132 multiprocessors, 139.7 GiB), and 1 more GPU"
        );
        let old = told_by_driver((11, 4), None, &[], false);
        assert_eq!(
            (old[0].status, old[1].status),
            (CheckStatus::Missing, CheckStatus::Missing)
        );
        assert_eq!(old[1].found, "the driver sees no GPU");
        let hidden = told_by_driver((13, 0), None, &[h200], true);
        assert!(hidden[1].found.contains("CUDA_VISIBLE_DEVICES"));
        let said = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 10:11:16 UTC 2025\nGCC version: 12.2.0";
        assert_eq!(of_module(said), Some("580.95.05"));
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build";
        assert_eq!(of_module(open), Some("570.86.10"));
        assert_eq!(of_module(""), None);
    }
}
