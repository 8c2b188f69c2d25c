//! A real nvcc for tests, on machines with and without CUDA.
//!
//! The compiler is looked for in this order:
//! 1. the executable that `GRIDFUSE_TEST_NVCC` names;
//! 2. an earlier installation in `target/gridfuse-tests/nvcc-<version>/`;
//! 3. a new installation there, from NVIDIA's packages on the Python package index. It needs
//!    `python3` with `venv`, a network, and about 300 MB; no GPU and no CUDA toolkit.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use crate::announce::installing;
use crate::workspace;

/// The version of nvcc that is installed when none is configured.
pub const VERSION: &str = "13.0.88";

/// What [`Nvcc`] installs, with exact versions that belong together.
const PACKAGES: [&str; 5] = [
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-cccl==13.0.85",
];

const ENVIRONMENT_VARIABLE: &str = "GRIDFUSE_TEST_NVCC";

/// A CUDA compiler with the libraries that dynamic parallelism needs.
#[derive(Debug, Clone)]
pub struct Nvcc {
    executable: PathBuf,
    root: PathBuf,
}

/// A compilation that did not succeed.
#[derive(Debug, Clone)]
pub struct CompileFailure {
    /// The command line, for repeating it by hand.
    pub command: String,
    /// How the compiler ended; `None` when it could not be started.
    pub status: Option<ExitStatus>,
    /// Everything the compiler printed, standard error first.
    pub output: String,
}

impl fmt::Display for CompileFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => writeln!(f, "nvcc failed ({status})")?,
            None => writeln!(f, "nvcc could not be run")?,
        }
        writeln!(f, "  {}", self.command)?;
        f.write_str(&self.output)
    }
}

impl std::error::Error for CompileFailure {}

impl Nvcc {
    /// The compiler, installed on first use.
    ///
    /// # Panics
    /// When there is none and it cannot be installed; the message says what to do.
    #[allow(clippy::panic)]
    pub fn get() -> &'static Nvcc {
        match Self::try_get() {
            Ok(nvcc) => nvcc,
            Err(message) => panic!("{message}"),
        }
    }

    /// The compiler, installed on first use, or what to do about there being none.
    pub fn try_get() -> Result<&'static Nvcc, &'static str> {
        static NVCC: OnceLock<Result<Nvcc, String>> = OnceLock::new();
        NVCC.get_or_init(find_or_install).as_ref().map_err(String::as_str)
    }

    /// The compiler at `executable`, in the usual layout of a toolkit (`bin/nvcc` beside `lib`).
    pub fn at(executable: impl Into<PathBuf>) -> Result<Nvcc, String> {
        let executable = executable.into();
        if !executable.is_file() {
            return Err(format!("{} is not a file", executable.display()));
        }
        let root = executable
            .parent()
            .and_then(Path::parent)
            .ok_or_else(|| format!("{} is not inside a toolkit", executable.display()))?
            .to_path_buf();
        Ok(Nvcc { executable, root })
    }

    /// The compiler's executable.
    pub fn executable(&self) -> &Path {
        &self.executable
    }

    /// The toolkit's root: `include/` is in it, and `lib/` or `lib64/`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A command with the flags that dynamic parallelism needs, and no sources yet.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command
            .args(["-std=c++17", "-rdc=true", "-arch=sm_90"])
            .stdin(Stdio::null());
        command
    }

    /// Compiles and links `sources` into the program `out`, or, with `None`, into nothing.
    pub fn compile(&self, sources: &[&Path], out: Option<&Path>, extra: &[&str]) -> Result<(), CompileFailure> {
        let scratch = Scratch::new()?;
        let mut command = self.command();
        command.args(extra).args(sources).arg("-o");
        match out {
            Some(out) => command.arg(out),
            None => command.arg(scratch.path("program")),
        };
        for library in ["lib", "lib64"] {
            let library = self.root.join(library);
            if library.is_dir() {
                let mut flag = OsString::from("-L");
                flag.push(library);
                command.arg(flag);
            }
        }
        command.arg("-lcudadevrt");
        run(command)
    }

    /// Checks that `source` compiles for host and device, without linking.
    pub fn check_compiles(&self, source: &Path) -> Result<(), CompileFailure> {
        self.check_compiles_with(source, &[])
    }

    /// Like [`Nvcc::check_compiles`], with further flags such as `-I` or `-Werror all-warnings`.
    pub fn check_compiles_with(&self, source: &Path, extra: &[&str]) -> Result<(), CompileFailure> {
        let scratch = Scratch::new()?;
        let mut command = self.command();
        // Speed of the code does not matter here; ptxas takes half the time without optimising.
        command
            .args(["-c", "-Xptxas", "-O0"])
            .args(extra)
            .arg(source)
            .arg("-o")
            .arg(scratch.path("object.o"));
        run(command)
    }
}

/// A directory for outputs that nobody wants.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Result<Scratch, CompileFailure> {
        tempfile::tempdir().map(Scratch).map_err(|error| CompileFailure {
            command: String::new(),
            status: None,
            output: format!("no temporary directory: {error}"),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

fn run(mut command: Command) -> Result<(), CompileFailure> {
    let line = command_line(&command);
    let output = command.output().map_err(|error| CompileFailure {
        command: line.clone(),
        status: None,
        output: error.to_string(),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let mut text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stdout));
    Err(CompileFailure {
        command: line,
        status: Some(output.status),
        output: text,
    })
}

fn command_line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

fn find_or_install() -> Result<Nvcc, String> {
    if let Some(configured) = std::env::var_os(ENVIRONMENT_VARIABLE) {
        return Nvcc::at(configured).map_err(|message| format!("{ENVIRONMENT_VARIABLE}: {message}"));
    }
    let base = workspace::target_dir().join("gridfuse-tests");
    install(&base, Path::new("python3"))
}

/// Returns the installation in `base`, making it first if need be.
///
/// Test binaries run side by side: a lock lets one of them install, and the rename at the end makes
/// an installation that was interrupted look like none.
fn install(base: &Path, python: &Path) -> Result<Nvcc, String> {
    let io = |what: &str, error: io::Error| format!("{}: {what}: {error}", base.display());
    let finished = base.join(format!("nvcc-{VERSION}"));
    if let Some(nvcc) = installed(&finished) {
        return Ok(nvcc);
    }
    fs::create_dir_all(base).map_err(|error| io("cannot be made", error))?;
    let lock = File::create(base.join("nvcc.lock")).map_err(|error| io("no lock file", error))?;
    lock.lock().map_err(|error| io("cannot lock", error))?;
    if let Some(nvcc) = installed(&finished) {
        return Ok(nvcc);
    }

    installing(&format!("nvcc {VERSION} (300 MB)"), &finished);
    let unfinished = tempfile::Builder::new()
        .prefix("nvcc-unfinished-")
        .tempdir_in(base)
        .map_err(|error| io("no temporary directory", error))?;
    let environment = unfinished.path().join("nvcc");
    step(
        "`python3 -m venv` failed. On Debian and Ubuntu: apt-get install python3-venv",
        Command::new(python).args(["-m", "venv"]).arg(&environment),
    )?;
    step(
        "pip could not install nvcc. Is there a network?",
        Command::new(environment.join("bin").join("python3"))
            .args(["-m", "pip", "install", "--quiet", "--no-input"])
            .args(["--disable-pip-version-check", "--only-binary", ":all:"])
            .args(PACKAGES),
    )?;
    if installed(&environment).is_none() {
        return Err(advice("the installed packages hold no nvcc", ""));
    }
    if finished.exists() {
        fs::remove_dir_all(&finished).map_err(|error| io("a broken installation", error))?;
    }
    fs::rename(&environment, &finished).map_err(|error| io("cannot rename", error))?;
    installed(&finished).ok_or_else(|| advice("the installation vanished", ""))
}

/// The compiler inside a Python environment that the packages were installed into.
fn installed(environment: &Path) -> Option<Nvcc> {
    fs::read_dir(environment.join("lib"))
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let root = entry.path().join("site-packages/nvidia/cu13");
            Nvcc::at(root.join("bin/nvcc")).ok()
        })
        .next()
}

fn step(failure: &str, command: &mut Command) -> Result<(), String> {
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let mut printed = String::from_utf8_lossy(&output.stderr).into_owned();
            printed.push_str(&String::from_utf8_lossy(&output.stdout));
            Err(advice(failure, &printed))
        }
        Err(error) => Err(advice(
            "python3 cannot be run. Install Python 3.9 or newer",
            &error.to_string(),
        )),
    }
}

fn advice(failure: &str, printed: &str) -> String {
    let mut message = format!(
        r#"These tests need nvcc, and it could not be installed: {failure}.
With a CUDA toolkit of version 12 or newer at hand, set {ENVIRONMENT_VARIABLE} to its nvcc."#
    );
    let printed = printed.trim();
    if !printed.is_empty() {
        message.push('\n');
        message.push_str(printed);
    }
    message
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    const DYNAMIC: &str = r#"__global__ void child(int* out) { *out = 1; }
__global__ void parent(int* out) { child<<<1, 1>>>(out); }
int main() { parent<<<1, 1>>>(nullptr); }
"#;

    fn source(directory: &Path, text: &str) -> PathBuf {
        let path = directory.join("program.cu");
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn dynamic_parallelism_compiles_and_links() {
        let directory = tempfile::tempdir().unwrap();
        let source = source(directory.path(), DYNAMIC);
        let program = directory.path().join("program");
        Nvcc::get()
            .compile(&[&source], Some(&program), &[])
            .unwrap_or_else(|failure| panic!("{failure}"));
        assert!(program.is_file());
        Nvcc::get()
            .check_compiles(&source)
            .unwrap_or_else(|failure| panic!("{failure}"));
    }

    #[test]
    fn a_failure_tells_the_command_and_the_errors() {
        let directory = tempfile::tempdir().unwrap();
        let source = source(directory.path(), "__global__ void kernel() { missing(); }\n");
        let failure = Nvcc::get().check_compiles(&source).unwrap_err().to_string();
        assert!(failure.contains("-rdc=true"), "{failure}");
        assert!(failure.contains("\"missing\" is undefined"), "{failure}");
    }

    #[test]
    fn missing_python_is_explained() {
        let directory = tempfile::tempdir().unwrap();
        let message = install(directory.path(), Path::new("no-such-python3")).unwrap_err();
        assert!(message.contains("Install Python 3"), "{message}");
        assert!(message.contains("GRIDFUSE_TEST_NVCC"), "{message}");
    }

    #[cfg(unix)]
    #[test]
    fn a_broken_venv_is_explained_and_leaves_nothing_behind() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let python = directory.path().join("python3");
        fs::write(&python, "#!/bin/sh\necho 'ensurepip is not available' >&2\nexit 1\n").unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        let base = directory.path().join("cache");
        let message = install(&base, &python).unwrap_err();
        assert!(message.contains("apt-get install python3-venv"), "{message}");
        assert!(message.contains("ensurepip is not available"), "{message}");
        let left: Vec<_> = fs::read_dir(&base)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["nvcc.lock"]);
    }
}
