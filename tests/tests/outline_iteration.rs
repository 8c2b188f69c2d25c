//! `outline-iteration`: what it makes of loops as strangers write them compiles, and computes what the originals compute.
//!
//! Each program of `tests/fixtures/host_iteration` has loops that `host-iteration` finds; all of them are outlined, but those of programs
//! that begin with `// refused: part of a reason`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fmt::Write as _;

use gridfuse_tests::cli::{Directory, directory, files_of, gridfuse, in_parallel};
use gridfuse_tests::emulator::run::{Executable, RunOptions};
use gridfuse_tests::emulator::{Emulator, Program};
use gridfuse_tests::fixture::is_asked_for;
use gridfuse_tests::nvcc::Nvcc;
use gridfuse_tests::patience::PATIENCE;
use gridfuse_tests::workspace;

const ID: &str = "outline-iteration";
const DIAGNOSTIC: &str = "host-iteration";

/// Schedules, each with another number of blocks that are resident.
const SEEDS: u64 = 25;

fn programs() -> Vec<(String, Directory)> {
    let fixtures = files_of(&workspace::root().join("tests/fixtures/host_iteration"));
    fixtures
        .iter()
        .filter(|(name, _)| is_asked_for(name))
        .map(|(name, text)| (name.clone(), directory(&[(name, text)])))
        .collect()
}

/// The lines where the host waits in each round.
fn loops(name: &str, program: &Directory) -> Vec<u64> {
    let report = gridfuse(program.path(), &["check", name, "--format", "json"]).json();
    let found = report["findings"].as_array().expect("findings");
    let own = found.iter().filter(|d| d["id"] == DIAGNOSTIC);
    own.map(|d| d["place"]["start"]["line"].as_u64().expect("a line"))
        .collect()
}

/// Outlines the loops of a program; what isn't as expected.
fn outline(name: &str, program: &Directory) -> String {
    let mut failures = String::new();
    let text = program.read(name);
    let refused = text.lines().next().and_then(|line| line.strip_prefix("// refused: "));
    let found = loops(name, program);
    if found.is_empty() {
        let _ = writeln!(failures, "{name}: no loop is found");
    }
    for _ in &found {
        let Some(line) = loops(name, program).first().copied() else {
            break;
        };
        let at = line.to_string();
        let arguments = ["rewrite", name, "--at", &at, "--apply", ID, "--in-place"];
        let run = gridfuse(program.path(), &arguments);
        let story = run.story();
        match refused {
            Some(why) if run.code == Some(1) && story.contains(why) => {
                assert_eq!(text, program.read(name), "{name} is refused, but has changed");
                break;
            }
            None if run.code == Some(0) => {}
            _ => {
                let _ = writeln!(failures, "{name}: {story}");
                break;
            }
        }
    }
    failures
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

#[test]
fn one_grid_computes_what_the_loop_did() {
    let failures = in_parallel(&programs(), |(name, program)| {
        let original = program.read(name);
        let mut failures = outline(name, program);
        let text = program.read(name);
        if text == original {
            return failures;
        }
        if let Err(failure) = Nvcc::get().check_compiles(&program.file(name)) {
            let _ = writeln!(failures, "{name}: {failure}{text}");
        }
        let header = program.read("gridfuse.cuh");
        let programs = [
            Program::new(name, original),
            Program::new(name, text.clone()).with_file("gridfuse.cuh", header),
        ];
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
            for seed in 1..SEEDS {
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

/// The loops of the corpus, whose kernels launch, after `serialize`.
#[test]
fn loops_of_the_corpus() {
    for (name, launch) in [("bfs.cu", "expand<<<"), ("sssp.cu", "relax<<<")] {
        let path = workspace::root().join("tests/corpus").join(name);
        let program = directory(&[(name, &std::fs::read(path).expect("the program"))]);
        let at = |what: &str| {
            let line = program.read(name).lines().position(|line| line.contains(what));
            (line.expect("it is there") + 1).to_string()
        };
        let refused = gridfuse(
            program.path(),
            &["rewrite", name, "--at", &at("_host == "), "--apply", ID],
        );
        assert!(
            refused.story().contains("apply `serialize` to its launches first"),
            "{}",
            refused.story()
        );
        for (id, place) in [("serialize", launch), (ID, "_host == ")] {
            let arguments = ["rewrite", name, "--at", &at(place), "--apply", id, "--in-place"];
            gridfuse(program.path(), &arguments).expect_code(0);
        }
        Nvcc::get().check_compiles(&program.file(name)).expect("it compiles");
        let built = Program::new(name, program.read(name)).with_file("gridfuse.cuh", program.read("gridfuse.cuh"));
        let executable = Emulator::get().build(&built).expect("it builds");
        for (seed, variant) in (1..7).zip(["serial", "naive"].into_iter().cycle()) {
            let words = [
                "--variant",
                variant,
                "--vertices",
                "300",
                "--repeat",
                "1",
                "--input",
                "road",
            ];
            let options = RunOptions {
                seed,
                timeout: PATIENCE,
                arguments: words.map(str::to_owned).to_vec(),
                ..RunOptions::default()
            };
            let outcome = executable.run(&options).expect("the program starts");
            assert!(
                outcome.is_success() && outcome.stdout.contains("\"pass\""),
                "{name}, seed {seed}: {outcome}"
            );
        }
    }
}

/// Mistakes in what the rewrite makes, each of which the emulator notices: another result, a race, or a grid that never ends.
#[test]
fn mistakes_are_noticed() {
    let mistakes = [
        ("bellman_ford.cu", "rounds.fill(d_changed, 0, sizeof(int));", ""),
        (
            "rodinia_bfs.cu",
            "\t\tstop = false;\n\t\trounds.store(d_over, &stop, sizeof(bool));",
            "",
        ),
        ("level_from_symbol.cu", "cur = 0; ; ++cur", "cur = 0; ;"),
        ("frontier_queue.cu", "rounds.swap(d_frontier, d_next);", ""),
        ("frontier_queue.cu", "depth++;", ""),
        ("managed_flag.cu", "grid_rounds.load(changed)", "false"),
        (
            "stencil_swap.cu",
            "rounds.finish({d_a, d_b, active, steps});",
            "rounds.finish({d_b, d_a, active, steps});",
        ),
        (
            "stencil_swap.cu",
            "rounds.run(grid, [&]",
            "rounds.run(dim3(grid.x - 1), [&]",
        ),
    ];
    let failures = in_parallel(&mistakes, |(name, find, replace)| {
        let (_, program) = programs_named(name);
        let expected = Emulator::get()
            .build(&Program::new(*name, program.read(name)))
            .map(|original| output(&original, 1).expect("the original runs"))
            .expect("it builds");
        let failures = outline(name, &program);
        let text = program.read(name);
        if !failures.is_empty() || text.matches(find).count() != 1 {
            return format!("{name}: `{find}` has to occur once: {failures}{text}");
        }
        let wrong = Program::new(*name, text.replacen(find, replace, 1))
            .with_file("gridfuse.cuh", program.read("gridfuse.cuh"));
        let wrong = Emulator::get().build(&wrong).expect("it builds");
        let mut options = RunOptions {
            timeout: std::time::Duration::from_secs(30),
            ..RunOptions::default()
        };
        let noticed = (1..40).any(|seed| {
            options.seed = seed;
            let outcome = wrong.run(&options).expect("the program starts");
            !outcome.is_success() || outcome.stdout != expected
        });
        if noticed {
            String::new()
        } else {
            format!("{name}: nobody notices `{find}` becoming `{replace}`\n")
        }
    });
    assert!(failures.concat().is_empty(), "{}", failures.concat());
}

fn programs_named(name: &str) -> (String, Directory) {
    let path = workspace::root().join("tests/fixtures/host_iteration").join(name);
    (
        name.to_owned(),
        directory(&[(name, &std::fs::read(path).expect("the program"))]),
    )
}
