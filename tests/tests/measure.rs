//! `gridfuse measure` from end to end, with a compiler and a GPU that are faked at the process boundary.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use gridfuse_tests::cli::{Directory, Run, directory, files_of, gridfuse};
use gridfuse_tests::nvcc::Nvcc;
use gridfuse_tests::patience::PATIENCE;
use gridfuse_tests::workspace;
use serde_json::Value;

fn program() -> Directory {
    let source = fs::read(workspace::root().join("tests/fixtures/measure/program.cu")).unwrap();
    directory(&[("program.cu", &source)])
}

fn measure(arguments: &[&str], fakes: &[(&str, &str)]) -> Run {
    measure_in(&program(), &directory(&[]), arguments, fakes)
}

/// Measures in a directory, with another one for what is remembered and reported.
fn measure_in(files: &Directory, home: &Directory, arguments: &[&str], fakes: &[(&str, &str)]) -> Run {
    let run = run_measure(files, home, "program.cu", arguments, fakes);
    let entries: Vec<_> = fs::read_dir(files.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(entries, ["program.cu"], "the user's directory stays as it is");
    run
}

fn run_measure(files: &Directory, home: &Directory, file: &str, arguments: &[&str], fakes: &[(&str, &str)]) -> Run {
    let fake = workspace::root().join("tests/fixtures/measure/fake_nvcc.sh");
    let mut command = Command::new(workspace::gridfuse_bin());
    command
        .current_dir(files.path())
        .args(["measure", file, "--repeat", "2"]);
    if !arguments.contains(&"--nvcc") {
        command.arg("--nvcc").arg(fake);
    }
    let output = command
        .args(arguments)
        .env("XDG_STATE_HOME", home.path())
        .envs(fakes.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("gridfuse starts");
    Run {
        command: format!("gridfuse measure {} {fakes:?}", arguments.join(" ")),
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn variant<'a>(report: &'a Value, rewrites: &str) -> &'a Value {
    let variants = report["variants"].as_array().unwrap();
    variants
        .iter()
        .find(|variant| variant["rewrites"] == rewrites)
        .unwrap_or_else(|| panic!("no {rewrites} in {report:#}"))
}

#[test]
fn times_and_agreement() {
    let run = measure(
        &[
            "--rewrites",
            "aggregate-block,threshold+aggregate-grid",
            "--args",
            "a 'b c'",
            "--json",
        ],
        &[],
    );
    let report = run.expect_code(0).json();
    assert_eq!(report["machine"]["gpu"], "Fake GPU");
    assert_eq!(report["args"], serde_json::json!(["a", "b c"]));
    assert_eq!(report["sites"][0]["kernel"], "parent");
    assert_eq!(report["sites"][0]["line"], 23);
    assert_eq!(report["deterministic"], true);
    assert_eq!(report["original"]["median_ms"], 10.0);
    assert_eq!(report["original"]["times_ms"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["original"]["device_launches"], 12);
    for rewrites in ["aggregate-block", "threshold+aggregate-grid"] {
        let outcome = &variant(&report, rewrites)["outcome"];
        assert_eq!(outcome["median_ms"], 0.5, "{report:#}");
        assert_eq!(
            outcome["agreement"],
            serde_json::json!({"agreement": "agrees", "compared": 1, "unstable": 0})
        );
    }
    let text = measure(&["--rewrites", "aggregate-block"], &[]).expect_code(0).stdout;
    assert!(text.contains("20.0×") && text.contains("agrees (1 buffers)"), "{text}");
}

/// The driver says what compiled kernels need; who isn't told by it says nothing.
#[test]
fn what_kernels_need_is_told() {
    let (files, home) = (program(), directory(&[]));
    let fakes = [("FAKE_RESIDENT", "g == 3 ? 1024 : 2048")];
    let arguments = ["--rewrites", "threshold,aggregate-block,aggregate-grid"];
    let report = measure(&[&arguments[..], &["--json"]].concat(), &fakes)
        .expect_code(0)
        .json();
    let names = |outcome: &Value| -> Vec<String> {
        let kernels = outcome["kernels"].as_array().unwrap().iter();
        kernels
            .map(|kernel| kernel["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&report["original"]), ["child", "parent"], "without the runtime's");
    let aggregated = &variant(&report, "aggregate-block")["outcome"];
    assert_eq!(
        names(aggregated),
        ["child", "child_aggregated<gridfuse::Batch>", "parent"]
    );
    assert_eq!(
        aggregated["kernels"][2],
        serde_json::json!({
            "name": "parent", "registers": 32, "shared_bytes": 0, "local_bytes": 16, "largest_block": 1024, "resident_threads": 1024
        })
    );
    let reports = home.file("out");
    let arguments = [&arguments[..], &["--report", reports.to_str().unwrap()]].concat();
    let run = measure_in(&files, &home, &arguments, &fakes).expect_code(0);
    let lines = [
        "child_aggregated: 14 registers, 1,080 bytes shared, 1,536 resident threads (aggregate-block, aggregate-grid)",
        "parent: 24 registers, 2,048 resident threads (original, threshold); 32 registers, 1,024 resident threads (aggregate-block); 32 \
         registers, 2,048 resident threads (aggregate-grid)",
    ];
    let costs = [
        "aggregate-block: parent keeps 1,024 threads resident on a multiprocessor in place of 2,048 as it is (32 registers, not 24)",
        "aggregate-block, aggregate-grid: child_aggregated keeps 1,536 threads resident on a multiprocessor in place of 2,048 for child \
         (14 registers, not 10; 1,080 bytes shared, not 0)",
    ];
    let markdown = fs::read_to_string(home.file("out/report.md"))
        .unwrap()
        .replace('\\', "");
    let html = fs::read_to_string(home.file("out/report.html")).unwrap();
    for line in lines {
        for text in [&run.stdout, &markdown, &html] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
    for cost in costs {
        for text in [&run.stderr, &markdown, &html] {
            assert!(text.replace('\n', " ").contains(cost), "{cost}: {text}");
        }
    }
    assert!(!run.stdout.contains("detail::run"), "{}", run.story());
    assert_eq!(run.stdout.matches("registers, ").count(), 5, "{}", run.story());

    let report = measure(&["--rewrites", "threshold", "--json"], &[])
        .expect_code(0)
        .json();
    assert_eq!(report["original"]["kernels"], Value::Null);
    let run = measure(&["--rewrites", "threshold"], &[]).expect_code(0);
    assert!(!run.stdout.contains("registers"), "{}", run.story());
}

/// Where there are several GPUs, each runs programs of its own.
#[test]
fn programs_run_on_all_gpus() {
    let (files, home) = (program(), directory(&[]));
    let runs = home.file("runs");
    let runs = runs.to_str().unwrap();
    let fakes = [
        ("FAKE_GPUS", "2"),
        ("CUDA_VISIBLE_DEVICES", "3,GPU-7"),
        ("FAKE_RUNS", runs),
        ("FAKE_TIME", "10"),
        ("FAKE_SECONDS", "0.1"),
    ];
    let all = run_measure(&files, &home, "program.cu", &["--json"], &fakes)
        .expect_code(0)
        .json();
    let one = measure(&["--json"], &fakes[3..]).expect_code(0).json();
    assert_eq!((&all["gpus"], &one["gpus"]), (&2.into(), &Value::Null));
    assert_eq!(
        all["variants"], one["variants"],
        "what is known of programs, and their order, is the same"
    );
    let log = home.read("runs");
    for gpu in ["gpu=3 ", "gpu=GPU-7 "] {
        assert!(log.matches(gpu).count() > 4, "{log}");
    }
}

/// Shares that are measured by themselves are what is measured at once.
#[test]
fn shares_are_put_together() {
    let (files, home) = (program(), directory(&[]));
    let measure = |arguments: &[&str]| run_measure(&files, &home, "program.cu", arguments, &[]);
    let whole = measure(&["--json"]).expect_code(0).json();
    let mut parts = Vec::new();
    for share in ["1/3", "2/3", "3/3"] {
        let part = measure(&["--share", share, "--json", "--no-history"]).expect_code(0);
        let name = format!("{}.json", share.replace('/', "-"));
        fs::write(home.file(&name), &part.stdout).unwrap();
        parts.push(home.file(&name).display().to_string());
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let all = measure(&[&["--json", "--join"], &parts[..]].concat())
        .expect_code(0)
        .json();
    assert_eq!(all["variants"], whole["variants"]);
    assert_eq!(all["original"]["times_ms"].as_array().map(Vec::len), Some(6));
    let shown = measure(&[&["--join"], &parts[..]].concat()).expect_code(0).stdout;
    assert!(shown.contains("3 × Fake GPU"), "{shown}");

    let twice = measure(&["--join", parts[0], parts[0]]).expect_code(2);
    assert!(twice.stderr.contains("in two of the reports"), "{}", twice.story());
    fs::write(home.file("broken.json"), "{").unwrap();
    let broken = home.file("broken.json").display().to_string();
    for (arguments, problem) in [
        (["--join", &broken], "is no report of"),
        (["--join", "nowhere.json"], "cannot read nowhere.json"),
        (["--share", "4/3"], "like 2/4"),
    ] {
        let run = measure(&arguments).expect_code(2);
        assert!(run.stderr.contains(problem), "{}", run.story());
    }
    let text = fs::read_to_string(parts[0]).unwrap().replace("Fake GPU", "Other GPU");
    fs::write(home.file("other.json"), text).unwrap();
    let other = home.file("other.json").display().to_string();
    let run = measure(&["--join", &other, parts[1]]).expect_code(2);
    assert!(run.stderr.contains("their GPUs differ"), "{}", run.story());
}

/// A launch that a rewrite has collected is measured as a launch is: beside plain launches, and collected in other groups.
#[test]
fn collected_launches_are_measured() {
    let (files, home) = (program(), directory(&[]));
    let line = |part: &str| {
        let text = files.read("program.cu");
        let line = text.lines().position(|line| line.contains(part)).expect("a line");
        (line + 1).to_string()
    };
    let words = [
        "rewrite",
        "program.cu",
        "--at",
        &line("child<<<"),
        "--apply",
        "aggregate-block",
        "--in-place",
    ];
    gridfuse(files.path(), &words).expect_code(0);
    for part in [".launch(", "void parent("] {
        let run = run_measure(&files, &home, "program.cu", &["--at", &line(part), "--json"], &[]);
        let report = run.expect_code(0).json();
        assert_eq!(report["sites"][0]["kernel"], "parent");
        for rewrites in ["revert", "retune-grid", "retune-warp"] {
            let outcome = &variant(&report, rewrites)["outcome"];
            assert_eq!(outcome["agreement"]["agreement"], "agrees", "{report:#}");
        }
        let plain = variant(&report, "revert")["diff"].as_str().unwrap();
        assert!(plain.contains("\n+") && plain.contains("child<<<"), "{plain}");
        assert_eq!(
            variant(&report, "retune-block")["outcome"]["outcome"],
            "refused",
            "{report:#}"
        );
    }
    let run = run_measure(&files, &home, "program.cu", &["--rewrites", "revert", "--json"], &[]);
    assert_eq!(run.expect_code(0).json()["variants"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_wrong_rewrite_is_caught_and_located() {
    let run = measure(
        &["--rewrites", "aggregate-block,threshold"],
        &[("FAKE_WRONG", "Aggregator")],
    )
    .expect_code(1);
    let expected = "DIFFERS: after launch 1 of parent (program.cu:23), argument 2[1] is 6 instead of 5";
    // The table may break the line.
    let joined: String = run.stdout.split_whitespace().collect();
    assert!(joined.contains(&expected.replace(' ', "")), "{}", run.story());
    assert!(run.stdout.contains("agrees"), "{}", run.story());
}

#[test]
fn what_goes_wrong_is_a_result() {
    let start = Instant::now();
    let run = measure(
        &["--rewrites", "aggregate-block", "--timeout", "5", "--json"],
        &[("FAKE_HANGS", "child<<<")],
    );
    let report = run.expect_code(0).json();
    assert!(start.elapsed() < PATIENCE, "a program that hangs is waited for");
    assert_eq!(report["original"]["outcome"], "timed-out");
    assert_eq!(report["deterministic"], Value::Null);
    let outcome = &variant(&report, "aggregate-block")["outcome"];
    assert_eq!(outcome["outcome"], "ran", "{report:#}");
    assert_eq!(outcome["agreement"]["agreement"], "not-shown");

    let run = measure(
        &["--rewrites", "aggregate-block", "--json"],
        &[("FAKE_CRASHES", "Aggregator")],
    );
    let report = run.expect_code(1).json();
    let outcome = &variant(&report, "aggregate-block")["outcome"];
    assert!(
        outcome["outcome"] == "failed" && outcome["message"].as_str().unwrap().contains("signal"),
        "{report:#}"
    );

    let run = measure(
        &["--rewrites", "aggregate-block", "--json"],
        &[("FAKE_NO_BUILD", "Aggregator")],
    );
    let report = run.expect_code(1).json();
    let outcome = &variant(&report, "aggregate-block")["outcome"];
    assert_eq!(outcome["outcome"], "not-built");
    let message = outcome["message"].as_str().unwrap();
    assert!(
        message.contains("): error: expected a") && !message.contains("gridfuse-measure-"),
        "{message}"
    );
    // The aggregator stands in front of the parent's first line; what the compiler says of it is about that place.
    let first = &outcome["messages"][0];
    assert_eq!(first["path"], "program.cu", "{report:#}");
    let source = fs::read_to_string(workspace::root().join("tests/fixtures/measure/program.cu")).unwrap();
    let line = source.lines().position(|line| line.contains("void parent")).unwrap() as u64 + 1;
    assert!(
        first["line"].as_u64().is_some_and(|at| at.abs_diff(line) <= 1),
        "{first} is not near {line}"
    );
    assert!(first["rewritten"].as_str().unwrap().contains("Aggregator"), "{first}");
    // An error in the user's own line stays there.
    let run = measure(&["--rewrites", "threshold", "--json"], &[("FAKE_NO_BUILD", "printf(")]);
    let report = run.expect_code(1).json();
    let line = source.lines().position(|line| line.contains("printf(")).unwrap() + 1;
    for outcome in [&report["original"], &variant(&report, "threshold")["outcome"]] {
        assert_eq!(outcome["messages"][0]["line"], line, "{report:#}");
        assert_eq!(outcome["messages"][0]["severity"], "error");
        assert_eq!(outcome["messages"][0]["rewritten"], Value::Null);
    }

    let run = measure(&["--rewrites", "aggregate-block", "--json"], &[("FAKE_UNSTABLE", "1")]);
    let report = run.expect_code(0).json();
    // Two random bytes are the same now and then.
    if report["deterministic"] == false {
        let outcome = &variant(&report, "aggregate-block")["outcome"];
        assert_eq!(outcome["agreement"]["unstable"], 1, "{report:#}");
    }
}

#[test]
fn rewrites_of_what_does_not_finish_are_compared_with_each_other() {
    let (files, home) = (program(), directory(&[]));
    let out = home.file("report");
    let common = ["--timeout", "5", "--report", out.to_str().unwrap(), "--rewrites"];
    let names = "aggregate-block,aggregate-grid,aggregate-warp";
    let hangs = ("FAKE_HANGS", "child<<<");
    let hung = home.file("hung");
    let fakes = [
        hangs,
        ("FAKE_TIME", "g == 5 ? 1 : 2"),
        ("FAKE_SECONDS", "0"),
        ("FAKE_PIDS", hung.to_str().unwrap()),
    ];
    let report = measure_in(&files, &home, &[&common[..], &[names, "--json"]].concat(), &fakes)
        .expect_code(0)
        .json();
    // It's waited for once.
    assert_eq!(home.read("hung").lines().count(), 1);
    assert_eq!(
        report["original"],
        serde_json::json!({"outcome": "timed-out", "seconds": 5.0})
    );
    let agreement = |report: &Value, name: &str| variant(report, name)["outcome"]["agreement"].clone();
    let first = agreement(&report, "aggregate-block");
    assert_eq!(
        (&first["peer"], &first["code"]),
        (&Value::Null, &0.into()),
        "{report:#}"
    );
    for name in ["aggregate-grid", "aggregate-warp"] {
        let other = agreement(&report, name);
        assert_eq!(
            (&other["peer"], &other["compared"]),
            (&"aggregate-block".into(), &1.into()),
            "{report:#}"
        );
        assert_eq!(
            (&other["difference"], &other["says"]),
            (&Value::Null, &"arguments:".into())
        );
    }
    for page in ["report/report.md", "report/report.html"] {
        let page = home.read(page);
        for part in [
            "did not finish in 5 s on Fake GPU, aggregate-grid takes 1.00 ms",
            "could not be shown",
            "agrees with aggregate-block (1 buffers); ends with exit code 0",
        ] {
            assert!(page.replace('\\', "").contains(part), "{part}: {page}");
        }
    }
    let kept = fs::read_dir(home.file("gridfuse/measurements")).unwrap();
    let kept: String = kept
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert!(kept.contains("\"original_timed_out\":5.0"), "{kept}");

    // One of two that differ is wrong; nobody knows which.
    let wrong = [&fakes[..], &[("FAKE_WRONG", "gridfuse::PerGrid,")]].concat();
    let run = measure_in(&files, &home, &[&common[..], &[names]].concat(), &wrong).expect_code(1);
    let joined: String = run.stdout.split_whitespace().collect();
    let expected =
        "DIFFERS from aggregate-block, so that one of the two is wrong: after launch 1 of parent (program.cu:23)";
    assert!(joined.contains(&expected.replace(' ', "")), "{}", run.story());
    // What breaks off is nothing to compare with.
    let broken = [&fakes[..], &[("FAKE_CRASHES", "gridfuse::PerBlock,")]].concat();
    let report = measure_in(&files, &home, &[&common[..], &[names, "--json"]].concat(), &broken)
        .expect_code(1)
        .json();
    assert_eq!(variant(&report, "aggregate-block")["outcome"]["outcome"], "failed");
    assert_eq!(
        agreement(&report, "aggregate-warp")["peer"],
        "aggregate-grid",
        "{report:#}"
    );
}

#[test]
fn reports_are_written() {
    let (files, home) = (program(), directory(&[]));
    let out = home.file("a/report");
    let arguments = [
        "--rewrites",
        "aggregate-block,threshold",
        "--args",
        "a'<b'",
        "--report",
        out.to_str().unwrap(),
    ];
    measure_in(&files, &home, &arguments, &[("FAKE_NO_BUILD", "Aggregator")]).expect_code(1);
    let markdown = home.read("a/report/report.md");
    for part in [
        "# program.cu",
        "| original | 10.0 |",
        "| threshold | 10.0 |",
        "does not compile",
        "```diff",
        "+#include",
    ] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    let html = home.read("a/report/report.html");
    for part in [
        "<!DOCTYPE html>",
        "Content-Security-Policy",
        "<svg",
        "a&lt;b",
        "scope=\"row\"",
        "does not compile",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    for outside in ["http:", "https:", "<script", "<link", "src="] {
        assert!(!html.contains(outside), "{outside}");
    }
    // The headers that rewrites add are named, not shown.
    assert!(
        !html.contains("namespace gridfuse") && html.contains("gridfuse.cuh"),
        "{html}"
    );
}

#[test]
fn a_history_that_is_broken_is_put_aside() {
    let (files, home) = (program(), directory(&[]));
    let arguments = ["--rewrites", "aggregate-block"];
    let without = [&arguments[..], &["--no-history"]].concat();
    measure_in(&files, &home, &without, &[]).expect_code(0);
    assert!(!home.file("gridfuse").exists());
    measure_in(&files, &home, &arguments, &[]).expect_code(0);
    let kept = || {
        let all = fs::read_dir(home.file("gridfuse/measurements")).unwrap();
        let paths = all.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|it| it != "lock"))
            .collect::<Vec<_>>()
    };
    let [file]: [std::path::PathBuf; 1] = kept().try_into().unwrap();
    fs::write(&file, "\u{0}").unwrap();
    let run = measure_in(&files, &home, &arguments, &[]).expect_code(0);
    assert!(run.stderr.contains("can't be read"), "{}", run.story());
    assert_eq!(kept().len(), 2);
    let run = measure_in(&files, &home, &arguments, &[]).expect_code(0);
    assert!(!run.stderr.contains("can't be read"), "{}", run.story());
}

#[test]
fn compile_commands_are_used() {
    let (files, home) = (program(), directory(&[]));
    let commands = r#"[{"directory": ".", "file": "program.cu",
        "command": "nvcc -DN=3 '-DF(x)=x + 1' -UM -Iinc --default-stream per-thread -include pre.h -c program.cu"}]"#;
    files.write("compile_commands.json", commands.as_bytes());
    let log = home.file("flags");
    let arguments = ["--rewrites", "threshold", "--nvcc-flags", "-std=c++20"];
    run_measure(
        &files,
        &home,
        "program.cu",
        &arguments,
        &[("FAKE_FLAGS", log.to_str().unwrap())],
    )
    .expect_code(0);
    let log = home.read("flags");
    let flags = log.lines().last().unwrap();
    let inc = files.file("inc");
    for flag in [
        "-DN=3 -DF(x)=x + 1 -UM --default-stream=per-thread -std=c++20",
        inc.to_str().unwrap(),
        "/pre.h",
    ] {
        assert!(flags.contains(flag), "{flag}: {flags}");
    }
    assert!(!flags.contains("-std=c++17"), "{flags}");
}

#[test]
fn projects_are_built_by_their_own_command() {
    let source = fs::read_to_string(workspace::root().join("tests/fixtures/measure/program.cu")).unwrap();
    let (kernels, main) = source.split_once("int main").unwrap();
    let files = directory(&[
        (
            "gridfuse.toml",
            b"[measure]\nbuild = 'sh make.sh'\nprogram = 'out/app'\n",
        ),
        (
            "make.sh",
            b"mkdir -p out && nvcc -rdc=true src/main.cu src/kernels.cu -o out/app\n",
        ),
        ("build/left-over", b""),
        (".gitignore", b"*.bin\n"),
    ]);
    let launch = "void run(int* first, int* data) { parent<<<1, 128>>>(first, data, 100); }\n";
    files.write("src/kernels.cu", format!("{kernels}{launch}").as_bytes());
    files.write(
        "src/main.cu",
        format!("void run(int*, int*);\nint main{main}").as_bytes(),
    );
    let (home, before) = (directory(&[]), files_of(files.path()));
    let log = home.file("flags");
    // The command finds nvcc on its PATH.
    fs::create_dir(home.file("bin")).unwrap();
    let nvcc = home.file("bin/nvcc");
    std::os::unix::fs::symlink(workspace::root().join("tests/fixtures/measure/fake_nvcc.sh"), &nvcc).unwrap();
    let arguments = [
        "--rewrites",
        "aggregate-block",
        "--json",
        "--nvcc",
        nvcc.to_str().unwrap(),
    ];
    let fakes = [("FAKE_FLAGS", log.to_str().unwrap())];
    let report = run_measure(&files, &home, "src/kernels.cu", &arguments, &fakes)
        .expect_code(0)
        .json();
    assert_eq!(
        variant(&report, "aggregate-block")["outcome"]["median_ms"],
        0.5,
        "{report:#}"
    );
    let sites: Vec<&str> = report["sites"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["path"].as_str().unwrap())
        .collect();
    assert_eq!(sites, ["src/kernels.cu", "src/main.cu"]);
    let flags = home.read("flags");
    assert!(
        flags.lines().last().unwrap().contains("-o out/app -include "),
        "{flags}"
    );
    assert_eq!(files_of(files.path()), before, "the project stays as it is");

    let broken = [("FAKE_NO_BUILD", "Aggregator")];
    let report = run_measure(&files, &home, "src/kernels.cu", &arguments, &broken)
        .expect_code(1)
        .json();
    let outcome = &variant(&report, "aggregate-block")["outcome"];
    assert_eq!(outcome["messages"][0]["path"], "src/kernels.cu", "{report:#}");
    files.write("make.sh", b"true\n");
    let report = run_measure(&files, &home, "src/kernels.cu", &arguments, &[])
        .expect_code(1)
        .json();
    assert!(
        report["original"]["message"]
            .as_str()
            .unwrap()
            .contains("has made no out/app"),
        "{report:#}"
    );
}

#[test]
fn errors_of_cuda_come_with_advice() {
    let lost = "cudaErrorLaunchPendingCountExceeded";
    let run = measure(
        &["--rewrites", "aggregate-block"],
        &[
            ("FAKE_LOSES", "child<<<"),
            ("FAKE_ERROR", lost),
            ("FAKE_WRONG", "Aggregator"),
        ],
    );
    // The original is wrong itself: that the rewrite differs says nothing against it.
    let run = run.expect_code(0);
    let told: String = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains(&format!("the original loses launches or fails: {lost}"))
            && told.contains("raise-pending-launch-limit"),
        "{}",
        run.story()
    );
    assert!(run.stdout.contains("not compared"), "{}", run.story());

    for (error, advice) in [
        ("cudaErrorMemoryAllocation", "nvidia-smi"),
        ("cudaErrorIllegalAddress", "compute-sanitizer"),
        ("cudaErrorLaunchMaxDepthExceeded", "24 levels"),
    ] {
        let run = measure(
            &["--rewrites", "aggregate-block", "--json"],
            &[("FAKE_BREAKS", "Aggregator"), ("FAKE_ERROR", error)],
        );
        let report = run.expect_code(1).json();
        let outcome = &variant(&report, "aggregate-block")["outcome"];
        assert!(outcome["message"].as_str().unwrap().contains(error), "{report:#}");
        assert!(outcome["advice"].as_str().unwrap().contains(advice), "{report:#}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let message = |arguments: &[&str], fakes: &[(&str, &str)]| measure(arguments, fakes).expect_code(2).stderr;
    let text = message(&[], &[("FAKE_GPU", "none")]);
    assert!(
        text.contains("no CUDA-capable device is detected") && text.contains("driver"),
        "{text}"
    );
    let text = message(&[], &[("FAKE_GPU", "no-driver")]);
    assert!(text.contains("no NVIDIA driver is installed"), "{text}");
    let text = message(&[], &[("FAKE_GPU", "old-driver")]);
    assert!(
        text.contains("CUDA 12.2") && text.contains("install a newer driver"),
        "{text}"
    );
    let text = message(&["--rewrites", "nonsense"], &[]);
    assert!(
        text.contains("no rewrite is called `nonsense`") && text.contains("aggregate-block"),
        "{text}"
    );
    let text = message(&["--set", "x=1"], &[]);
    assert!(text.contains("`x`"), "{text}");
    let text = message(&["--at", "1"], &[]);
    assert!(text.contains("program.cu:1"), "{text}");
    let text = message(&["--args", "'"], &[]);
    assert!(text.contains("quote"), "{text}");

    let files = directory(&[("clean.cu", b"__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n")]);
    let run = |variables: &[(&str, &str)]| {
        let output = Command::new(workspace::gridfuse_bin())
            .current_dir(files.path())
            .args(["measure", "clean.cu"])
            .env_clear()
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    if !["/usr/local/cuda/bin/nvcc", "/opt/cuda/bin/nvcc"]
        .iter()
        .any(|path| fs::exists(path).unwrap_or(true))
    {
        let text = run(&[]);
        assert!(text.contains("nvcc was not found") && text.contains("--nvcc"), "{text}");
    }
    let fake = workspace::root().join("tests/fixtures/measure");
    let home = directory(&[]);
    fs::create_dir(home.path().join("bin")).unwrap();
    std::os::unix::fs::symlink(fake.join("fake_nvcc.sh"), home.path().join("bin/nvcc")).unwrap();
    let text = run(&[("CUDA_HOME", home.path().to_str().unwrap())]);
    assert!(text.contains("no kernel in clean.cu launches another"), "{text}");
}

#[test]
fn instrumented_programs_compile() {
    let nvcc = Nvcc::get();
    let libraries = nvcc.root().join("lib");
    let real = [
        ("REAL_NVCC", nvcc.executable().to_str().unwrap()),
        ("REAL_LIBRARIES", libraries.to_str().unwrap()),
    ];
    let all_ran = |run: Run| {
        let report = run.expect_code(0).json();
        for variant in report["variants"].as_array().unwrap() {
            assert_eq!(variant["outcome"]["outcome"], "ran", "{report:#}");
        }
    };
    let with = ["--arch", "sm_90", "--json", "--rewrites"];
    all_ran(measure(&[&with[..], &["threshold+aggregate-block"]].concat(), &real));
    // Of launches that are collected already.
    let (files, home) = (program(), directory(&[]));
    let words = [
        "rewrite",
        "program.cu",
        "--at",
        "14",
        "--apply",
        "aggregate-block",
        "--in-place",
    ];
    gridfuse(files.path(), &words).expect_code(0);
    let arguments = [&with[..], &["revert,retune-grid"]].concat();
    all_ran(run_measure(&files, &home, "program.cu", &arguments, &real));
}
