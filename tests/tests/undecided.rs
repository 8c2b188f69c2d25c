//! Launches under an `#if` that a header decides which can't be seen: what is rewritten computes the same, whichever way it is decided.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fmt::Write as _;
use std::path::Path;

use gridfuse_tests::emulator::rewritten::{device_launches, offered};
use gridfuse_tests::emulator::run::{End, RunOptions};
use gridfuse_tests::emulator::{Emulator, Program};
use gridfuse_tests::fixture::is_asked_for;
use gridfuse_tests::patience::PATIENCE;
use gridfuse_tests::{expect, workspace};

/// The header that gridfuse doesn't see, as it may be.
const SETTINGS: [(&str, &str); 2] = [("with FAST", "#define FAST 1\n"), ("without FAST", "\n")];

#[test]
fn both_branches_compute_the_same() {
    let root = workspace::root().join("tests/fixtures/undecided");
    let runtime = workspace::root().join("codeactions/runtime");
    let mut names: Vec<_> = root
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.retain(|name| Path::new(name).extension().is_some_and(|e| e == "cu"));
    names.sort();
    let (mut failures, mut offers) = (String::new(), String::new());
    for name in names.iter().filter(|name| is_asked_for(&name.to_string_lossy())) {
        let program = Program::load(&root, &[name], &[&runtime]).unwrap();
        let mut variants = vec![("as it is".to_owned(), program.clone())];
        for site in device_launches(&program) {
            let mut ids: Vec<&str> = Vec::new();
            for rewritten in offered(&program, &site, |_| false) {
                ids.extend(&rewritten.ids);
                let what = format!("line {} after {}", site.line, rewritten.ids.join(", "));
                variants.push((what, rewritten.program));
            }
            let _ = writeln!(offers, "{}:{} {}", Path::new(name).display(), site.line, ids.join(" "));
        }
        for (setting, header) in SETTINGS {
            let programs: Vec<Program> = variants
                .iter()
                .map(|(_, program)| program.clone().with_file("settings.h", header))
                .collect();
            let built = Emulator::get().build_all(&programs.iter().collect::<Vec<_>>());
            let mut wanted: Option<String> = None;
            for ((what, _), built) in variants.iter().zip(built) {
                let executable = match built {
                    Ok(executable) => executable,
                    Err(why) => {
                        let _ = writeln!(failures, "{} {setting}, {what}: {why}", Path::new(name).display());
                        continue;
                    }
                };
                for seed in 1..=4 {
                    let options = RunOptions {
                        seed,
                        timeout: PATIENCE,
                        ..RunOptions::default()
                    };
                    let outcome = executable.run(&options).unwrap();
                    let wanted = wanted.get_or_insert_with(|| outcome.stdout.clone());
                    if outcome.end != End::Code(0) || outcome.stdout != *wanted {
                        let file = Path::new(name).display();
                        let _ = writeln!(failures, "{file} {setting}, {what}, seed {seed}:\n{outcome}");
                        break;
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
    if names.iter().all(|name| is_asked_for(&name.to_string_lossy())) {
        expect::file(&root.join("offers.expect"), &offers, "undecided");
    }
}
