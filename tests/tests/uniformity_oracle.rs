//! What gridfuse calls uniform, LLVM's uniformity analysis must not call divergent.
//!
//! `clang++-19` and `opt-19` have to be installed (`tests/run` does it where there is apt); without them nothing is compared, and the
//! test says so. GRIDFUSE_ORACLE_KERNELS is the number of random kernels in place of the usual ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fmt::Write as _;

use gridfuse_tests::cli::{files_of, in_parallel};
use gridfuse_tests::fuzz::generate::generate;
use gridfuse_tests::fuzz::print::print;
use gridfuse_tests::oracle::compare::{Compared, compare};
use gridfuse_tests::oracle::kernels;
use gridfuse_tests::oracle::llvm::Llvm;
use gridfuse_tests::workspace;

/// What LLVM mistakes: source, function and value, and why it is uniform all the same.
const MISTAKES: &[(&str, &str, &str, &str)] = &[
    ("kernels 5", "k11", "__entered_101094", SAME_VALUE),
    ("kernels 5", "k11", "__entered_101114", SAME_VALUE),
    ("program 11", "sweep", "__entered_100133", RETURNED),
    (
        "tests/fixtures/device_sync/error_of_many_threads.cu",
        "parent",
        "__entered_100012",
        RETURNED,
    ),
];

/// What LLVM says of every value where the paths from a divergent branch meet.
const SAME_VALUE: &str =
    "both ways from the divergent branch bring the same value; the other one comes from a uniform `switch`";

/// The same where one way is that of threads which have gone.
const RETURNED: &str = "threads that enter the branch return in it, so that all that come to the end bring 0";

/// Random kernels, in sources of so many.
const KERNELS: u64 = 240;
const KERNELS_OF_A_SOURCE: u64 = 20;

/// Random programs, the same as for the rewrites.
const PROGRAMS: u64 = 24;

/// The sources: those in directories, random programs, random kernels.
fn sources(kernels: u64) -> Vec<(String, String)> {
    let mut sources = Vec::new();
    for directory in [
        "tests/corpus",
        "tests/fixtures/rewrites",
        "tests/fixtures/diagnostics",
        "tests/fixtures/device_sync",
    ] {
        for (name, bytes) in files_of(&workspace::root().join(directory)) {
            if name.ends_with(".cu") {
                sources.push((format!("{directory}/{name}"), String::from_utf8(bytes).expect("UTF-8")));
            }
        }
    }
    for seed in 0..PROGRAMS {
        let mut program = generate(seed);
        program.cuts.clear();
        let mut text = print(&program).files.into_values().collect::<Vec<_>>().concat();
        // Everything is one file here.
        for (name, header) in &program.unfound {
            text = text.replace(&format!("#include \"{name}\""), &header.replace("#pragma once", ""));
        }
        // What its header declares is left out of ours.
        if !text.contains("cooperative_groups") {
            sources.push((format!("program {seed}"), text));
        }
    }
    for number in 0..kernels / KERNELS_OF_A_SOURCE {
        let text = kernels::source(number, KERNELS_OF_A_SOURCE as usize);
        sources.push((format!("kernels {number}"), text));
    }
    sources
}

#[test]
fn what_is_called_uniform_isnt_divergent() {
    let Some(llvm) = Llvm::get() else {
        eprintln!("clang++-19 and opt-19 aren't installed: nothing is compared");
        return;
    };
    let kernels = std::env::var("GRIDFUSE_ORACLE_KERNELS")
        .ok()
        .and_then(|n| n.parse().ok());
    let sources = sources(kernels.unwrap_or(KERNELS));
    let results = in_parallel(&sources, |(name, text)| (name.clone(), compare(llvm, name, text)));
    let (mut all, mut failures) = (Compared::default(), String::new());
    let mut refused = Vec::new();
    for (name, result) in results {
        let compared = match result {
            Ok(compared) => compared,
            Err(errors) => {
                assert!(
                    !name.starts_with("kernels") && !name.starts_with("program"),
                    "{name}: {errors}"
                );
                refused.push((name, errors));
                continue;
            }
        };
        all.values += compared.values;
        all.claimed += compared.claimed;
        all.only_llvm += compared.only_llvm;
        all.left_out += compared.left_out;
        for one in compared.contradictions {
            let known = |m: &&(&str, &str, &str, &str)| {
                (m.0, m.1, m.2) == (&*one.source, &*one.probe.function, &*one.probe.what)
            };
            if MISTAKES.iter().any(|m| known(&m)) {
                continue;
            }
            let (probe, claim) = (&one.probe, &one.claim);
            let _ = writeln!(
                failures,
                "{}:{}: {}: `{}` is {} ({}), but differs among the threads of a {:?}",
                one.source,
                probe.line,
                probe.function,
                probe.what,
                claim.level.name(),
                claim.why,
                one.among
            );
        }
    }
    eprintln!(
        "{} values, {} called uniform; {} only by LLVM; {} functions and {} of {} sources left out",
        all.values,
        all.claimed,
        all.only_llvm,
        all.left_out,
        refused.len(),
        sources.len()
    );
    for (name, errors) in &refused {
        eprintln!("left out: {name}: {}", errors.lines().next().unwrap_or_default());
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(all.claimed > 3_000 && all.values > 2 * all.claimed, "{all:?}");
    assert!(
        refused.len() * 10 <= sources.len(),
        "{} of {} sources were left out",
        refused.len(),
        sources.len()
    );
}
