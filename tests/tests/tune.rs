//! `gridfuse tune` from end to end, with a compiler and GPUs that are faked at the process boundary: a program's time is a function of
//! its constants.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use gridfuse_tests::cli::{Directory, Run, directory};
use gridfuse_tests::patience::{PATIENCE, wait_for, wait_until};
use gridfuse_tests::processes;
use gridfuse_tests::workspace;
use serde_json::Value;

/// Least, 1 ms, for a threshold of 256, a coarsening factor of 4 and blocks.
const AT_BLOCK: &str = "1 + abs(log2(t + 1) - log2(257)) / 4 + abs(log2(c) - 2) / 2 + abs(g - 3)";

fn program() -> Directory {
    let source = fs::read(workspace::root().join("tests/fixtures/measure/program.cu")).unwrap();
    directory(&[("program.cu", &source)])
}

fn command(files: &Directory, home: &Directory, arguments: &[&str], fakes: &[(&str, &str)]) -> Command {
    let mut command = Command::new(workspace::gridfuse_bin());
    command
        .current_dir(files.path())
        .args(["tune", "program.cu", "--nvcc"])
        .arg(workspace::root().join("tests/fixtures/measure/fake_nvcc.sh"))
        .args(arguments)
        .env("XDG_STATE_HOME", home.path())
        .env("FAKE_RUNS", home.file("runs"))
        .env_remove("CUDA_VISIBLE_DEVICES")
        .envs(fakes.iter().copied())
        .stdin(Stdio::null());
    command
}

fn tune(files: &Directory, home: &Directory, arguments: &[&str], fakes: &[(&str, &str)]) -> Run {
    let output = command(files, home, arguments, fakes)
        .output()
        .expect("gridfuse starts");
    Run {
        command: format!("gridfuse tune {} {fakes:?}", arguments.join(" ")),
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The timed runs of each combination of constants.
fn runs(home: &Directory) -> BTreeMap<String, usize> {
    let mut runs = BTreeMap::new();
    for line in home.read("runs").lines() {
        if let Some((constants, _)) = line.split_once(" time ") {
            *runs.entry(constants.to_owned()).or_default() += 1;
        }
    }
    runs
}

/// No program that was started is left.
#[track_caller]
fn nothing_runs(home: &Directory) {
    let runs = home.read("runs");
    let pids: Vec<&str> = runs.lines().filter_map(|line| line.rsplit(' ').next()).collect();
    wait_until(&format!("nothing of {runs} is alive"), || {
        !pids.iter().any(|pid| processes::runs(pid))
    });
}

#[test]
fn the_best_is_found_with_few_runs() {
    let (files, home) = (program(), directory(&[]));
    let run = tune(&files, &home, &["--json", "--repeat", "3"], &[("FAKE_TIME", AT_BLOCK)]).expect_code(0);
    let report = run.json();
    let search = &report["search"];
    assert_eq!(report["guess"], "aggregate-grid-stream", "{report:#}");
    assert_eq!(search["best"], "threshold=256+coarsen=4+aggregate-block", "{report:#}");
    assert_eq!(search["best_ms"], 1.0);
    let (tried, possible) = (search["tried"].as_u64().unwrap(), search["possible"].as_u64().unwrap());
    assert_eq!(possible, 9 * 5 * 8 + 1);
    assert!(tried * 4 <= possible, "{tried} of {possible}");
    let runs = runs(&home);
    let all: usize = runs.values().sum();
    assert!(all <= 2 * runs.len() + 20, "{runs:#?}");
    // Whose time is told is compared; the fastest stands first.
    let points = report["points"].as_array().unwrap();
    assert_eq!(points[0]["point"], search["best"]);
    for point in points {
        let outcome = &point["outcome"];
        assert_eq!(outcome["agreement"]["agreement"], "agrees", "{report:#}");
        assert_eq!(outcome["times_ms"].as_array().unwrap().len(), 3);
    }
    assert!(
        report["diff"]
            .as_str()
            .unwrap()
            .contains("+constexpr int kChildThreshold = 256;")
    );
    assert_eq!(
        files.read("program.cu"),
        program().read("program.cu"),
        "nothing is written"
    );
    // A search that came to its end leaves nothing behind.
    assert_eq!(fs::read_dir(home.file("gridfuse/tuning")).unwrap().count(), 0);
}

/// A few combinations only.
const FEW: [&str; 6] = [
    "--thresholds",
    "none,16,256",
    "--factors",
    "none,4",
    "--granularities",
    "none,block,grid",
];

/// Of combinations whose times can't be told apart, the one that keeps more threads resident is the best; a slower one isn't.
#[test]
fn occupancy_decides_what_times_do_not() {
    let few = [
        "--thresholds",
        "none",
        "--factors",
        "none",
        "--granularities",
        "none,block,grid",
        "--repeat",
        "2",
    ];
    let search = |time: &str, resident: &[(&str, &str)], arguments: &[&str]| {
        let (files, home) = (program(), directory(&[]));
        let fakes = [&[("FAKE_TIME", time)], resident].concat();
        tune(&files, &home, &[&few[..], arguments].concat(), &fakes).expect_code(0)
    };
    let close = "g == 3 ? 1 : g == 5 ? 1.01 : 3";
    let resident = [("FAKE_RESIDENT", "g == 3 ? 1024 : 1536")];
    let report = search(close, &resident, &["--json"]).json();
    assert_eq!(report["search"]["best"], "aggregate-grid", "{report:#}");
    assert_eq!(report["search"]["best_ms"], 1.01);
    assert_eq!(
        report["search"]["as_fast"],
        serde_json::json!([
            { "point": "aggregate-block", "ms": 1.0, "resident_threads": 1024, "best_resident_threads": 1536 }
        ])
    );
    let run = search(close, &resident, &[]);
    for part in [
        "aggregate-block is as fast as far as can be told, but keeps 1,024 threads resident on a multiprocessor in place of 1,536",
        "parent: 24 registers, 1,536 resident threads (as it is); 32 registers, 1,536 resident threads (aggregate-grid)",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.story());
    }
    for (time, resident) in [(close, &[][..]), ("g == 3 ? 1 : g == 5 ? 1.05 : 3", &resident)] {
        let report = search(time, resident, &["--json"]).json();
        assert_eq!(report["search"]["best"], "aggregate-block", "{report:#}");
        assert_eq!(report["search"]["as_fast"], Value::Null);
    }
}

#[test]
fn the_best_is_written_and_tuned_again() {
    let (files, home) = (program(), directory(&[]));
    let arguments = [&FEW[..], &["--write", "--repeat", "2"]].concat();
    let run = tune(&files, &home, &arguments, &[("FAKE_TIME", AT_BLOCK)]).expect_code(0);
    for part in [
        "threshold=256+coarsen=4+aggregate-block",
        "changed program.cu",
        "created gridfuse.cuh",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.story());
    }
    let first = files.read("program.cu");
    for part in ["kChildThreshold = 256;", "kChildCoarsening = 4;", "gridfuse::PerBlock,"] {
        assert!(first.contains(part), "{part}: {first}");
    }
    // Other data, other values: they are all that changes.
    let at_grid = "1 + abs(t - 16) / 100 + abs(c - 4) + abs(g - 5)";
    let run = tune(&files, &home, &arguments, &[("FAKE_TIME", at_grid)]).expect_code(0);
    let second = files.read("program.cu");
    let changed: Vec<(&str, &str)> = first.lines().zip(second.lines()).filter(|(a, b)| a != b).collect();
    assert_eq!(first.lines().count(), second.lines().count(), "{}", run.story());
    for (_, line) in &changed {
        assert!(
            [
                "kChildThreshold = 16;",
                "kChildCoarsening = 4;",
                "gridfuse::PerGrid,",
                "within a grid",
                "by a grid of parent;"
            ]
            .iter()
            .any(|part| line.contains(part)),
            "{changed:#?}"
        );
    }
    // As good as it is.
    let run = tune(&files, &home, &arguments, &[("FAKE_TIME", at_grid)]).expect_code(0);
    assert!(run.stdout.contains("no combination is faster"), "{}", run.story());
    assert_eq!(files.read("program.cu"), second);
    // What was edited by hand is not overwritten.
    files.write(
        "program.cu",
        second
            .replace("batch.for_each_block", "/* ! */ (void)0; batch.for_each_block")
            .as_bytes(),
    );
    let run = tune(&files, &home, &arguments, &[("FAKE_TIME", at_grid)]).expect_code(2);
    assert!(run.stderr.contains("isn't what it would write now"), "{}", run.story());
}

#[test]
fn the_loop_in_the_launcher_is_tried_once() {
    let (files, home) = (program(), directory(&[]));
    let arguments = [
        "--write",
        "--repeat",
        "2",
        "--granularities",
        "grid,serialize",
        "--factors",
        "none",
    ];
    let run = tune(&files, &home, &arguments, &[("FAKE_TIME", "g == 8 ? 1 : 3")]).expect_code(0);
    assert!(run.stdout.contains("serialize"), "{}", run.story());
    let code = files.read("program.cu");
    assert!(code.contains("child_serial(") && !code.contains("child<<<"), "{code}");
    let serial = runs(&home)
        .into_iter()
        .filter(|(constants, _)| constants.ends_with("g=8"));
    assert_eq!(serial.map(|(_, runs)| runs).sum::<usize>(), 2, "{}", home.read("runs"));
    // The launches that are gone are back where something else is better now.
    let run = tune(&files, &home, &arguments, &[("FAKE_TIME", "g == 5 && t == 0 ? 1 : 3")]).expect_code(0);
    let code = files.read("program.cu");
    assert!(
        code.contains("gridfuse::PerGrid,") && !code.contains("child_serial("),
        "{}",
        run.story()
    );
}

#[test]
fn atomic_operations_are_tried_both_ways() {
    let (files, home) = (program(), directory(&[]));
    let code = files.read("program.cu");
    let shared = code.replace("data[begin + i] += 1", "atomicAdd(&data[begin], 1)");
    assert_ne!(code, shared);
    files.write("program.cu", shared.as_bytes());
    let arguments = [
        "--json",
        "--repeat",
        "2",
        "--thresholds",
        "none,64",
        "--factors",
        "none",
    ];
    for (time, best) in [
        (
            "3 - a + (t > 0) + abs(g - 7)",
            "aggregate-atomics+aggregate-grid-stream",
        ),
        ("3 + a + (t > 0) + abs(g - 7)", "aggregate-grid-stream"),
    ] {
        let report = tune(&files, &home, &arguments, &[("FAKE_TIME", time)])
            .expect_code(0)
            .json();
        assert_eq!(report["guess"], "aggregate-atomics+aggregate-grid-stream", "{report:#}");
        assert_eq!(report["search"]["best"], best, "{report:#}");
    }
}

#[test]
fn what_cannot_be_the_best_is_stopped() {
    let (files, home) = (program(), directory(&[]));
    let arguments = [&FEW[..], &["--json", "--repeat", "2"]].concat();
    let start = Instant::now();
    // Ten minutes for each launch by itself; the program as it is would take as long.
    let time = "g == 0 && t > 0 ? 60000 : 2 + abs(g - 3) + abs(c - 4) / 4";
    let report = tune(&files, &home, &arguments, &[("FAKE_TIME", time)])
        .expect_code(0)
        .json();
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    assert!(report["search"]["stopped"].as_u64().unwrap() >= 1, "{report:#}");
    let best = report["search"]["best"].as_str().unwrap();
    assert!(best.ends_with("coarsen=4+aggregate-block"), "{report:#}");
    nothing_runs(&home);
}

#[test]
fn an_interrupted_search_goes_on() {
    let (files, home) = (program(), directory(&[]));
    let arguments = [&FEW[..], &["--json", "--repeat", "3"]].concat();
    let fakes = [("FAKE_TIME", "10 * (1 + abs(g - 3) + abs(c - 4) / 4)")];
    let mut child = command(&files, &home, &arguments, &fakes)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("eight runs were timed", || {
        fs::read_to_string(home.file("runs")).is_ok_and(|runs| runs.matches(" time ").count() >= 8)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let before = runs(&home);
    let report = tune(&files, &home, &arguments, &fakes).expect_code(0).json();
    assert!(report["search"]["resumed"].as_u64().unwrap() >= 2, "{report:#}");
    assert_eq!(
        report["search"]["best"].as_str().unwrap().split('+').next_back(),
        Some("aggregate-block")
    );
    // Three runs each, one more of what was under way when it was killed; the program as it is runs anew.
    let after = runs(&home);
    let more = after
        .iter()
        .filter(|(constants, _)| *constants != "t=0 c=1 g=0")
        .map(|(_, runs)| *runs);
    assert!(more.clone().all(|runs| runs <= 4), "{before:#?} {after:#?}");
    assert!(more.filter(|runs| *runs == 4).count() <= 1, "{before:#?} {after:#?}");
    // Another program begins anew.
    let text = files.read("program.cu").replace("+= 1", "+= 2");
    files.write("program.cu", text.as_bytes());
    let report = tune(&files, &home, &arguments, &fakes).expect_code(0).json();
    assert_eq!(report["search"]["resumed"], 0);
}

#[test]
fn wrong_results_do_not_win() {
    let (files, home) = (program(), directory(&[]));
    let arguments = [&FEW[..], &["--repeat", "1"]].concat();
    let fakes = [("FAKE_TIME", AT_BLOCK), ("FAKE_WRONG", "gridfuse::PerBlock")];
    let run = tune(&files, &home, &arguments, &fakes).expect_code(1);
    assert!(run.stdout.contains("DIFFERS"), "{}", run.story());
    for line in run.stdout.lines().filter(|line| line.contains("DIFFERS")) {
        assert!(
            line.contains("aggregate-block") && !line.contains('×'),
            "{}",
            run.story()
        );
    }
    assert!(!run.stdout.contains("aggregate-block is "), "{}", run.story());

    // Nothing can be compared with what doesn't end.
    let fakes = [("FAKE_TIME", "g == 0 ? 6000 : 1")];
    let run = tune(&files, &home, &["--timeout", "1"], &fakes).expect_code(2);
    assert!(run.stderr.contains("did not finish in 1 s"), "{}", run.story());
    let run = tune(&files, &home, &[], &[("FAKE_GPU", "none")]).expect_code(2);
    assert!(run.stderr.contains("CUDA_VISIBLE_DEVICES"), "{}", run.story());
}

#[test]
fn all_combinations_on_request_on_all_gpus() {
    let (files, home) = (program(), directory(&[]));
    let arguments = [&FEW[..], &["--json", "--exhaustive", "--repeat", "2"]].concat();
    let fakes = [
        ("FAKE_TIME", AT_BLOCK),
        ("FAKE_GPUS", "2"),
        ("CUDA_VISIBLE_DEVICES", "3,GPU-7"),
    ];
    let report = tune(&files, &home, &arguments, &fakes).expect_code(0).json();
    let all = &report["exhaustive"];
    // The guess has a granularity of its own: 3 thresholds, 2 factors, 4 granularities.
    assert_eq!((&all["points"], &report["gpus"]), (&24.into(), &2.into()), "{report:#}");
    assert_eq!(all["best"], report["search"]["best"]);
    assert_eq!(
        (&all["best_ms"], &all["found_ms"]),
        (&Value::from(1.0), &Value::from(1.0))
    );
    let log = home.read("runs");
    for gpu in ["gpu=3 ", "gpu=GPU-7 "] {
        assert!(log.matches(gpu).count() > 20, "{log}");
    }
}

/// Measured on an H200, roughly: breadth-first search over a power-law graph, by the threshold and the granularity.
const LIKE_BFS: &str = "(0.14 + (t > 16 ? 0.026 * log2(t / 16) : 0) + (g == 2 ? 0.327 : g == 3 ? 0.14 : g == 4 ? 0.062 : g == 5 ? 0.034 : 9) \
                        * exp(-t / 14)) * (1 + 0.01 * abs(log2(c) - 1))";

/// The same for a colouring, which is fastest without a threshold.
const LIKE_COLOURING: &str = "(5.7 + 0.9 * log2(1 + t / 12) + (g == 2 ? 4.2 : g == 3 ? 4 : g == 4 ? 2.6 : g == 5 ? 0.24 : 20) * exp(-t / 20)) \
                              * (1 + 0.01 * log2(c))";

/// Thresholds, factors and granularities that are worth a try.
const SOME: [&str; 6] = [
    "--thresholds",
    "none,16,64,256",
    "--factors",
    "none,2,8",
    "--granularities",
    "warp,block,multiblock,grid",
];

#[test]
fn a_search_takes_a_quarter_of_measuring_all() {
    let arguments = [&SOME[..], &["--json", "--exhaustive", "--repeat", "2"]].concat();
    for time in [LIKE_BFS, LIKE_COLOURING] {
        let (files, home) = (program(), directory(&[]));
        let fakes = [("FAKE_TIME", time), ("FAKE_SECONDS", "0.05"), ("FAKE_BUILD", "0.1")];
        let run = tune(&files, &home, &arguments, &fakes).expect_code(0);
        let report = run.json();
        let all = &report["exhaustive"];
        // The guess has a granularity of its own.
        assert_eq!(all["points"], 60, "{report:#}");
        assert!(all["excess"].as_f64().unwrap() <= 0.05, "{report:#}");
        let share = |what: &str| all["share"][what].as_f64().unwrap();
        assert!(share("runs") <= 0.25, "{all:#} {}", run.story());
        // Cores that are free build what may be asked for; they have nothing else to do.
        assert!(share("builds") <= 0.35, "{all:#}");
        // What it takes in seconds depends on what else the machine does: that is told, and
        // measured on a GPU.
        for what in ["seconds", "run_seconds", "build_seconds"] {
            let part = share(what);
            assert!(part > 0.0 && part < 1.0, "{what}: {all:#}");
        }
        let cost = |stage: &Value, what: &str| stage[what].as_f64().unwrap();
        let (setup, search) = (&report["setup"], &report["search"]["cost"]);
        let whole = cost(setup, "seconds") + cost(search, "seconds");
        assert!((whole - report["search"]["seconds"].as_f64().unwrap()).abs() < 0.01);
        // Where the search has compared the fastest one, that isn't built and run for it again.
        let builds = cost(&all["cost"], "builds");
        let compared = if builds == 60.0 { 1.0 } else { 3.0 };
        assert_eq!(cost(setup, "builds"), 2.0, "{report:#}");
        assert!([60.0, 63.0].contains(&builds), "{report:#}");
        assert_eq!(
            cost(&all["cost"], "runs"),
            120.0 + compared,
            "two of each, and the finalists' checks"
        );
        // What goes on is told without a terminal, too.
        for part in [
            "looking for a GPU",
            "aggregate-grid-stream: 9.",
            "all combinations, 60 of 60",
        ] {
            let told = run.stderr.contains(part) || time == LIKE_COLOURING;
            assert!(told, "{part}: {}", run.story());
        }
        assert!(run.stderr.lines().count() > 120, "{}", run.story());
    }
}

#[test]
fn measuring_all_goes_on_where_it_was_interrupted() {
    let (files, home) = (program(), directory(&[]));
    let arguments = [&FEW[..], &["--json", "--exhaustive", "--repeat", "1"]].concat();
    let fakes = [("FAKE_TIME", AT_BLOCK), ("FAKE_SECONDS", "0.05")];
    let errors = home.file("errors");
    let mut child = command(&files, &home, &arguments, &fakes)
        .stdout(Stdio::null())
        .stderr(fs::File::create(&errors).unwrap())
        .spawn()
        .unwrap();
    wait_for(
        || home.read("errors"),
        || home.read("errors").contains("all combinations, 5 of 24").then_some(()),
    );
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", "TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(home.read("errors").contains("goes on where this one was interrupted"));
    nothing_runs(&home);
    let before: usize = runs(&home).values().sum();
    let run = tune(&files, &home, &arguments, &fakes).expect_code(0);
    let report = run.json();
    assert!(report["search"]["resumed"].as_u64().unwrap() > 0, "{report:#}");
    assert_eq!(report["exhaustive"]["points"], 24);
    assert_eq!(report["exhaustive"]["best"], report["search"]["best"]);
    // One run of the search and one of all, one more of what was under way; the program as it is runs anew.
    let after = runs(&home);
    let more = after.iter().filter(|(constants, _)| *constants != "t=0 c=1 g=0");
    assert!(more.clone().all(|(_, runs)| *runs <= 3), "{after:#?}");
    assert!(more.filter(|(_, runs)| **runs == 3).count() <= 1, "{after:#?}");
    let again = after.values().sum::<usize>() - before;
    assert!(again <= 24, "{again} runs after {before}");
}

#[test]
fn what_was_tuned_is_remembered() {
    let (files, home) = (program(), directory(&[]));
    let arguments = [&FEW[..], &["--repeat", "1"]].concat();
    let kept = |home: &Directory| -> Vec<String> {
        let all = fs::read_dir(home.file("gridfuse/measurements"));
        let paths = all.into_iter().flatten().map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .map(|path| fs::read_to_string(path).unwrap())
            .collect()
    };
    let fakes = [("FAKE_TIME", AT_BLOCK)];
    tune(&files, &home, &[&arguments[..], &["--no-history"]].concat(), &fakes).expect_code(0);
    assert!(kept(&home).is_empty());
    tune(&files, &home, &arguments, &fakes).expect_code(0);
    let [history]: [String; 1] = kept(&home).try_into().unwrap();
    assert!(history.contains("threshold 256, coarsening 4, block"), "{history}");
}

#[test]
fn programs_of_a_directory_may_have_the_same_names() {
    let source = fs::read(workspace::root().join("tests/fixtures/measure/program.cu")).unwrap();
    let files = directory(&[("program.cu", &source), ("other.cu", &source)]);
    let home = directory(&[]);
    let arguments = [&FEW[..], &["--write", "--repeat", "1"]].concat();
    tune(&files, &home, &arguments, &[("FAKE_TIME", AT_BLOCK)]).expect_code(0);
    // Another program, rewritten in the same way: the same names of kernels, structures and constants.
    fs::copy(files.file("program.cu"), files.file("other.cu")).unwrap();
    let at_grid = "1 + abs(t - 16) / 100 + abs(c - 4) + abs(g - 5)";
    let run = tune(&files, &home, &arguments, &[("FAKE_TIME", at_grid)]).expect_code(0);
    assert!(
        files.read("program.cu").contains("gridfuse::PerGrid,"),
        "{}",
        run.story()
    );
    assert!(files.read("other.cu").contains("gridfuse::PerBlock,"));
}
