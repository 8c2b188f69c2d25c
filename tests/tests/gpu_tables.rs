//! The tables of `docs/measurements.md`: made of the results, and up to date.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use gridfuse_tests::gpu::plan::{self, Plan};
use gridfuse_tests::gpu::tables;
use gridfuse_tests::workspace;

const RESULTS: &str = r#"{
  "schema": 1, "program": "bfs", "commit": "0123456789abcdef0123", "date": "2026-01-02T03:04:05Z",
  "machine": { "gpu": "NVIDIA H200", "gpu_memory": null, "driver": "580.10", "cuda": "13.0.88", "cpu": "CPU", "cores": 16 },
  "variants": ["serial", "naive", "aggregate-block", "klap"], "inputs": ["tree", "road"], "builds": [],
  "runs": [
    { "variant": "serial", "input": "tree", "command": "", "status": "pass", "time_ms": 0.31, "wall_s": 1 },
    { "variant": "serial", "input": "road", "command": "", "status": "pass", "time_ms": 1234.5, "wall_s": 1 },
    { "variant": "naive", "input": "tree", "command": "", "status": "pass", "time_ms": 15.46, "wall_s": 1 },
    { "variant": "naive", "input": "road", "command": "", "status": "did-not-finish", "wall_s": 60 },
    { "variant": "aggregate-block", "input": "tree", "command": "", "status": "pass", "time_ms": 0.0991, "wall_s": 1 },
    { "variant": "aggregate-block", "input": "road", "command": "", "status": "wrong", "wall_s": 1 },
    { "variant": "klap", "baseline": true, "input": "tree", "command": "", "status": "pass", "time_ms": 0.1, "wall_s": 1 }
  ],
  "sanitize": [
    { "tool": "memcheck", "variant": "aggregate-block", "command": "", "status": "clean", "message": "", "wall_s": 1 },
    { "tool": "racecheck", "variant": "aggregate-block", "command": "", "status": "findings", "message": "", "wall_s": 1 }
  ]
}"#;

const TABLE: &str = "\
| time in ms | tree | road |
| --- | ---: | ---: |
| serial | 0.310 | **1234** |
| naive | 15.5 | did not finish |
| aggregate-block | **0.0991** | wrong |
| klap (by hand) | 0.100 | – |

NVIDIA H200, driver 580.10, CUDA 13.0.88, CPU; commit 0123456789ab, 2026-01-02.

| compute-sanitizer | memcheck | racecheck |
| --- | --- | --- |
| aggregate-block | clean | findings |
";

fn gpu_tables(directory: &Path, extra: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gpu-tables"))
        .current_dir(directory)
        .args(extra)
        .output()
        .unwrap()
}

#[test]
fn tables_are_made_checked_and_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    assert!(!gpu_tables(root, &[]).status.success(), "no results");
    let results = root.join("tests/gpu/results");
    fs::create_dir_all(&results).unwrap();
    fs::write(results.join("conformance.json"), "{}").unwrap(); // no measurement
    fs::write(results.join("bfs.json"), RESULTS).unwrap();

    assert!(!gpu_tables(root, &["--check"]).status.success());
    let document = root.join("docs/measurements.md");
    assert!(!document.exists(), "--check writes nothing");
    assert!(gpu_tables(root, &[]).status.success());
    let text = fs::read_to_string(&document).unwrap();
    assert!(text.contains(TABLE), "{text}");
    assert!(gpu_tables(root, &["--check"]).status.success());

    let edited = text.replace("# Measurements\n", "# Measurements\n\nBy hand.\n");
    fs::write(&document, edited.replace("15.5", "14.5") + "\nThe end.\n").unwrap();
    let output = gpu_tables(root, &["--check"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("gpu-tables"));
    assert!(gpu_tables(root, &[]).status.success());
    assert_eq!(fs::read_to_string(&document).unwrap(), edited + "\nThe end.\n");

    fs::remove_file(results.join("bfs.json")).unwrap();
    assert!(!gpu_tables(root, &["--check"]).status.success(), "a table of nothing");
}

/// Another program, on one input, with the times of `serial`, `naive-per-thread-stream` and `aggregate-block`, and how the latter
/// came about.
fn measured(program: &str, times: [f64; 3], command: &str) -> String {
    let [serial, naive, aggregated] = times;
    let run = |variant: &str, time: f64| {
        format!(
            r#"{{ "variant": "{variant}", "input": "in", "command": "", "status": "pass", "time_ms": {time}, "wall_s": 1 }}"#
        )
    };
    format!(
        r#"{{
  "schema": 1, "program": "{program}", "commit": "0123456789abcdef0123", "date": "2026-01-02T03:04:05Z",
  "machine": {{ "gpu": null, "gpu_memory": null, "driver": null, "cuda": null, "cpu": null, "cores": 16 }},
  "variants": ["serial", "naive-per-thread-stream", "aggregate-block"], "inputs": ["in"],
  "builds": [{{ "variants": ["aggregate-block"], "source": "x.cu", "commands": ["{command}"], "status": "ok", "seconds": 1 }}],
  "runs": [{}, {}, {}]
}}"#,
        run("serial", serial),
        run("naive-per-thread-stream", naive),
        run("aggregate-block", aggregated),
    )
}

#[test]
fn a_summary_of_all_programs() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let results = root.join("tests/gpu/results");
    fs::create_dir_all(&results).unwrap();
    let rewrite = "gridfuse rewrite x.cu --at 7 --apply aggregate-block --in-place";
    for (program, times, command) in [
        ("fast", [8.0, 400.0, 1.0], rewrite),
        ("slow", [1.0, 8.0, 2.0], rewrite),
        ("near", [0.01, 0.4, 0.0125], rewrite), // 25 %, but only 2.5 µs
        ("other", [1.0, 1000.0, 1.0], "nvcc x.cu"),
    ] {
        fs::write(
            results.join(format!("{program}.json")),
            measured(program, times, command),
        )
        .unwrap();
    }
    assert!(gpu_tables(root, &[]).status.success());
    let text = fs::read_to_string(root.join("docs/measurements.md")).unwrap();
    for line in [
        "| fast, in | 8.00 | – | 400 | aggregate-block | 1.00 | 400 | 8.00 | – |",
        "| slow, in | 1.00 | – | 8.00 | aggregate-block | 2.00 | 4.00 | 0.50 | **100 %, 1000.0 µs** |",
        "| near, in | 0.0100 | – | 0.400 | aggregate-block | 0.0125 | 32.0 | 0.80 | 25 %, 2.5 µs |",
        "| geometric mean of 3 programs | | | | | | **37.1** | **1.47** | |",
        "Slower than the serial loop by more than 5 % and 5 µs: slow, in (100 %, 1000.0 µs).",
        "| aggregate-block | 37.1 | 1.47 | 1 of 3 |",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("| other, in"), "nothing was rewritten there");
}

#[test]
fn rewrites_are_compared_with_the_design_by_hand_and_blocks_counted_apart() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let results = root.join("tests/gpu/results");
    fs::create_dir_all(&results).unwrap();
    let write = |program: &str, text: &str| fs::write(results.join(format!("{program}.json")), text).unwrap();
    let rewrite = "gridfuse rewrite x.cu --at 7 --apply aggregate-block --in-place";
    // A program with two baselines, of which the faster counts.
    let mut report: serde_json::Value = serde_json::from_str(&measured("bfs", [8.0, 400.0, 1.0], rewrite)).unwrap();
    for (name, time) in [("klap-block", 1.5), ("klap-grid", 1.1)] {
        let mut run = report["runs"][0].clone();
        run["variant"] = name.into();
        run["time_ms"] = time.into();
        run["baseline"] = true.into();
        report["runs"].as_array_mut().unwrap().push(run);
        report["variants"].as_array_mut().unwrap().push(name.into());
    }
    write("bfs", &report.to_string());
    // One whose blocks launch.
    write(
        "qs",
        &measured("qs", [8.0, 1600.0, 1.0], rewrite).replace("aggregate-block", "flatten-recursion"),
    );
    for (program, time) in [("cc", 1.0), ("gc", 2.0), ("mstf", 4.0)] {
        let text = measured(program, [8.0, 400.0, time], rewrite).replace("aggregate-block", "aggregate-grid-p2048");
        write(program, &text);
    }
    assert!(gpu_tables(root, &[]).status.success());
    let text = fs::read_to_string(root.join("docs/measurements.md")).unwrap();
    for line in [
        "| bfs, in | klap-grid | 1.10 | aggregate-block | 1.00 | 1.10 |",
        "Less than 1.2 times as fast: bfs, in (1.10×).",
        "| threshold | cc, in | gc, in | mstf, in |",
        "| `aggregate-grid` | 1.00 | 1.00 | 1.00 |",
        "| 64, then that | – | – | – |",
        "| geometric mean of 4 programs whose threads launch | | | | | | **238** |",
        "| geometric mean of 5 programs | | | | | | **348** |",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}

#[test]
fn optimize_is_compared_with_the_best() {
    let directory = tempfile::tempdir().unwrap();
    let results = directory.path().join("tests/gpu/results");
    fs::create_dir_all(&results).unwrap();
    let rewrite = "gridfuse rewrite x.cu --at 7 --apply aggregate-block --in-place";
    let text = measured("both", [8.0, 400.0, 1.0], rewrite);
    // A program with a run of each.
    let mut report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut run = report["runs"][2].clone();
    run["variant"] = "optimize".into();
    run["time_ms"] = 1.25.into();
    report["runs"].as_array_mut().unwrap().push(run);
    report["variants"].as_array_mut().unwrap().push("optimize".into());
    let mut build = report["builds"].as_array().unwrap().last().unwrap().clone();
    build["variants"] = serde_json::json!(["optimize"]);
    report["builds"].as_array_mut().unwrap().push(build);
    fs::write(results.join("both.json"), report.to_string()).unwrap();
    assert!(gpu_tables(directory.path(), &[]).status.success());
    let text = fs::read_to_string(directory.path().join("docs/measurements.md")).unwrap();
    for line in [
        "| both, in | 1.25 | aggregate-block | 1.00 | 0.80 |",
        "| least | | | | 0.80 |",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}

#[test]
fn the_measurements_are_up_to_date() {
    let results = workspace::root().join("tests/gpu/results");
    if tables::load_all(&results).unwrap().is_empty() {
        return;
    }
    let document = workspace::root().join("docs/measurements.md");
    if let Err(error) = tables::generate(&results, &document, true) {
        panic!("{error:#}");
    }
}

#[test]
fn the_plan_fits_the_corpus() {
    let root = workspace::root();
    let plan = Plan::load(&root.join("tests/gpu/plan.toml")).unwrap();
    assert!(!plan.programs.is_empty());
    for program in &plan.programs {
        for (variant, _) in program.all_variants() {
            let source = variant.source.as_ref().unwrap_or(&program.source);
            let name = format!("{}/{}", program.name, variant.name);
            let text = fs::read_to_string(root.join(source))
                .unwrap_or_else(|error| panic!("{name}: {}: {error}", source.display()));
            for at in variant.at.iter().flat_map(plan::At::lines) {
                plan::launch_line(&text, at).unwrap_or_else(|error| panic!("{name}: {error:#}"));
            }
        }
    }
}

#[test]
fn searches_have_a_table() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let results = root.join("tests/gpu/results");
    fs::create_dir_all(&results).unwrap();
    let record = r#"{
  "args": ["--input", "rmat"], "machine": { "gpu": "NVIDIA H200" }, "original": { "outcome": "ran", "median_ms": 10.0 },
  "search": { "possible": 80, "tried": 20, "seconds": 30.0, "best": "threshold=32+aggregate-grid" },
  "exhaustive": { "seconds": 150.0, "best": "threshold=64+aggregate-grid", "best_ms": 0.1, "found_ms": 0.103,
    "share": { "seconds": 0.2, "builds": 0.25, "run_seconds": 0.14 } }
}"#;
    fs::write(results.join("tune_bfs.json"), record).unwrap();
    // Nothing to compare with: the search alone.
    let record = r#"{
  "args": ["--input", "road"], "machine": { "gpu": "NVIDIA H200" }, "original": { "outcome": "ran", "median_ms": 10.0 },
  "search": { "possible": 361, "tried": 25, "seconds": 61.3, "best": "serialize", "best_ms": 2.5 }
}"#;
    fs::write(results.join("tune_bfs-road.json"), record).unwrap();
    fs::write(results.join("bfs.json"), RESULTS).unwrap();
    assert!(gpu_tables(root, &[]).status.success());
    let text = fs::read_to_string(root.join("docs/measurements.md")).unwrap();
    let road = "| bfs `--input road` | 10.0 | 25 of 361 | serialize | 2.50 | – | – | – | 61 s |";
    assert!(text.contains(road), "{text}");
    let row = "| bfs `--input rmat` | 10.0 | 20 of 80 | threshold=32+aggregate-grid | 0.103 | threshold=64+aggregate-grid | 0.100 | \
               3.0 % | 30 of 150 s, 20 % (14 % of the GPU's time, 25 % of the programs) |";
    assert!(
        text.contains("<!-- begin gpu-tables: tune -->") && text.contains(row),
        "{text}"
    );
    fs::write(results.join("tune_bfs.json"), "{}").unwrap();
    assert!(!gpu_tables(root, &["--check"]).status.success());
}

/// A chain of 10 links with 1000 elements on `medium`, of 100 with 10000 on `large`; times in ms on both, 0 where there is none.
fn chain(program: &str, times: &[(&str, f64, f64)]) -> String {
    let run = |(variant, medium, large): &(&str, f64, f64)| {
        [("medium", *medium, 1), ("large", *large, 10)]
            .into_iter()
            .filter(|(_, time, _)| *time > 0.0)
            .map(|(input, time, size)| {
                format!(
                    r#"{{ "variant": "{variant}", "input": "{input}", "command": "", "status": "pass", "time_ms": {time}, "wall_s": 1,
                         "report": {{ "links": {}, "elements": {} }} }}"#,
                    10 * size,
                    1000 * size
                )
            })
            .collect::<Vec<_>>()
    };
    let variants: Vec<String> = times.iter().map(|(variant, ..)| format!("{variant:?}")).collect();
    format!(
        r#"{{
  "schema": 1, "program": "{program}", "commit": "0123456789abcdef0123", "date": "2026-01-02T03:04:05Z",
  "machine": {{ "gpu": null, "gpu_memory": null, "driver": null, "cuda": null, "cpu": null, "cores": 16 }},
  "variants": [{}], "inputs": ["medium", "large"], "builds": [], "runs": [{}]
}}"#,
        variants.join(", "),
        times.iter().flat_map(run).collect::<Vec<_>>().join(", ")
    )
}

#[test]
fn chains_are_compared_by_link_and_throughput() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let results = root.join("tests/gpu/results");
    fs::create_dir_all(&results).unwrap();
    let near = [
        ("naive", 1.0, 0.0),
        ("promote-overlap", 0.2, 1.0),
        ("promote-lookback", 0.1, 0.25),
    ];
    let fast = [
        ("naive", 1.0, 0.0),
        ("promote-overlap", 0.1, 0.4),
        ("promote-lookback", 0.1, 0.25),
        ("cub", 0.08, 0.1),
    ];
    fs::write(results.join("near.json"), chain("near", &near)).unwrap();
    fs::write(results.join("fast.json"), chain("fast", &fast)).unwrap();
    assert!(gpu_tables(root, &[]).status.success());
    let text = fs::read_to_string(root.join("docs/measurements.md")).unwrap();
    for line in [
        "| near | medium | 10 | 100 | – | 20.0 | 10.0 |",
        "| near | large | 100 | – | – | 10.0 | 2.50 |",
        "| near | – | 5.00× | 10.0× | – | 10.0× | 40.0× |",
        "`promote-overlap` on medium, at least 5.27×: reached by fast; missed by near (5.00×).",
        "`promote-overlap` on large, at least 21.8×: reached by fast; missed by near (10.0×).",
        "`promote-lookback` on large, at least 21.8×: reached by all (fast, near).",
        "| fast | large | 0.100 | 0.250 | 0.40 |",
        "At least 0.5 of CUB's speed: reached by fast on medium; missed by fast on large (0.40).",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("| near | medium | 0."), "CUB was not run there");
}
