//! The emulator agrees with a GPU: every program of `tests/emulator/conformance` prints what `gpu-conformance` recorded, under
//! any schedule.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;

use gridfuse_tests::cli::in_parallel;
use gridfuse_tests::emulator::run::RunOptions;
use gridfuse_tests::emulator::{Emulator, Program};
use gridfuse_tests::gpu::conformance_record::{Conformance, names, source_of};
use gridfuse_tests::patience::PATIENCE;
use gridfuse_tests::workspace;

/// Enough for each kind of schedule to come up.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=6;

/// What is different in what the emulator does.
fn difference(recorded: &Conformance, name: &str) -> Option<String> {
    let root = workspace::root();
    let expected = match recorded.expected(root, name) {
        Ok(expected) => expected,
        Err(error) => return Some(format!("{name}: {error:#}")),
    };
    let source = source_of(name);
    let program = Program::load(root, &[&source], &[Path::new("codeactions/runtime")]).unwrap();
    let executable = match Emulator::get().build(&program) {
        Ok(executable) => executable,
        Err(failure) => return Some(format!("{name}: {failure}")),
    };
    SEEDS.into_iter().find_map(|seed| {
        let options = RunOptions {
            timeout: PATIENCE,
            ..RunOptions::seed(seed)
        };
        let outcome = executable.run(&options).unwrap();
        if outcome.is_success() && outcome.stdout == expected {
            return None;
        }
        Some(format!("{name}, seed {seed}: {outcome}--- on a GPU\n{expected}"))
    })
}

fn recorded() -> Conformance {
    Conformance::load(&workspace::root().join("tests/gpu/results/conformance.json")).unwrap()
}

#[test]
fn programs_print_what_a_gpu_prints() {
    let names = names(workspace::root()).unwrap();
    assert!(names.len() >= 40, "{} programs", names.len());
    let recorded = recorded();
    let differences = in_parallel(&names, |name| difference(&recorded, name));
    let differences: Vec<String> = differences.into_iter().flatten().collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn another_output_is_noticed() {
    let mut recorded = recorded();
    let program = recorded.programs.iter_mut().find(|p| p.name == "child_basic").unwrap();
    program.stdout.push_str("more\n");
    assert!(difference(&recorded, "child_basic").is_some());
}
