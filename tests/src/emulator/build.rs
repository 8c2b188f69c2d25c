//! Compiles programs for the emulator.
//!
//! The emulator's runtime is compiled once, and with it a header that holds the emulator's interface and much of the standard
//! library, into `target/gridfuse-tests/emulator-<hash>/`. A program then takes a fraction of a second.

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use super::program::Program;
use super::run::Executable;
use super::translate::{self, HEADER, Translation, Unsupported, include_of_line};
use crate::workspace;

/// Names another compiler than `g++`.
const ENVIRONMENT_VARIABLE: &str = "GRIDFUSE_TEST_CXX";

/// The first release of GCC that instruments accesses the way the runtime expects.
const OLDEST_GCC: u32 = 12;

/// How programs are compiled; the runtime takes part of it.
// DWARF 5 of GCC 12 has files that addr2line mistakes.
// Few programs launch a parent so often that the host would take over, or the device would tell: here it does from the first launches on.
const LANGUAGE: [&str; 5] = [
    "-std=c++17",
    "-gdwarf-4",
    "-g1",
    "-DGRIDFUSE_LAUNCHPAD_AFTER=0",
    "-DGRIDFUSE_TELL_AFTER=0",
];

/// Every access to memory becomes a call of the runtime. Most of the time goes into compiling, and what it makes spends its time
/// in the runtime: `-O0` takes a fifth less than `-Og`, and runs as long.
const INSTRUMENTATION: [&str; 6] = [
    "-O0",
    "-w",
    "-fsanitize=thread",
    "--param=tsan-distinguish-volatile=1",
    "--param=tsan-instrument-func-entry-exit=0",
    "-ffp-contract=off",
];

/// What is precompiled besides the emulator's interface. The more, the longer every compilation takes that uses it: so there
/// are two of them.
const PRECOMPILED: [Precompiled; 2] = [
    Precompiled {
        directory: "small",
        // Those of gridfuse.cuh, and what programs print with.
        headers: &[
            "atomic",
            "cassert",
            "climits",
            "cstddef",
            "cstdint",
            "cstdio",
            "cstdlib",
            "cstring",
            "mutex",
            "type_traits",
        ],
    },
    Precompiled {
        directory: "large",
        headers: &[
            "algorithm",
            "array",
            "atomic",
            "cassert",
            "climits",
            "cmath",
            "cstddef",
            "cstdint",
            "cstdio",
            "cstdlib",
            "cstring",
            "functional",
            "iostream",
            "limits",
            "map",
            "memory",
            "mutex",
            "numeric",
            "queue",
            "random",
            "set",
            "string",
            "thread",
            "type_traits",
            "utility",
            "vector",
        ],
    },
];

/// A precompiled header.
#[derive(Hash)]
struct Precompiled {
    directory: &'static str,
    headers: &'static [&'static str],
}

/// A compiler with the emulator's runtime, ready for programs.
#[derive(Debug, Clone)]
pub struct Emulator {
    compiler: Compiler,
    /// Holds the runtime and the precompiled header.
    installed: PathBuf,
}

/// A program that could not be made.
#[derive(Debug, Clone)]
pub enum BuildFailure {
    /// It has something that the emulator doesn't know.
    Unsupported(Unsupported),
    /// The compiler or the linker refused it: the command and what it printed.
    Compiler(String),
    /// The disk, or the compiler could not be started.
    Io(String),
}

impl fmt::Display for BuildFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildFailure::Unsupported(unsupported) => unsupported.fmt(f),
            BuildFailure::Compiler(text) | BuildFailure::Io(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for BuildFailure {}

impl From<Unsupported> for BuildFailure {
    fn from(unsupported: Unsupported) -> BuildFailure {
        BuildFailure::Unsupported(unsupported)
    }
}

impl From<io::Error> for BuildFailure {
    fn from(error: io::Error) -> BuildFailure {
        BuildFailure::Io(error.to_string())
    }
}

#[derive(Debug, Clone)]
struct Compiler {
    executable: OsString,
    /// What it says about itself.
    version: String,
}

impl Emulator {
    /// The emulator, built on first use.
    ///
    /// # Panics
    /// When it can't be built; the message says what to do.
    #[allow(clippy::panic)]
    pub fn get() -> &'static Emulator {
        match Self::try_get() {
            Ok(emulator) => emulator,
            Err(message) => panic!("{message}"),
        }
    }

    /// The emulator, built on first use, or what to do about it.
    pub fn try_get() -> Result<&'static Emulator, &'static str> {
        static EMULATOR: OnceLock<Result<Emulator, String>> = OnceLock::new();
        let made = EMULATOR.get_or_init(|| {
            let compiler = std::env::var_os(ENVIRONMENT_VARIABLE).unwrap_or_else(|| "g++".into());
            install(
                Compiler::find(compiler)?,
                &workspace::root().join("tests/emulator"),
                &workspace::target_dir().join("gridfuse-tests"),
            )
        });
        made.as_ref().map_err(String::as_str)
    }

    /// Makes an executable of a program.
    pub fn build(&self, program: &Program) -> Result<Executable, BuildFailure> {
        self.make(&translate::separate(program)?, false)
    }

    /// Makes one executable of several programs, or, where they can't share one, `None`. It is faster than to build each,
    /// by far.
    pub fn build_together(&self, programs: &[&Program]) -> Result<Option<Executable>, BuildFailure> {
        match translate::together(programs)? {
            Some(translation) => self.make(&translation, true).map(Some),
            None => Ok(None),
        }
    }

    /// Makes an executable of each program; they share one file where that is possible.
    pub fn build_all(&self, programs: &[&Program]) -> Vec<Result<Executable, BuildFailure>> {
        if let Ok(Some(executable)) = self.build_together(programs) {
            return (0..programs.len())
                .map(|number| Ok(executable.program(number)))
                .collect();
        }
        // What counts is each by itself, which also tells which one it is.
        programs.iter().map(|program| self.build(program)).collect()
    }

    fn make(&self, translation: &Translation, several: bool) -> Result<Executable, BuildFailure> {
        let directory = tempfile::Builder::new().prefix("gridfuse-emulated-").tempdir()?;
        let at = |name: &str| directory.path().join(name);
        for (name, text) in &translation.files {
            fs::write(at(name), text)?;
        }
        let precompiled = self.installed.join(suitable(translation).directory);
        let mut link = self.compiler.command();
        for unit in &translation.units {
            let object = at(&format!("{unit}.o"));
            let mut compile = self.compiler.command();
            // Lines are lines of the program's files, under the names that the program gives them.
            let mut no_directory = OsString::from("-fdebug-prefix-map=");
            no_directory.push(directory.path());
            no_directory.push("=");
            compile
                .current_dir(directory.path())
                .args(LANGUAGE)
                .args(INSTRUMENTATION)
                .arg(no_directory)
                .arg("-I")
                .arg(&precompiled)
                .arg("-I")
                .arg(workspace::root().join("tests/emulator/include"))
                .args(["-c", "-o"])
                .arg(&object)
                .arg(at(unit));
            run(compile).map_err(BuildFailure::Compiler)?;
            link.arg(object);
        }
        let executable = at("program");
        link.arg(self.installed.join(RUNTIME)).arg("-o").arg(&executable);
        link.args(LINK);
        run(link).map_err(BuildFailure::Compiler)?;
        Ok(Executable::new(directory, executable, several))
    }
}

/// The runtime in the cache.
const RUNTIME: &str = "runtime.o";

const LINK: [&str; 1] = ["-pthread"];

impl Compiler {
    fn find(executable: OsString) -> Result<Compiler, String> {
        let name = executable.to_string_lossy().into_owned();
        let ask = |argument: &str| -> Result<String, String> {
            let output = Command::new(&executable).arg(argument).stdin(Stdio::null()).output();
            match output {
                Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
                Ok(output) => Err(advice(&format!("`{name} {argument}` failed ({})", output.status))),
                Err(error) => Err(advice(&format!("`{name}` can't be run: {error}"))),
            }
        };
        let machine = ask("-dumpmachine")?;
        if !(machine.starts_with("x86_64") && machine.contains("linux")) {
            return Err(advice(&format!(
                "`{name}` compiles for {machine}, and the emulator is for x86-64 Linux"
            )));
        }
        let version = ask("-dumpfullversion")?;
        let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        if major.is_none_or(|major| major < OLDEST_GCC) {
            return Err(advice(&format!("`{name}` is GCC {version}")));
        }
        Ok(Compiler {
            version: format!("{name} {version} {machine} {}", ask("--version")?),
            executable,
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.stdin(Stdio::null());
        command
    }
}

fn advice(failure: &str) -> String {
    format!(
        r#"The emulator needs g++ of GCC {OLDEST_GCC} or newer on x86-64 Linux: {failure}.
On Debian and Ubuntu: apt-get install g++. To use another one, set {ENVIRONMENT_VARIABLE} to it."#
    )
}

/// Runs a compiler; what it printed is the error.
fn run(mut command: Command) -> Result<(), String> {
    let line = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ");
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "{line}\n{}{}",
            String::from_utf8_lossy(&output.stderr),
            String::from_utf8_lossy(&output.stdout)
        )),
        Err(error) => Err(format!("{line}: {error}")),
    }
}

/// All files under a directory, sorted.
fn files_under(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files_under(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the runtime in `base`, building it first if need be.
///
/// Test binaries run side by side: a lock lets one of them build, and the rename at the end makes a build that was
/// interrupted look like none.
fn install(compiler: Compiler, sources: &Path, base: &Path) -> Result<Emulator, String> {
    let problem = |error: io::Error| format!("the emulator can't be built: {error}");
    let mut hasher = DefaultHasher::new();
    (&compiler.version, LANGUAGE, INSTRUMENTATION, PRECOMPILED, RUNTIME_FLAGS).hash(&mut hasher);
    for directory in ["include", "runtime"] {
        for file in files_under(&sources.join(directory)).map_err(problem)? {
            file.hash(&mut hasher);
            fs::read(&file).map_err(problem)?.hash(&mut hasher);
        }
    }
    let name = format!("emulator-{:016x}", hasher.finish());
    let emulator = Emulator {
        compiler,
        installed: base.join(&name),
    };
    if emulator.installed.is_dir() {
        return Ok(emulator);
    }
    fs::create_dir_all(base).map_err(problem)?;
    let lock = File::create(base.join("emulator.lock")).map_err(problem)?;
    lock.lock().map_err(problem)?;
    if emulator.installed.is_dir() {
        return Ok(emulator);
    }
    let unfinished = tempfile::Builder::new()
        .prefix("unfinished-emulator-")
        .tempdir_in(base)
        .map_err(problem)?;
    compile_runtime(&emulator.compiler, sources, unfinished.path())?;
    for precompiled in &PRECOMPILED {
        precompile(&emulator.compiler, precompiled, sources, unfinished.path())?;
    }
    fs::rename(unfinished.path(), &emulator.installed).map_err(problem)?;
    remove_old(base, &name);
    Ok(emulator)
}

/// How the runtime is compiled: not instrumented, fast, and with instances of templates of its own, as those of programs are
/// instrumented.
const RUNTIME_FLAGS: [&str; 3] = ["-O2", "-fno-weak", "-fno-rtti"];

fn compile_runtime(compiler: &Compiler, sources: &Path, into: &Path) -> Result<(), String> {
    let files = files_under(&sources.join("runtime")).map_err(|error| error.to_string())?;
    let units = files
        .iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "cpp"));
    let mut together = compiler.command();
    together.args(["-r", "-nostdlib", "-o"]).arg(into.join(RUNTIME));
    for (number, unit) in units.enumerate() {
        let object = into.join(format!("{number}.o"));
        let mut compile = compiler.command();
        compile
            .args(LANGUAGE)
            .args(RUNTIME_FLAGS)
            .arg("-I")
            .arg(sources.join("include"))
            .arg("-I")
            .arg(sources.join("runtime"))
            .args(["-c", "-o"])
            .arg(&object)
            .arg(unit);
        run(compile)?;
        together.arg(object);
    }
    run(together)
}

fn precompile(compiler: &Compiler, precompiled: &Precompiled, sources: &Path, into: &Path) -> Result<(), String> {
    let directory = into.join(precompiled.directory);
    let mut text = format!("#include \"{}\"\n", sources.join("include").join(HEADER).display());
    for header in precompiled.headers {
        text.push_str(&format!("#include <{header}>\n"));
    }
    let header = directory.join("precompiled.hpp");
    fs::create_dir_all(&directory)
        .and_then(|()| fs::write(&header, text))
        .map_err(|error| error.to_string())?;
    let mut compile = compiler.command();
    compile
        .args(LANGUAGE)
        .args(INSTRUMENTATION)
        .arg("-I")
        .arg(sources.join("include"))
        .args(["-x", "c++-header", "-o"])
        .arg(directory.join(format!("{HEADER}.gch")))
        .arg(&header);
    run(compile)
}

/// The precompiled header that suits a translated program.
fn suitable(translation: &Translation) -> &'static Precompiled {
    let [small, large] = &PRECOMPILED;
    let mut included = translation
        .files
        .iter()
        .flat_map(|(_, text)| text.lines().filter_map(include_of_line));
    let only_in_large = |name: &&str| large.headers.contains(name) && !small.headers.contains(name);
    if included.any(|(name, _)| only_in_large(&name)) {
        large
    } else {
        small
    }
}

/// Removes what was built of older sources: it takes much space. What was made today may be in use.
fn remove_old(base: &Path, keep: &str) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = name
            .to_str()
            .is_some_and(|name| name.starts_with("emulator-") && name != keep);
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let old = modified.is_ok_and(|time| {
            let age = SystemTime::now().duration_since(time);
            age.is_ok_and(|age| age > Duration::from_secs(24 * 60 * 60))
        });
        if ours && old && entry.path().is_dir() {
            // Nothing depends on it.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::emulator::run::{End, FAULT_CODE, RunOptions};

    #[test]
    fn a_missing_compiler_is_explained() {
        let message = Compiler::find("no-such-g++".into()).unwrap_err();
        assert!(message.contains("apt-get install g++"), "{message}");
        assert!(message.contains(ENVIRONMENT_VARIABLE), "{message}");
    }

    #[test]
    fn programs_run() {
        let text = r#"#include <cstdio>
#include <cstdlib>
__global__ void child(int* out) { *out = 7; }
__global__ void parent(int* out) { child<<<1, 1>>>(out); }
int main(int argc, char** argv) {
    int *there, here = 0;
    cudaMalloc(&there, 4);
    parent<<<1, 1>>>(there);
    cudaMemcpy(&here, there, 4, cudaMemcpyDeviceToHost);
    printf("%d %s\n", here, argv[1]);
    return atoi(argv[1]);
}
"#;
        let program = Program::new("a.cu", text);
        let alone = Emulator::get().build(&program).unwrap();
        let together = Emulator::get().build_together(&[&program, &program]).unwrap().unwrap();
        for executable in [alone, together.program(0), together.program(1)] {
            let options = RunOptions {
                arguments: vec!["3".to_owned()],
                ..RunOptions::default()
            };
            let outcome = executable.run(&options).unwrap();
            assert_eq!(outcome.stdout, "7 3\n");
            assert_eq!(outcome.end, End::Code(3));
        }
    }

    #[test]
    fn faults_have_lines() {
        let text = "\n__global__ void k(int* p) {\n    p[4] = 1;\n}\nint main() {\n    int* p;\n    cudaMalloc(&p, 16);\n    \
                    k<<<1, 1>>>(p);\n    return cudaDeviceSynchronize();\n}\n";
        let program = Program::new("dir/a.cu", text);
        for executable in Emulator::get().build_all(&[&program, &program]) {
            let outcome = executable.unwrap().run(&RunOptions::seed(5)).unwrap();
            assert_eq!(outcome.end, End::Code(FAULT_CODE), "{outcome}");
            let event = &outcome.events[0];
            assert_eq!(event.seed, 5);
            let access = &event.accesses[0];
            assert_eq!(
                (access.file.as_deref(), access.line),
                (Some("dir/a.cu"), Some(3)),
                "{outcome}"
            );
        }
    }

    #[test]
    fn errors_have_lines() {
        let unknown = Program::new("a.cu", "int main() {\n    return unknown;\n}\n");
        let failure = Emulator::get().build(&unknown).unwrap_err().to_string();
        assert!(failure.contains("a.cu:2:12: error"), "{failure}");
        let unsupported = Program::new("a.cu", "int main() {\n    asm(\"nop;\");\n}\n");
        let failure = Emulator::get().build(&unsupported).unwrap_err().to_string();
        assert!(failure.starts_with("a.cu:2: the emulator doesn't support"), "{failure}");
        // One that can't be built says so, and the others are built.
        let good = Program::new("a.cu", "int main() {}\n");
        let built = Emulator::get().build_all(&[&good, &unknown]);
        assert!(built[0].is_ok() && built[1].is_err());
    }

    #[test]
    fn time_is_limited() {
        let program = Program::new("a.cu", "int main() { for (volatile int x = 0;; x = x + 1) {} }\n");
        let options = RunOptions {
            timeout: Duration::from_millis(300),
            ..RunOptions::default()
        };
        let outcome = Emulator::get().build(&program).unwrap().run(&options).unwrap();
        assert_eq!(outcome.end, End::TimedOut);
    }
}
