//! What the rewrites make of programs does what the programs did: run on the CPU, under schedules that no GPU has to show.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use gridfuse_tests::cli::{files_of, in_parallel};
use gridfuse_tests::emulator::rewritten::{device_launches, offered};
use gridfuse_tests::emulator::run::{Outcome, RunOptions};
use gridfuse_tests::emulator::{Emulator, Program};
use gridfuse_tests::workspace;
use regex::Regex;

/// A program with what gridfuse makes of it: names and texts, the original first.
fn variants(program: &Program) -> Vec<(String, Program)> {
    let mut found = vec![("the original".to_owned(), program.clone())];
    for site in device_launches(program) {
        for rewritten in offered(program, &site) {
            let name = format!(
                "{}:{} after {}",
                site.file.display(),
                site.line,
                rewritten.ids.join(", ")
            );
            found.push((name, rewritten.program));
        }
    }
    found
}

/// Runs every variant with every seed; `judge` says what is wrong with an outcome.
fn run_all(
    variants: &[(String, Program)],
    seeds: std::ops::Range<u64>,
    arguments: &[&str],
    judge: impl Fn(&Outcome) -> Option<String>,
) -> String {
    let mut failures = String::new();
    let programs: Vec<&Program> = variants.iter().map(|(_, program)| program).collect();
    for ((name, _), built) in variants.iter().zip(Emulator::get().build_all(&programs)) {
        let executable = match built {
            Ok(executable) => executable,
            Err(failure) => {
                let _ = writeln!(failures, "{name}: {failure}");
                continue;
            }
        };
        for seed in seeds.clone() {
            let options = RunOptions {
                seed,
                arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
                timeout: Duration::from_secs(60),
                ..RunOptions::default()
            };
            let outcome = executable.run(&options).expect("the program starts");
            if let Some(what) = judge(&outcome) {
                let _ = writeln!(failures, "{name}, seed {seed}: {what}\n{outcome}");
                break;
            }
        }
    }
    failures
}

#[test]
fn the_corpus_agrees_with_its_references() {
    let corpus = workspace::root().join("tests/corpus");
    let mut jobs = Vec::new();
    for file in ["bfs.cu", "sssp.cu"] {
        let program = Program::load(&corpus, &[file], &[""; 0]).expect("the program");
        let variants = variants(&program);
        let names: Vec<&str> = variants.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.len() >= 5, "{file}: only {names:?}");
        for (input, vertices) in [("rmat", "60"), ("tree", "150"), ("uniform", "40"), ("road", "40")] {
            jobs.push((variants.clone(), input, vertices));
        }
    }
    let failures = in_parallel(&jobs, |(variants, input, vertices)| {
        let arguments = [
            "--input",
            input,
            "--vertices",
            vertices,
            "--threads",
            "64",
            "--repeat",
            "1",
        ];
        run_all(variants, 1..4, &arguments, |outcome| {
            let passed = outcome.is_success() && outcome.stdout.contains("\"verdict\":\"pass\"");
            (!passed).then(|| format!("{input} does not pass"))
        })
    });
    assert_eq!(failures.concat(), "");
}

/// Programs of `tests/fixtures/rewrites` that can't be run, and why.
const NOT_RUN: [(&str, &str); 0] = [];

/// Gives a program of the fixtures data to work on.
fn with_data(program: &Program) -> Program {
    let arguments = Regex::new(r">> ?>\s*\([^)]*\)").expect("an expression");
    let mut changed = program
        .clone()
        .with_file("data.hpp", fs::read_to_string(data()).expect("data.hpp"));
    for (path, text) in program.files() {
        let with_memory = arguments.replace_all(text, |found: &regex::Captures<'_>| {
            found[0].replace("nullptr", "data::Memory()")
        });
        let with_rows = with_memory.replace(
            "int *out = nullptr, *row = nullptr",
            "int *out = data::Memory(), *row = data::rows<int>()",
        );
        let result = with_rows.replace("return cudaDeviceSynchronize();", "return data::finish();");
        if *result != **text {
            // Line numbers stay as they are.
            changed = changed.with_file(path, format!("#include \"data.hpp\"\n#line 1\n{result}"));
        }
    }
    changed
}

fn data() -> std::path::PathBuf {
    workspace::root().join("tests/fixtures/emulator/data.hpp")
}

/// The programs of the fixtures, with the names of their directories or files.
fn fixtures() -> Vec<(String, Program)> {
    let root = workspace::root().join("tests/fixtures/rewrites");
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for (path, _) in files_of(&root).iter().filter(|(path, _)| path.ends_with(".cu")) {
        match path.split_once('/') {
            None => found.push((path.clone(), vec![path.clone()])),
            Some((directory, _)) => match found.iter_mut().find(|(name, _)| name == directory) {
                Some((_, units)) => units.push(path.clone()),
                None => found.push((directory.to_owned(), vec![path.clone()])),
            },
        }
    }
    let load = |name: &str, units: &[String]| {
        let include = Path::new(name).join("include");
        Program::load(&root, units, &[include]).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    found
        .iter()
        .map(|(name, units)| (name.clone(), load(name, units)))
        .collect()
}

#[test]
fn rewritten_fixtures_print_what_the_originals_print() {
    let fixtures = fixtures();
    for (name, _) in NOT_RUN {
        assert!(
            fixtures.iter().any(|(fixture, _)| fixture == name),
            "there is no {name}"
        );
    }
    let jobs: Vec<_> = fixtures
        .into_iter()
        .filter(|(name, _)| !NOT_RUN.iter().any(|(left_out, _)| left_out == name))
        .collect();
    assert!(jobs.len() > 60);
    let failures = in_parallel(&jobs, |(name, program)| {
        let variants: Vec<_> = variants(program)
            .iter()
            .map(|(what, program)| (format!("{name}: {what}"), with_data(program)))
            .collect();
        let original = match Emulator::get().build(&variants[0].1) {
            Ok(executable) => executable.run(&RunOptions::seed(1)).expect("the program starts"),
            Err(failure) => return format!("{name}: {failure}\n"),
        };
        if !original.is_success() || !original.stdout.contains("bytes set") || original.stdout.contains(" 0 bytes set")
        {
            return format!("{name}: the original with seed 1: {original}\n");
        }
        run_all(&variants, 1..4, &[], |outcome| {
            let same = outcome.is_success() && outcome.stdout == original.stdout;
            (!same).then(|| format!("not what the original printed, {}", original.stdout))
        })
    });
    assert_eq!(failures.concat(), "");
}
