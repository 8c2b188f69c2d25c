//! Random programs with dynamic parallelism do the same after a rewrite as before, under every schedule that is tried.
//!
//! More of them: `cargo run --release -p gridfuse-tests --bin fuzz -- --help`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::PathBuf;
use std::time::Duration;

use gridfuse_tests::emulator::Emulator;
use gridfuse_tests::fuzz::campaign::{self, Plan};
use gridfuse_tests::fuzz::check::Settings;
use gridfuse_tests::fuzz::rewrite::Wish;

/// Seeds of the programs that are always tried.
const PROGRAMS: u64 = 300;

#[test]
fn random_programs() {
    let emulator = Emulator::get();
    let keep = std::env::var_os("GRIDFUSE_FUZZ_KEEP").map(PathBuf::from);
    let plan = Plan {
        seed: 0,
        programs: Some(PROGRAMS),
        time: None,
        jobs: 2,
        keep,
        shrink: Duration::from_secs(30),
        settings: Settings {
            schedules: 2,
            wish: Wish { variants: 4, steps: 3 },
            ..Settings::default()
        },
        progress: false,
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
