//! Where the product starts programs, and where it writes files: a new place has to be looked at, and added here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gridfuse_tests::workspace;

/// Places that start a program, by file.
const STARTS: &[(&str, usize)] = &[
    // git, where it lies outside of the repository, to tell what has changed.
    ("server/src/cli/changed.rs", 1),
    // `nvcc --version` and nvidia-smi, where they lie outside of the project.
    ("server/src/doctor/mod.rs", 1),
    // The server's own program, to measure.
    ("server/src/lsp/measure.rs", 1),
    // nvcc, with its arguments one by one.
    ("server/src/measure/build.rs", 1),
    ("server/src/measure/probe.rs", 2),
    // gridfuse's own program, to clean up.
    ("server/src/measure/guard.rs", 1),
    // The `build` line of gridfuse.toml, by a shell: for Unix and for Windows.
    ("server/src/measure/project_build.rs", 2),
    // The words of the runner.
    ("server/src/measure/remote/mod.rs", 1),
    // What was built.
    ("server/src/measure/run.rs", 1),
];

/// Places that give a shell a line.
const SHELLS: &[(&str, usize)] = &[
    // A setting for git.
    ("server/src/cli/changed.rs", 1),
    // A flag of compilers.
    ("server/src/compile_commands/flags.rs", 1),
    ("server/src/measure/project_build.rs", 1),
    ("server/src/measure/remote/mod.rs", 2),
];

/// Occurrences of a text in the product's sources, tests left out, by file.
fn occurrences(of: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for part in ["server/src", "analysis/src", "codeactions/src"] {
        search(&workspace::root().join(part), of, &mut found);
    }
    found
}

fn search(directory: &Path, of: &str, found: &mut BTreeMap<String, usize>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.ends_with("tests") {
            continue;
        }
        if path.is_dir() {
            search(&path, of, found);
        } else if path.extension().is_some_and(|suffix| suffix == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let product = text.split("\nmod tests {").next().unwrap_or_default();
            let count = product.matches(of).count();
            if count > 0 {
                let name = path.strip_prefix(workspace::root()).unwrap().display().to_string();
                found.insert(name, count);
            }
        }
    }
}

fn known(places: &[(&str, usize)]) -> BTreeMap<String, usize> {
    places
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

#[test]
fn programs_are_started_in_known_places() {
    assert_eq!(occurrences("Command::new("), known(STARTS));
}

#[test]
fn shells_are_given_lines_in_known_places() {
    assert_eq!(occurrences("\"-c\""), known(SHELLS));
}

/// The analyses and the rewrites touch no disk at all.
#[test]
fn only_the_server_writes() {
    for writes in ["std::fs", "std::process", "std::net"] {
        let found = occurrences(writes);
        let outside: Vec<&String> = found.keys().filter(|name| !name.starts_with("server/")).collect();
        assert!(outside.is_empty(), "{writes} in {outside:?}");
    }
    assert!(occurrences("std::net").is_empty());
}
