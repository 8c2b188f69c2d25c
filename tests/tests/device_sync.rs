//! `replace-device-sync`: what it makes of old programs compiles, and computes what the originals compute.
//!
//! The programs of `tests/fixtures/device_sync` begin with a comment that says what becomes of their waits, one after the other:
//! `// expect: eligible assumes(part of it) refused(part of a reason)`. Originals run in the emulator alone, which lets kernels wait
//! for their children when it is asked to.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fmt::Write as _;

use gridfuse_tests::cli::{Directory, directory, files_of, gridfuse, in_parallel};
use gridfuse_tests::emulator::run::{Executable, RunOptions};
use gridfuse_tests::emulator::{Emulator, Program};
use gridfuse_tests::fixture::is_asked_for;
use gridfuse_tests::nvcc::Nvcc;
use gridfuse_tests::patience::PATIENCE;
use gridfuse_tests::workspace;

const WAIT: &str = "cudaDeviceSynchronize";

/// The verdicts with what is to be found in the output.
fn expectations(text: &str) -> Vec<(String, String)> {
    let line = text.lines().next().and_then(|l| l.strip_prefix("// expect: "));
    let mut rest = line.expect("what is expected").trim();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let end = rest.find(['(', ' ']).unwrap_or(rest.len());
        let (verdict, more) = rest.split_at(end);
        let (part, more) = match more.strip_prefix('(') {
            Some(more) => more.split_once(')').expect("a `)`"),
            None => ("", more),
        };
        found.push((verdict.to_owned(), part.to_owned()));
        rest = more.trim_start();
    }
    found
}

/// Replaces the waits of a program, the first of them first; what isn't as expected.
fn replace(name: &str, program: &Directory) -> String {
    let mut failures = String::new();
    for (verdict, part) in expectations(&program.read(name)) {
        let before = program.read(name);
        let Some(line) = before.lines().position(|l| l.contains(WAIT)) else {
            let _ = writeln!(failures, "{name}: no wait is left to be {verdict}");
            break;
        };
        let at = (line + 1).to_string();
        let arguments = [
            "rewrite",
            name,
            "--at",
            &at,
            "--apply",
            "replace-device-sync",
            "--in-place",
        ];
        let run = gridfuse(program.path(), &arguments);
        let story = run.story();
        let refused = verdict == "refused";
        let told = part.is_empty() || story.contains(&part);
        let assumed = story.contains("is right only if");
        if run.code != Some(i32::from(refused)) || !told || assumed != (verdict == "assumes") {
            let _ = writeln!(failures, "{name}: expected {verdict} {part}: {story}");
        }
        if refused {
            assert_eq!(before, program.read(name), "{name} is refused, but has changed");
        }
    }
    failures
}

fn programs() -> Vec<(String, Directory)> {
    let fixtures = files_of(&workspace::root().join("tests/fixtures/device_sync"));
    fixtures
        .iter()
        .filter(|(name, _)| is_asked_for(name))
        .map(|(name, text)| (name.clone(), directory(&[(name, text)])))
        .collect()
}

fn output(executable: &Executable, seed: u64) -> Result<String, String> {
    let options = RunOptions {
        seed,
        timeout: PATIENCE,
        device_sync: true,
        ..RunOptions::default()
    };
    let outcome = executable.run(&options).expect("the program starts");
    if outcome.is_success() {
        Ok(outcome.stdout)
    } else {
        Err(format!("seed {seed}: {outcome}"))
    }
}

#[test]
fn waits_are_replaced() {
    let failures = in_parallel(&programs(), |(name, program)| {
        let original = program.read(name);
        let mut failures = replace(name, program);
        let text = program.read(name);
        if text.contains(WAIT) {
            return failures;
        }
        if let Err(failure) = Nvcc::get().check_compiles(&program.file(name)) {
            let _ = writeln!(failures, "{name}: {failure}{text}");
        }
        let programs = [Program::new(name, original), Program::new(name, text.clone())];
        let built = Emulator::get().build_all(&[&programs[0], &programs[1]]);
        let mut first: Option<String> = None;
        for (what, built) in ["the original", "the result"].iter().zip(built) {
            let executable = match built {
                Ok(executable) => executable,
                Err(failure) => {
                    let _ = writeln!(failures, "{name}: {what}: {failure}{text}");
                    continue;
                }
            };
            for seed in 1..25 {
                let found = output(&executable, seed);
                match (&found, &first) {
                    (Ok(found), None) => first = Some(found.clone()),
                    (Ok(found), Some(wanted)) if found == wanted => {}
                    (Ok(found), Some(_)) => {
                        let _ = writeln!(failures, "{name}: {what}, seed {seed}, prints\n{found}{text}");
                        break;
                    }
                    (Err(failure), _) => {
                        let _ = writeln!(failures, "{name}: {what}: {failure}{text}");
                        break;
                    }
                }
            }
        }
        failures
    });
    assert!(failures.concat().is_empty(), "{}", failures.concat());
}

fn program(name: &str) -> Directory {
    let path = workspace::root().join("tests/fixtures/device_sync").join(name);
    directory(&[(name, &std::fs::read(path).expect("the program"))])
}

/// `check --fix` replaces what is proven, and leaves what isn't to whoever knows.
#[test]
fn check_fixes_what_is_proven() {
    for (name, left) in [
        ("driver.cu", 0),
        ("scan.cu", 0),
        ("time_steps.cu", 1),
        ("until_done.cu", 0),
        ("loop_of_all_threads.cu", 1),
    ] {
        let program = program(name);
        let run = gridfuse(program.path(), &["check", name, "--fix"]);
        assert_eq!(program.read(name).matches(WAIT).count(), left, "{}", run.story());
    }
}

/// `explain` says at the launch what becomes of the wait behind it.
#[test]
fn explain_tells_of_the_wait() {
    for (name, line, verdict) in [
        ("driver.cu", "scale<<<", "eligible"),
        ("until_done.cu", "relax<<<", "eligible"),
        ("loop_of_all_threads.cu", "add<<<", "ineligible"),
    ] {
        let program = program(name);
        let number = program
            .read(name)
            .lines()
            .position(|l| l.contains(line))
            .expect("the launch")
            + 1;
        let at = format!("{name}:{number}");
        let report = gridfuse(program.path(), &["explain", &at, "--format", "json"])
            .expect_code(0)
            .json();
        assert_eq!(report["launches"][0]["sync"]["replace"]["verdict"], verdict, "{name}");
        let text = gridfuse(program.path(), &["explain", &at]).expect_code(0);
        assert!(text.stdout.contains("replace-device-sync"), "{}", text.story());
    }
}

/// What is kept in sight stays so: without the wait, and without a kernel in its place, the emulator sees a race.
#[test]
fn without_the_wait_there_is_a_race() {
    let name = "block_uses_result.cu";
    let fixtures = files_of(&workspace::root().join("tests/fixtures/device_sync"));
    let (_, text) = fixtures.iter().find(|(found, _)| found == name).expect("the program");
    let text = String::from_utf8_lossy(text).replace("        cudaDeviceSynchronize();\n", "");
    let executable = Emulator::get().build(&Program::new(name, text)).expect("it builds");
    assert!((1..25).any(|seed| output(&executable, seed).is_err()));
}
