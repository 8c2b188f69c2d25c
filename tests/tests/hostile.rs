//! Hostile files: an answer within bounds of processor time and memory, and a sentence where something is too large.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use gridfuse_tests::cli::{Directory, directory, in_parallel};
use gridfuse_tests::hostile::measure::{Limits, cost, first_answer, run};
use gridfuse_tests::hostile::{Files, Hostile, all, launch_line};
use gridfuse_tests::lsp_client::{Capabilities, Client};
use gridfuse_tests::workspace::gridfuse_bin;
use serde_json::{Value, json};

/// Processor time for an answer, in seconds: the goal for a release build, and five times as much for a debug build.
const CPU: f64 = if cfg!(debug_assertions) { 5.0 } else { 1.0 };

/// Processor time is measured in a machine that does other things as well: caches are cold, and cores share their units.
const BUSY: f64 = 2.0;

/// Memory for an answer, in MB.
const MEMORY: u64 = 500;

/// Those for which the bounds don't hold yet: thousands of functions that call or launch each other. The program `hostile` shows what they
/// take.
const OPEN: &[&str] = &["call-chain", "call-cycle", "call-mesh", "launch-chain", "launch-cycle"];

/// Those that take a server more than a second on some machines.
const LATE: &[&str] = &[
    "call-chain",
    "call-cycle",
    "call-mesh",
    "launch-chain",
    "launch-cycle",
    "variables-in-loops",
];

fn limits() -> Limits {
    Limits {
        cpu: CPU * BUSY,
        memory: MEMORY,
    }
}

fn written(files: &Files) -> Directory {
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_slice()))
        .collect();
    directory(&files)
}

fn named(name: &str) -> Hostile {
    all().into_iter().find(|hostile| hostile.name == name).expect(name)
}

#[test]
fn check_and_explain_answer_within_bounds() {
    let bounded: Vec<Hostile> = all().into_iter().filter(|h| !OPEN.contains(&h.name)).collect();
    assert!(
        bounded.len() + OPEN.len() == all().len(),
        "a name in OPEN is no project"
    );
    let wrong = in_parallel(&bounded, |hostile| {
        let files = (hostile.make)(1);
        let directory = written(&files);
        let place = format!("hostile.cu:{}", launch_line(&files));
        let mut wrong = Vec::new();
        for arguments in [["check", "hostile.cu"], ["explain", place.as_str()]] {
            let ran = run(gridfuse_bin(), directory.path(), &arguments, limits()).expect("gridfuse runs");
            // 2: bytes that aren't text, or no launch there.
            if ran.ended || !matches!(ran.code, Some(0..=2)) {
                wrong.push(format!(
                    "{} of {}: {:?}, exit code {:?}",
                    arguments[0], hostile.name, ran.cost, ran.code
                ));
            }
        }
        wrong
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What `check` says about the main file of a project: the ids and messages of its diagnostics.
fn said(hostile: &Hostile) -> Vec<(String, String)> {
    let directory = written(&(hostile.make)(1));
    let arguments = ["check", "--format", "json", "hostile.cu"];
    let ran = run(gridfuse_bin(), directory.path(), &arguments, limits()).expect("gridfuse runs");
    let found: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout));
    let text = |diagnostic: &Value, field: &str| diagnostic[field].as_str().unwrap_or_default().to_owned();
    let all = found["findings"].as_array().expect("findings");
    all.iter().map(|d| (text(d, "id"), text(d, "message"))).collect()
}

#[test]
fn a_server_answers_what_it_knows_after_a_second() {
    for name in LATE {
        let files = (named(name).make)(1);
        let directory = written(&files);
        let text = String::from_utf8(files[0].1.clone()).expect("a text");
        let first = first_answer(gridfuse_bin(), directory.path(), &directory.file("hostile.cu"), &text);
        // Whole or not, it comes after a second of patience and fifty milliseconds for what is known, and ten times that on a busy
        // machine, where a whole answer can come first though the second is over. That a late one says so is a test of `lsp_late.rs`.
        assert!(first.wall < 1.05 * 10.0, "{name}: {first:?}");
        assert!(first.cost.memory < MEMORY, "{name}: {first:?}");
    }
}

#[test]
fn what_is_too_large_says_so() {
    let function = "this function is too large to be analysed";
    for (name, sentence) in [
        ("launches-1000", function),
        ("launches-5000", function),
        ("switch-10000", function),
        ("statements-100000", function),
        ("sum-500000", function),
        ("deep-parentheses", function),
        ("deep-unary", function),
        ("gotos-irreducible", function),
        ("deep-namespaces", "too deep"),
        ("file-20mb-kernels", "this file is too large to be analysed"),
    ] {
        let said = said(&named(name));
        let expected = said
            .iter()
            .any(|(id, message)| id == "too-large" && message.contains(sentence));
        assert!(expected, "{name}: {said:?}");
    }
}

#[test]
fn what_is_small_is_analysed() {
    // The same files, a thousand times smaller.
    for name in [
        "launches-1000",
        "switch-10000",
        "statements-100000",
        "gotos-irreducible",
    ] {
        let hostile = named(name);
        let small = Hostile {
            make: match name {
                "launches-1000" => |_| (named("launches-1000").make)(500),
                "switch-10000" => |_| (named("switch-10000").make)(1_000),
                "statements-100000" => |_| (named("statements-100000").make)(1_000),
                _ => |_| (named("gotos-irreducible").make)(100),
            },
            ..hostile
        };
        let said = said(&small);
        assert!(said.iter().all(|(id, _)| id != "too-large"), "{name}: {said:?}");
    }
}

#[test]
fn a_server_answers_within_bounds_and_offers_nothing() {
    for name in [
        "launches-1000",
        "switch-10000",
        "sum-500000",
        "deep-unary",
        "file-20mb-kernels",
    ] {
        let files = (named(name).make)(1);
        let directory = written(&files);
        let path = directory.file("hostile.cu");
        let text = String::from_utf8(files[0].1.clone()).expect("a text");
        let mut client = Client::spawn(gridfuse_bin(), &["lsp"]);
        client.initialize(Some(directory.path()), &Capabilities::minimal());
        client.open(&path, &text);
        let said = client.diagnostics(&path);
        let large = said.iter().any(|d| d["code"] == json!("too-large"));
        assert!(large, "{name}: {said:?}");
        let launch = text.rfind("child<<<").expect("a launch");
        client.hover(&path, launch);
        client.code_lenses(&path);
        let actions = client.code_actions(&path, launch..launch, &[], &[]);
        let offered: Vec<&Value> = actions
            .iter()
            .filter(|a| a["disabled"].is_null() && !a["edit"].is_null())
            .collect();
        assert!(offered.is_empty(), "{name}: {offered:?}");
        let cost = cost(client.process_id().expect("a process")).expect("a server");
        let limits = limits();
        // The diagnostics, the hover, the lenses and the menu.
        assert!(
            cost.cpu < 2.0 * limits.cpu && cost.memory < limits.memory,
            "{name}: {cost:?}"
        );
        client.shutdown();
    }
}
