//! The inputs that the fuzzer has kept, and each that has once been a finding, are run again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::PathBuf;

use gridfuse_tests::workspace;

/// Runs a target on what is kept for it; a panic names the file.
fn replay(target: &str, run: fn(&[u8])) {
    let directory = workspace::root().join("tests/fuzz-targets/corpus").join(target);
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", directory.display());
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let result = std::panic::catch_unwind(|| run(&bytes));
        assert!(result.is_ok(), "{} fails", file.display());
    }
}

#[test]
fn queries() {
    replay("queries", gridfuse_fuzz_targets::queries::run);
}

#[test]
fn edits() {
    replay("edits", gridfuse_fuzz_targets::edits::run);
}

#[test]
fn offers() {
    replay("offers", gridfuse_fuzz_targets::offers::run);
}

#[test]
fn transport() {
    replay("transport", gridfuse_fuzz_targets::transport::run);
}
