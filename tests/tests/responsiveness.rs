//! `gridfuse-bench`: its script runs with gridfuse, its client is fast enough, and its page is what the JSON gives.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use gridfuse_tests::lsp_bench::inputs::Input;
use gridfuse_tests::lsp_bench::page;
use gridfuse_tests::lsp_bench::record::{Operation, Report, Settings, Situation};
use gridfuse_tests::lsp_bench::run::{Plan, client, run};
use gridfuse_tests::lsp_bench::servers::Program;
use gridfuse_tests::workspace;

/// The tool itself, which is its own server that does nothing.
fn tool() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_gridfuse-bench"))
}

fn settings() -> Settings {
    Settings {
        rounds: 1,
        opens: 2,
        edits: 2,
        requests: 1,
        keystrokes: 30,
        pace_ms: 10,
        memory_edits: 4,
        limit_s: 60,
        index_s: 60,
        budget_s: 60,
        input_budget_s: 600,
        quiet_ms: 30,
    }
}

fn measured(server: &str, inputs: &[&str]) -> Report {
    let plan = Plan {
        programs: vec![Program::parse(server).unwrap()],
        inputs: inputs.iter().map(|name| Input::named(name).unwrap()).collect(),
        settings: settings(),
        peer_files: 0,
        echo: None,
    };
    let report = run(&plan, "gridfuse-bench".to_owned(), &|_| Ok(())).unwrap();
    assert!(report.problems.is_empty(), "{:#?}", report.problems);
    report
}

#[test]
fn the_script_runs_with_gridfuse() {
    let report = measured("gridfuse", &["lines-100", "shared-2"]);
    for input in ["lines-100", "shared-2"] {
        for operation in Operation::ALL {
            let situations: &[Situation] = match operation {
                Operation::ColdFirst | Operation::ColdIndexed | Operation::Open | Operation::Typing => {
                    &[Situation::Any]
                }
                Operation::EditPush | Operation::EditPull => &[Situation::Elsewhere, Situation::Same],
                _ => &[Situation::Elsewhere, Situation::Same, Situation::Again],
            };
            for situation in situations {
                let found = report.find(input, "gridfuse", operation, *situation);
                let found = found.unwrap_or_else(|| panic!("{input}: no {operation:?} {situation:?}"));
                assert!(found.supported && found.late == 0 && found.count > 0, "{found:?}");
                let (wall, cpu) = (found.wall_ms.unwrap(), found.cpu_ms.unwrap());
                assert!(
                    wall.min > 0.0 && wall.min <= wall.p50 && wall.p99 <= wall.max,
                    "{found:?}"
                );
                assert!(cpu.max > 0.0, "{found:?}");
            }
        }
        let typed = report
            .find(input, "gridfuse", Operation::Typing, Situation::Any)
            .unwrap();
        assert_eq!(typed.count, 30);
        let resolved = report
            .find(input, "gridfuse", Operation::Resolve, Situation::Same)
            .unwrap();
        assert!(resolved.slowest.is_some(), "{resolved:?}");
        let memory = report.memory.iter().find(|memory| memory.input == input).unwrap();
        assert!(
            memory.opened_mib > 1.0 && memory.peak_mib >= memory.opened_mib,
            "{memory:?}"
        );
        assert_eq!(
            memory.edits.iter().map(|(edits, _)| *edits).collect::<Vec<_>>(),
            [1, 2, 3, 4]
        );
    }
    // What is written can be read, and shown.
    let again: Report = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    assert_eq!(again, report);
    let pages = page::pages(&report).unwrap();
    assert!(pages[page::NAME].contains("| lines-100 |"), "{pages:?}");
}

#[test]
fn what_a_server_cannot_do_is_said() {
    let report = measured(&format!("nothing={} echo", tool().display()), &["lines-100"]);
    let hover = report
        .find("lines-100", "nothing", Operation::Hover, Situation::Same)
        .unwrap();
    assert!(hover.supported && hover.count == 1, "{hover:?}");
    for operation in [
        Operation::Menu,
        Operation::Resolve,
        Operation::Lens,
        Operation::EditPull,
    ] {
        let found = report.find("lines-100", "nothing", operation, Situation::Same).unwrap();
        assert!(!found.supported && found.count == 0, "{found:?}");
    }
}

#[test]
fn a_server_that_ends_or_never_answers_is_a_problem() {
    for (server, says) in [
        ("gone=true", "the server"),
        ("mute=sleep 600", "no answer to initialize"),
    ] {
        let plan = Plan {
            programs: vec![Program::parse(server).unwrap()],
            inputs: vec![Input::named("lines-100").unwrap()],
            settings: Settings {
                limit_s: 1,
                ..settings()
            },
            peer_files: 0,
            echo: None,
        };
        let report = run(&plan, String::new(), &|_| Ok(())).unwrap();
        assert!(
            matches!(&report.problems[..], [problem] if problem.contains(says)),
            "{:?}",
            report.problems
        );
        assert!(report.measured.is_empty(), "{:?}", report.measured);
    }
}

/// The least of many is what the client takes itself, whatever else the machine does.
#[test]
fn the_client_takes_less_than_a_fifth_of_a_millisecond() {
    let times = client(tool()).unwrap().unwrap();
    assert!(times.min > 0.0 && times.min < 0.2, "{times:?}");
}

/// The page is there exactly when the measurement is, and is what the measurement gives.
#[test]
fn the_page_is_fresh() {
    let root = workspace::root();
    let docs = root.join("docs");
    let results = root.join(page::RESULTS);
    if !results.exists() {
        assert!(
            !docs.join(page::NAME).exists(),
            "docs/{} is made from nothing",
            page::NAME
        );
        return;
    }
    let output = Command::new(tool())
        .args(["docs", "--check"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Report = serde_json::from_str(&fs::read_to_string(results).unwrap()).unwrap();
    assert!(report.commit.is_some() && report.machine.cores.is_some());
    assert!(
        !report.to_json().unwrap().contains(&*root.to_string_lossy()),
        "a path of this machine"
    );
}
