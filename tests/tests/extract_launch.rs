//! `extract-launch`: what it makes of loops as strangers write them compiles, computes what the originals compute, and can be
//! optimized further.
//!
//! Each program of `tests/fixtures/extract_launch` has a loop with `// <- loop`. It is extracted, but those of programs that begin with
//! `// refused: part of a reason`; then the rewrites of launches are applied to what came of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fmt::Write as _;

use gridfuse_tests::cli::{Directory, directory, files_of, gridfuse, in_parallel};
use gridfuse_tests::emulator::run::{Executable, RunOptions};
use gridfuse_tests::emulator::{Emulator, Program};
use gridfuse_tests::fixture::is_asked_for;
use gridfuse_tests::nvcc::Nvcc;
use gridfuse_tests::patience::PATIENCE;
use gridfuse_tests::workspace;

const ID: &str = "extract-launch";

/// Rewrites that fit the launch of each program.
const NEXT: [&str; 4] = ["optimize", "aggregate-block", "threshold", "serialize"];

/// Schedules of each program.
const SEEDS: u64 = 8;

fn programs() -> Vec<(String, String)> {
    let fixtures = files_of(&workspace::root().join("tests/fixtures/extract_launch"));
    fixtures
        .iter()
        .filter(|(name, _)| is_asked_for(name))
        .map(|(name, text)| (name.clone(), String::from_utf8_lossy(text).into_owned()))
        .collect()
}

/// The number of the first line that has a text.
fn line(text: &str, what: &str) -> String {
    let found = text.lines().position(|line| line.contains(what));
    (found.unwrap_or_else(|| panic!("no {what} in\n{text}")) + 1).to_string()
}

/// Applies a rewrite to a line of a program.
fn apply(program: &Directory, name: &str, at: &str, id: &str) -> Result<(), String> {
    let run = gridfuse(
        program.path(),
        &["rewrite", name, "--at", at, "--apply", id, "--in-place"],
    );
    match run.code {
        Some(0) => Ok(()),
        _ => Err(run.story()),
    }
}

fn output(executable: &Executable, seed: u64) -> Result<String, String> {
    let options = RunOptions {
        seed,
        timeout: PATIENCE,
        ..RunOptions::default()
    };
    let outcome = executable.run(&options).expect("the program starts");
    if outcome.is_success() {
        Ok(outcome.stdout)
    } else {
        Err(format!("seed {seed}: {outcome}"))
    }
}

/// The results of a program: the loop extracted, and that with each further rewrite; what isn't as expected.
fn results(name: &str, text: &str, failures: &mut String) -> Vec<(String, Program)> {
    let mut found = Vec::new();
    let extracted = directory(&[(name, text.as_bytes())]);
    let refused = text.lines().next().and_then(|line| line.strip_prefix("// refused: "));
    match (apply(&extracted, name, &line(text, "// <- loop"), ID), refused) {
        (Ok(()), None) => {}
        (Err(story), Some(why)) if story.contains(why) => return found,
        (result, _) => {
            let _ = writeln!(failures, "{name}: {result:?}");
            return found;
        }
    }
    let plain = extracted.read(name);
    let launch = line(&plain, "/ 128 + 1, 128");
    for id in [""].into_iter().chain(NEXT) {
        let program = directory(&[(name, plain.as_bytes())]);
        if !id.is_empty()
            && let Err(story) = apply(&program, name, &launch, id)
        {
            let _ = writeln!(failures, "{name}, then {id}: {story}\n{plain}");
            continue;
        }
        if let Err(failure) = Nvcc::get().check_compiles(&program.file(name)) {
            let _ = writeln!(failures, "{name}, then {id}: {failure}{}", program.read(name));
        }
        let mut built = Program::new(name, program.read(name));
        if program.file("gridfuse.cuh").is_file() {
            built = built.with_file("gridfuse.cuh", program.read("gridfuse.cuh"));
        }
        found.push((id.to_owned(), built));
    }
    found
}

#[test]
fn child_grids_compute_what_the_loop_did() {
    let failures = in_parallel(&programs(), |(name, text)| {
        let mut failures = String::new();
        let mut all = results(name, text, &mut failures);
        if all.is_empty() {
            return failures;
        }
        all.insert(0, ("original".to_owned(), Program::new(name, text.clone())));
        let programs: Vec<&Program> = all.iter().map(|(_, program)| program).collect();
        let built = Emulator::get().build_all(&programs);
        let mut first: Option<String> = None;
        for ((what, _), built) in all.iter().zip(built) {
            let executable = match built {
                Ok(executable) => executable,
                Err(failure) => {
                    let _ = writeln!(failures, "{name}, {what}: {failure}");
                    continue;
                }
            };
            for seed in 1..SEEDS {
                match (output(&executable, seed), &first) {
                    (Ok(found), None) => first = Some(found),
                    (Ok(found), Some(wanted)) if found == *wanted => {}
                    (Ok(found), Some(_)) => {
                        let _ = writeln!(failures, "{name}, {what}, seed {seed}, prints\n{found}");
                        break;
                    }
                    (Err(failure), _) => {
                        let _ = writeln!(failures, "{name}, {what}: {failure}");
                        break;
                    }
                }
            }
        }
        failures
    });
    assert!(failures.concat().is_empty(), "{}", failures.concat());
}
