//! The emulator's runtime finds what it is there to find, and nothing else: every program of `tests/emulator/selftest`
//! says in its first line what must happen. `// expect: pass` ends with exit code 0 under every seed; `// expect: race`
//! (or several kinds) is stopped for one of these reasons under at least one seed, and never for another.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use gridfuse_tests::cli::in_parallel;
use gridfuse_tests::workspace;

const SEEDS: u64 = 50;
/// For programs with a fault: describing one takes a while.
const FAULTY_SEEDS: u64 = 12;
/// What the emulator exits with at a fault.
const FAULT: i32 = 70;

fn emulator() -> PathBuf {
    workspace::root().join("tests/emulator")
}

fn output_directory() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emulator_runtime");
    std::fs::create_dir_all(&directory).expect("a directory for objects");
    directory
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("a directory of sources")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cpp"))
        .collect();
    found.sort();
    found
}

fn object_of(source: &Path) -> PathBuf {
    output_directory()
        .join(source.file_name().expect("a file"))
        .with_extension("o")
}

fn gxx(arguments: &[&str], paths: &[&Path]) {
    let output = Command::new("g++")
        .args(arguments)
        .args(paths)
        .output()
        .expect("g++ starts");
    assert!(
        output.status.success(),
        "g++ {arguments:?} {paths:?}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Compiles the runtime without instrumentation, once for all tests.
fn runtime_objects() -> &'static [PathBuf] {
    static OBJECTS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    OBJECTS.get_or_init(compile_runtime)
}

fn compile_runtime() -> Vec<PathBuf> {
    let include = format!("-I{}", emulator().join("include").display());
    let sources = sources(&emulator().join("runtime"));
    in_parallel(&sources, |source| {
        let object = object_of(source);
        gxx(
            &[
                "-std=c++17",
                "-O2",
                "-g1",
                "-fno-weak",
                "-fno-rtti",
                "-Wall",
                "-Wextra",
                "-Werror",
                &include,
                "-c",
                "-o",
            ],
            &[&object, source],
        );
        object
    })
}

struct Program {
    name: String,
    expected: Vec<String>,
    environment: Vec<(String, String)>,
    executable: PathBuf,
}

fn build(source: &Path, runtime: &[PathBuf]) -> Program {
    let text = std::fs::read_to_string(source).expect("a source");
    let directive = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(&format!("// {name}: ")).map(str::to_owned))
    };
    let object = object_of(source);
    let executable = object.with_extension("exe");
    let include = format!("-I{}", emulator().join("include").display());
    gxx(
        &[
            "-std=c++17",
            "-O1",
            "-g1",
            "-fsanitize=thread",
            "--param",
            "tsan-distinguish-volatile=1",
            "--param",
            "tsan-instrument-func-entry-exit=0",
            &include,
            "-c",
            "-o",
        ],
        &[&object, source],
    );
    let mut paths: Vec<&Path> = vec![&executable, &object];
    paths.extend(runtime.iter().map(PathBuf::as_path));
    gxx(&["-o"], &paths);
    Program {
        name: source.file_stem().expect("a name").to_string_lossy().into_owned(),
        expected: directive("expect")
            .unwrap_or_else(|| panic!("{} has no `// expect:`", source.display()))
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        environment: directive("env")
            .unwrap_or_default()
            .split_whitespace()
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        executable,
    }
}

/// Exit code, the kind of fault if it is one, and all that was written, of one run.
fn run(program: &Program, seed: u64) -> (Option<i32>, Option<String>, String) {
    let report = program.executable.with_extension(format!("{seed}.report"));
    let _ = std::fs::remove_file(&report);
    let output = Command::new(&program.executable)
        .envs(program.environment.iter().cloned())
        .env("GRIDFUSE_EMU_SEED", seed.to_string())
        .env("GRIDFUSE_EMU_REPORT", &report)
        .output()
        .expect("the program starts");
    let lines = std::fs::read_to_string(&report).unwrap_or_default();
    let _ = std::fs::remove_file(&report);
    let kind = lines.lines().last().and_then(|line| {
        let parsed: serde_json::Value = serde_json::from_str(line).expect("a line of the report is JSON");
        parsed["kind"].as_str().map(str::to_owned)
    });
    let kind = kind.filter(|_| output.status.code() == Some(FAULT));
    let written = format!(
        "{lines}{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.code(), kind, written)
}

/// Why the program does not do what it says it does.
fn complaint(program: &Program) -> Option<String> {
    let pass = program.expected == ["pass"];
    let seeds = if pass { SEEDS } else { FAULTY_SEEDS };
    let mut found = 0;
    for seed in 1..=seeds {
        let (code, kind, written) = run(program, seed);
        match kind {
            Some(kind) if !pass && program.expected.contains(&kind) => found += 1,
            None if code == Some(0) || (!pass && code == Some(1)) => {}
            _ => return Some(format!("{}, seed {seed}: exit code {code:?}\n{written}", program.name)),
        }
    }
    (!pass && found == 0).then(|| format!("{}: no seed of {seeds} finds a fault", program.name))
}

#[test]
fn programs_do_what_they_expect() {
    let runtime = runtime_objects();
    let sources = sources(&emulator().join("selftest"));
    assert!(!sources.is_empty());
    let complaints: Vec<String> = in_parallel(&sources, |source| complaint(&build(source, runtime)))
        .into_iter()
        .flatten()
        .collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The linker gives the runtime the program's instances of templates if it asks for any; those are instrumented.
#[test]
fn runtime_shares_no_templates_with_programs() {
    for object in runtime_objects() {
        let output = Command::new("nm").arg("-C").arg(object).output().expect("nm starts");
        let symbols = String::from_utf8_lossy(&output.stdout).into_owned();
        for line in symbols.lines() {
            assert!(!line.contains(" W "), "{}: {line}", object.display());
            assert!(
                !(line.contains(" U std::") && line.contains('<')),
                "{}: {line}",
                object.display()
            );
        }
    }
}
