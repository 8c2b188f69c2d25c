//! Random programs with dynamic parallelism do the same after a rewrite as before, under every schedule that is tried.
//!
//! More of them: `cargo run --release -p gridfuse-tests --bin fuzz -- --help`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::PathBuf;
use std::time::Duration;

use gridfuse_tests::cli::files_of;
use gridfuse_tests::emulator::rewritten::{device_launches, offered};
use gridfuse_tests::emulator::run::RunOptions;
use gridfuse_tests::emulator::{Emulator, Program};
use gridfuse_tests::fuzz::campaign::{self, Plan};
use gridfuse_tests::fuzz::check::Settings;
use gridfuse_tests::fuzz::rewrite::Wish;
use gridfuse_tests::patience::PATIENCE;
use gridfuse_tests::workspace;

/// Seeds of the programs that are always tried.
const PROGRAMS: u64 = 50;

#[test]
fn random_programs() {
    let emulator = Emulator::get();
    let keep = std::env::var_os("GRIDFUSE_FUZZ_KEEP").map(PathBuf::from);
    let plan = Plan {
        seed: 0,
        programs: Some(PROGRAMS),
        features: Vec::new(),
        time: None,
        jobs: 2,
        keep,
        shrink: Duration::from_secs(30),
        settings: Settings {
            schedules: 2,
            wish: Wish { variants: 4, steps: 3 },
            timeout: PATIENCE,
            ..Settings::default()
        },
        progress: false,
        commit: None,
        late: |_| (),
    };
    let (summary, found) = campaign::run(&plan, Some(emulator)).unwrap();
    let stories: Vec<String> = found
        .iter()
        .filter(|one| one.minimal.is_some())
        .map(campaign::report)
        .collect();
    assert!(found.is_empty(), "{}\n{}", summary.text(false), stories.join("\n"));
    assert_eq!(summary.programs, PROGRAMS);
    // What is generated must be what rewrites are for.
    assert!(summary.with_rewrites * 10 >= PROGRAMS * 8, "{}", summary.text(true));
    assert!(summary.rewritten > 2 * PROGRAMS, "{}", summary.text(true));
}

/// What stands at a place is rewritten, too: waits, loops of the host; and so are allocations of kernels.
#[test]
fn rewrites_of_places_are_tried() {
    for (feature, wanted) in [
        ("wait for child grids", "replace-device-sync"),
        ("loop of the host", "outline-iteration"),
        ("memory that a kernel allocates", "aggregate-malloc"),
    ] {
        let plan = Plan {
            seed: 0,
            programs: Some(160),
            features: vec![feature.to_owned()],
            time: None,
            jobs: 2,
            keep: None,
            shrink: Duration::ZERO,
            settings: Settings {
                wish: Wish { variants: 40, steps: 1 },
                ..Settings::default()
            },
            progress: false,
            commit: None,
            late: |_| (),
        };
        let (summary, found) = campaign::run(&plan, None).unwrap();
        assert!(found.is_empty(), "{}", summary.text(false));
        assert!(summary.sequences.contains_key(wanted), "{}", summary.text(true));
    }
}

/// Programs that once came out wrong: whatever is offered for their launches does what they do.
#[test]
fn programs_that_came_out_wrong() {
    let emulator = Emulator::get();
    let directory = workspace::root().join("tests/fixtures/fuzz");
    let mut tried = 0;
    for (name, bytes) in files_of(&directory) {
        let program = Program::new(&name, String::from_utf8(bytes).unwrap());
        let mut variants = vec![("as it is".to_owned(), program.clone())];
        for site in device_launches(&program) {
            let offered = offered(&program, &site, |_| true).into_iter();
            variants.extend(offered.map(|r| (format!("line {}: {}", site.line, r.ids.join(",")), r.program)));
        }
        let programs: Vec<&Program> = variants.iter().map(|(_, program)| program).collect();
        let mut wanted: Option<String> = None;
        for ((what, _), executable) in variants.iter().zip(emulator.build_all(&programs)) {
            let executable = executable.unwrap_or_else(|error| panic!("{name}: {what}: {error}"));
            for seed in 1..=4 {
                let outcome = executable.run(&RunOptions::seed(seed)).unwrap();
                assert!(outcome.is_success(), "{name}: {what}: {outcome}");
                let wanted = wanted.get_or_insert_with(|| outcome.stdout.clone());
                assert_eq!(outcome.stdout, *wanted, "{name}: {what}, seed {seed}");
            }
        }
        tried += 1;
    }
    assert!(tried > 0);
}
