//! Which GPU there is, and whether it can run programs with dynamic parallelism.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::advice;
use super::build::Compiler;
use super::place::Place;
use super::report::Machine;

const PROBE: &str = include_str!("probe.cu");

/// How the message begins that no GPU can be used.
pub const NO_GPU: &str = "there is no usable GPU";

/// How it goes on where that is because there is no driver.
const NO_DRIVER: &str = "no NVIDIA driver is installed";

/// Least compute capability of a GPU on which rewritten programs run.
const LEAST_CAPABILITY: u32 = 70;

/// What there is to measure on.
pub struct Found {
    /// The GPU that programs use.
    pub machine: Machine,
    /// Those that are like it, by their numbers among the visible ones.
    pub alike: Vec<usize>,
}

/// Builds and runs a program that says which GPUs there are. Builds for the first from then on where `native` is wanted.
pub fn probe(place: &Place, compiler: &mut Compiler, native: bool, scratch: &Path) -> Result<Found, String> {
    let directory = scratch.join("probe");
    std::fs::create_dir_all(&directory).map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    let (source, program) = (directory.join("probe.cu"), directory.join("probe"));
    super::write(&source, PROBE)?;
    let mut command = Command::new(&compiler.nvcc);
    for libraries in &compiler.libraries {
        command.arg("-L").arg(libraries);
    }
    command.arg(&source).arg("-o").arg(&program);
    let built = place
        .run(&mut command, &directory, compiler.limit, Some(&source), &[])
        .map_err(|error| format!("{} cannot be run: {error}", compiler.nvcc.display()))?;
    if !built.success() {
        let nvcc = compiler.nvcc.display();
        return Err(format!(
            "{nvcc} cannot build even a small program:\n{}",
            built.last_words()
        ));
    }
    let done = place
        .run(
            &mut Command::new(&program),
            &directory,
            Duration::from_secs(60),
            None,
            &[],
        )
        .map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
    if done.status.is_none() {
        return Err("the GPU did not answer in 60 s: is it busy or hung? (`nvidia-smi` shows it)".to_owned());
    }
    let machine = understand(done.stdout.lines().next().unwrap_or_default())
        .ok_or_else(|| format!("the program that looks for a GPU failed:\n{}", done.last_words()))??;
    if native {
        compiler.arch = format!("sm_{}", machine.compute_capability);
    }
    let each = done.stdout.lines().filter_map(|line| line.strip_prefix("each\t"));
    let alike = each
        .enumerate()
        .filter(|(_, name)| *name == machine.gpu)
        .map(|(number, _)| number)
        .collect();
    Ok(Found { machine, alike })
}

/// What the program prints; `None`: it's nothing that it prints.
fn understand(line: &str) -> Option<Result<Machine, String>> {
    let words: Vec<&str> = line.split('\t').collect();
    match words.as_slice() {
        ["gpu", gpu, capability, driver, runtime] => {
            let number: u32 = capability.parse().ok()?;
            if number < LEAST_CAPABILITY {
                return Some(Err(format!(
                    "{gpu} has compute capability {}.{}; measuring needs 7.0 or higher",
                    number / 10,
                    number % 10
                )));
            }
            if major(driver)? < 12 {
                return Some(Err(format!(
                    "the driver knows CUDA {driver} only; measuring needs one for CUDA 12 or newer"
                )));
            }
            Some(Ok(Machine {
                gpu: (*gpu).to_owned(),
                compute_capability: (*capability).to_owned(),
                driver: (*driver).to_owned(),
                runtime: (*runtime).to_owned(),
            }))
        }
        ["error", _, _, "0.0", _] => Some(Err(format!(
            "{NO_GPU}: {NO_DRIVER} (measuring needs an NVIDIA GPU of compute capability 7.0 or \
             higher with a driver for CUDA 12 or newer). Measure where one is: `runner = \"ssh HOST\"` below [measure] in \
             gridfuse.toml, or --runner \"ssh HOST\" (`gridfuse doctor` says what else is missing)"
        ))),
        ["error", name, message, driver, runtime] => {
            let mut text =
                format!("{NO_GPU}: {message} ({name}; the driver knows CUDA {driver}, the toolkit is {runtime})");
            if let Some(advice) = advice::about(name) {
                text += &format!(": {advice}");
            }
            Some(Err(text))
        }
        _ => None,
    }
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::understand;

    #[test]
    fn what_is_missing_is_said() {
        assert!(understand("gpu\tNVIDIA H200\t90\t13.0\t13.0").is_some_and(|found| found.is_ok()));
        for (line, part) in [
            ("gpu\tTesla P100\t60\t12.4\t12.4", "compute capability 6.0"),
            ("gpu\tNVIDIA A100\t80\t11.4\t11.4", "CUDA 11.4 only"),
            (
                "error\tcudaErrorInsufficientDriver\tinsufficient\t0.0\t13.0",
                "no NVIDIA driver is installed",
            ),
            (
                "error\tcudaErrorInsufficientDriver\tinsufficient\t12.2\t13.0",
                "install a newer driver",
            ),
            (
                "error\tcudaErrorNoDevice\tno device\t13.0\t13.0",
                "CUDA_VISIBLE_DEVICES",
            ),
        ] {
            let error = understand(line).and_then(Result::err);
            assert!(
                error.as_ref().is_some_and(|error| error.contains(part)),
                "{line}: {error:?}"
            );
        }
        for line in ["", "gpu\tx", "gpu\tx\ty\t13.0\t13.0", "Segmentation fault"] {
            assert!(understand(line).is_none(), "{line}");
        }
    }
}
