//! The compiler, the one for host code that it calls, and the library for launches by device code.

use std::path::{Path, PathBuf};

use super::{Surroundings, missing, note, ok};
use crate::measure::nvcc;
use crate::schema::Check;

const COMPILER: &str = "compiler";
const HOST_COMPILER: &str = "host compiler";
const RUNTIME: &str = "device runtime";

/// The oldest toolkit whose device runtime rewritten programs are written for.
const OLDEST: u32 = 12;

const INSTALL: &str = "install the CUDA toolkit, 12 or newer (https://developer.nvidia.com/cuda-downloads), and put its nvcc on the PATH \
                       or set CUDA_HOME; without rights to install, `pip install nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt \
                       nvidia-cuda-runtime nvidia-cuda-cccl` brings one";

/// What there is of the toolkit.
pub fn checks(surroundings: &Surroundings<'_>) -> Vec<Check> {
    let host = host_compiler(surroundings);
    let Ok(nvcc) = nvcc::find_by(surroundings.variable) else {
        let help = "it is part of the CUDA toolkit";
        return vec![
            missing(COMPILER, "nvcc was not found", INSTALL),
            host,
            missing(RUNTIME, "libcudadevrt was not checked: that needs nvcc", help),
        ];
    };
    vec![compiler(surroundings, &nvcc), host, device_runtime(&nvcc)]
}

fn compiler(surroundings: &Surroundings<'_>, nvcc: &Path) -> Check {
    let shown = nvcc.display();
    if !surroundings.may_run(nvcc) {
        let help = "its version isn't checked, as an nvcc in the project isn't run: `nvcc --version` tells it; it has to be 12 or newer";
        return note(COMPILER, shown.to_string(), help);
    }
    let said = match surroundings.ask(nvcc, &["--version"]) {
        Ok(said) => said,
        Err(error) => return missing(COMPILER, format!("{shown}: {error}"), INSTALL),
    };
    match release(&said) {
        Some((major, minor)) if major < OLDEST => {
            let found = format!("{shown} is of CUDA {major}.{minor}, which is too old");
            missing(COMPILER, found, INSTALL)
        }
        Some((major, minor)) => ok(COMPILER, format!("nvcc of CUDA {major}.{minor}, {shown}")),
        None => note(
            COMPILER,
            shown.to_string(),
            "nvcc doesn't tell its version; it has to be 12 or newer",
        ),
    }
}

/// `Cuda compilation tools, release 13.0, V13.0.88`
fn release(said: &str) -> Option<(u32, u32)> {
    let (_, rest) = said.split_once("release ")?;
    let (major, rest) = rest.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn host_compiler(surroundings: &Surroundings<'_>) -> Check {
    if let Some(named) = (surroundings.variable)("NVCC_CCBIN") {
        return ok(HOST_COMPILER, format!("{} (NVCC_CCBIN)", Path::new(&named).display()));
    }
    let (names, help): (&[&str], &str) = match cfg!(windows) {
        true => (
            &["cl.exe"],
            "install Visual Studio's C++ compiler, and call gridfuse from its command prompt",
        ),
        // What nvcc looks for.
        false => (
            &["g++", "gcc"],
            "install g++ (`apt-get install g++`, `dnf install gcc-c++`)",
        ),
    };
    match names.iter().find_map(|name| surroundings.on_path(name)) {
        Some(path) => ok(HOST_COMPILER, path.display().to_string()),
        None => missing(HOST_COMPILER, format!("{} was not found", names.join(" or ")), help),
    }
}

fn device_runtime(nvcc: &Path) -> Check {
    let name = match cfg!(windows) {
        true => "cudadevrt.lib",
        false => "libcudadevrt.a",
    };
    let real = nvcc.canonicalize().unwrap_or_else(|_| nvcc.to_path_buf());
    let Some(home) = real.parent().and_then(Path::parent) else {
        return note(RUNTIME, "not found", "nvcc may know where it is");
    };
    let targets = ["x86_64-linux", "sbsa-linux", "aarch64-linux"];
    let mut directories: Vec<PathBuf> = ["lib64", "lib", "lib/x64"].iter().map(|lib| home.join(lib)).collect();
    directories.extend(
        targets
            .iter()
            .map(|target| home.join("targets").join(target).join("lib")),
    );
    // Packages of distributions.
    directories.extend(["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"].map(PathBuf::from));
    match directories
        .iter()
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
    {
        Some(file) => ok(RUNTIME, file.display().to_string()),
        None => missing(
            RUNTIME,
            format!("{name} is not in {}", home.display()),
            "without it, programs whose kernels launch kernels don't link: install the package with CUDA's static runtime \
             (cuda-cudart-dev, or nvidia-cuda-runtime from PyPI)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::release;

    #[test]
    fn versions() {
        let said = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88\n";
        assert_eq!(release(said), Some((13, 0)));
        assert_eq!(release("Cuda compilation tools, release 9.2"), Some((9, 2)));
        assert_eq!(release("clang version 19.1"), None);
        assert_eq!(release("release x.y"), None);
        assert_eq!(release(""), None);
    }
}
