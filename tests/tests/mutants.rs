//! The power of the emulator: every mistake of `tests/emulator/mutants/mutants.toml`, made in the runtime header or in a
//! rewritten program, is noticed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fmt::Write as _;
use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use gridfuse_codeactions::runtime::{HEADER, HEADER_NAME};
use gridfuse_tests::cli::in_parallel;
use gridfuse_tests::emulator::rewritten::{device_launches, rewrite};
use gridfuse_tests::emulator::run::RunOptions;
use gridfuse_tests::emulator::{Emulator, Program};
use gridfuse_tests::patience::PATIENCE;
use gridfuse_tests::workspace;
use serde::Deserialize;

/// The schedules under which a mutant has to be noticed.
const SEEDS: RangeInclusive<u64> = 1..=150;

/// The schedules under which what is right has to go well. Other tests run the same header under many more.
const SEEDS_OF_THE_RIGHT: RangeInclusive<u64> = 1..=50;

/// The program that rewrites are applied to.
const REWRITTEN: &str = "rewritten.cu";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutants {
    header: Vec<HeaderMutant>,
    rewrite: Vec<RewriteMutant>,
}

/// A change of `gridfuse.cuh`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderMutant {
    name: String,
    program: String,
    find: String,
    replace: String,
}

/// A change of what a rewrite makes of [`REWRITTEN`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RewriteMutant {
    name: String,
    rewrite: String,
    find: String,
    replace: String,
}

fn directory() -> PathBuf {
    workspace::root().join("tests/emulator/mutants")
}

fn text_of(name: &str) -> String {
    fs::read_to_string(directory().join(name)).unwrap()
}

fn mutants() -> Mutants {
    toml::from_str(&text_of("mutants.toml")).unwrap()
}

fn changed(name: &str, text: &str, find: &str, replace: &str) -> String {
    assert_eq!(text.matches(find).count(), 1, "{name}: `{find}` has to occur once");
    text.replacen(find, replace, 1)
}

/// The program with a launch rewritten; without mutation it has to be right.
fn rewritten(id: &str) -> Program {
    let program = Program::new(REWRITTEN, text_of(REWRITTEN));
    let launches = device_launches(&program);
    let [launch] = launches.as_slice() else {
        panic!("{REWRITTEN} has {} launches", launches.len())
    };
    rewrite(&program, launch, id).unwrap().program
}

/// What went wrong with a program under one of the schedules.
fn noticed(program: &Program, mut seeds: RangeInclusive<u64>, timeout: Duration) -> Option<String> {
    let executable = match Emulator::get().build(program) {
        Ok(executable) => executable,
        Err(failure) => return Some(format!("does not compile: {failure}")),
    };
    seeds.find_map(|seed| {
        let options = RunOptions {
            timeout,
            ..RunOptions::seed(seed)
        };
        let outcome = executable.run(&options).unwrap();
        (!outcome.is_success()).then(|| format!("seed {seed}: {outcome}"))
    })
}

/// An environment variable: mutants whose name has this in it are tried alone.
const ONLY: &str = "GRIDFUSE_TEST_MUTANTS";

/// A mutant that runs for so long hangs. If it only was slow, as the machine does much else, it counts as noticed.
const HANGS: Duration = Duration::from_secs(60);

#[test]
fn what_is_right_goes_well() {
    let mutants = mutants();
    let mut programs: Vec<String> = mutants.header.into_iter().map(|m| m.program).collect();
    programs.sort();
    programs.dedup();
    let mut rewrites: Vec<String> = mutants.rewrite.into_iter().map(|m| m.rewrite).collect();
    rewrites.sort();
    rewrites.dedup();
    let mut jobs: Vec<(String, Program)> = Vec::new();
    for name in programs {
        let program = Program::new(&name, text_of(&name)).with_file(HEADER_NAME, HEADER.clone());
        jobs.push((name, program));
    }
    for id in rewrites {
        let program = rewritten(&id);
        jobs.push((format!("{REWRITTEN} after {id}"), program));
    }
    let failures = in_parallel(&jobs, |(name, program)| {
        noticed(program, SEEDS_OF_THE_RIGHT, PATIENCE)
            .map_or_else(String::new, |failure| format!("{name}: {failure}\n"))
    });
    assert_eq!(failures.concat(), "");
}

#[test]
fn every_mutant_is_killed() {
    let mut mutants = mutants();
    let only = std::env::var(ONLY).unwrap_or_default();
    mutants.header.retain(|mutant| mutant.name.contains(&only));
    mutants.rewrite.retain(|mutant| mutant.name.contains(&only));
    let mut jobs: Vec<(&str, Program)> = Vec::new();
    for mutant in &mutants.header {
        let header = changed(&mutant.name, &HEADER, &mutant.find, &mutant.replace);
        let program = Program::new(&mutant.program, text_of(&mutant.program)).with_file(HEADER_NAME, header);
        jobs.push((&mutant.name, program));
    }
    for mutant in &mutants.rewrite {
        let program = rewritten(&mutant.rewrite);
        let text = program
            .files()
            .iter()
            .find(|(path, _)| path.ends_with(REWRITTEN))
            .unwrap()
            .1;
        let text = changed(&mutant.name, text, &mutant.find, &mutant.replace);
        jobs.push((&mutant.name, program.with_file(REWRITTEN, text)));
    }
    let results = in_parallel(&jobs, |(_, program)| noticed(program, SEEDS, HANGS));
    let mut survivors = String::new();
    for ((name, _), result) in jobs.iter().zip(&results) {
        match result {
            Some(how) => println!("killed: {name}: {}", how.lines().nth(1).unwrap_or(how)),
            None => {
                let _ = writeln!(survivors, "{name}");
            }
        }
    }
    let killed = results.iter().flatten().count();
    println!("{killed} of {} mutants killed", jobs.len());
    assert_eq!(survivors, "", "not noticed");
    assert!(jobs.len() >= 25 || !only.is_empty());
}
