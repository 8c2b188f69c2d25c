//! After a rewrite gridfuse understands its own code: of the programs of the corpus, `check --deny warning` finds nothing, the graph has the same launches,
//! and `revert` gives back what was there, to the byte; of those of the fixtures, too. No line that a rewrite writes is wider than 100 columns.
//! What stays is what a rewrite has done that can't be taken back by `revert`: `optimize` applies some of these, too. What isn't so yet stands in `tests/corpus/rewritten.expect`, a line each.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gridfuse_codeactions::api::rewrite::Undo;
use gridfuse_codeactions::handlers::of_launches;
use gridfuse_tests::cli::{Directory, gridfuse, in_parallel};
use gridfuse_tests::emulator::Program;
use gridfuse_tests::emulator::rewritten::{device_launches, fixed, rewrite};
use gridfuse_tests::{expect, json_schema, workspace};
use regex::Regex;

const CORPUS: &str = "tests/corpus";

/// Programs that a newcomer writes, and those of somebody who looked for launches that the graph loses.
const OTHERS: [&str; 2] = ["tests/fixtures/newcomers", "tests/fixtures/audited"];

/// Programs of every form of formatting and of launch.
const FIXTURES: &str = "tests/fixtures/rewrites";

fn programs(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(workspace::root().join(folder)).expect("programs");
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".cu")).collect();
    names.sort();
    assert!(names.len() > 5, "{names:?}");
    names
}

/// The launches in a graph, by the names of who launches and what is launched.
fn launches(directory: &Path, file: &str) -> BTreeSet<(String, String)> {
    let graph = gridfuse(directory, &["graph", "--format", "mermaid", file]).expect_code(0);
    let node = Regex::new(r#"(?m)^  (n\d+)[\[(/]+"([^"]+)""#).unwrap();
    let edge = Regex::new(r#"(?m)^  (n\d+) --?\.?->(?:\|"[^"]*"\|)? (n\d+)$"#).unwrap();
    let names: BTreeMap<String, String> = node
        .captures_iter(&graph.stdout)
        .map(|found| (found[1].to_owned(), found[2].to_owned()))
        .collect();
    edge.captures_iter(&graph.stdout)
        .map(|found| (names[&found[1]].clone(), names[&found[2]].clone()))
        .collect()
}

/// What `check` finds, without what it only notes.
fn findings(directory: &Path, file: &str) -> BTreeSet<String> {
    let report = gridfuse(directory, &["check", "--format", "json", file]).json();
    let found = report["findings"].as_array().unwrap().clone();
    let found = found.iter().filter(|finding| finding["severity"] != "info");
    found
        .map(|finding| finding["id"].as_str().unwrap().to_owned())
        .collect()
}

/// What `optimize` leaves of a program that gridfuse doesn't understand as before.
fn after_optimize(folder: &str, name: &str) -> String {
    let root = Directory::new();
    let before = std::fs::read(workspace::root().join(folder).join(name)).expect("a program");
    let path = root.write(name, &before);
    let graph = launches(root.path(), name);
    // A line may have to be asked again: what is above it grows.
    for _ in 0..8 {
        let report = gridfuse(root.path(), &["explain", "--format", "json", name]).expect_code(0);
        let lines = report.json()["launches"].as_array().unwrap().clone();
        let lines = lines.iter().filter(|launch| launch["launched_by"] != "host");
        let applied = lines.clone().any(|launch| {
            let line = launch["place"]["start"]["line"].to_string();
            let words = ["rewrite", name, "--at", &line, "--apply", "optimize", "--in-place"];
            gridfuse(root.path(), &words).code == Some(0)
        });
        if !applied {
            break;
        }
    }
    let mut out = String::new();
    // Neither in the program nor in the header that was made.
    let report = gridfuse(root.path(), &["check", "--deny", "warning", "."]);
    if report.code != Some(0) {
        for id in findings(root.path(), ".") {
            out += &format!("{name}: optimized, check finds {id}\n");
        }
    }
    let text = std::fs::read_to_string(path).unwrap();
    let now = launches(root.path(), name);
    for (from, to) in graph.difference(&now) {
        // Run in the launching thread, nothing is launched any more.
        if text.contains(&format!("{to}_serial(")) && !text.contains(&format!("{to}_aggregated")) {
            continue;
        }
        out += &format!("{name}: optimized, the graph has no launch of {to} by {from}\n");
    }
    for (from, to) in now.difference(&graph) {
        out += &format!("{name}: optimized, the graph has a launch of {to} by {from}\n");
    }
    out
}

/// The lines that a rewrite has written, and that are too wide: not the user's, which it has moved or has changed a word of.
fn too_wide(what: &str, before: &Program, after: &Program) -> String {
    let mut out = String::new();
    for (path, text) in after.files() {
        let Some(known) = before.files().get(path) else {
            continue;
        };
        let known: BTreeSet<&str> = known.lines().map(str::trim).collect();
        let long = known.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let own = text.lines().filter(|line| !known.contains(line.trim()));
        for line in own.filter(|line| line.chars().count() > 100 && (long <= 100 || is_made(line))) {
            out += &format!("{what}: a line of {} columns: {}\n", line.chars().count(), line.trim());
        }
    }
    out
}

/// Whether a line is one that only a rewrite writes.
fn is_made(line: &str) -> bool {
    let line = line.trim();
    ["gridfuse::", "batch.", "__device__", "// "]
        .iter()
        .any(|start| line.starts_with(start))
}

/// Which rewrites of a program are not taken back to the byte, and which write lines that are too wide.
fn not_reverted(folder: &str, name: &str) -> (usize, String) {
    let program = Program::load(&workspace::root().join(folder), &[name], &[""; 0]).expect("a program");
    let (mut exact, mut out) = (0, String::new());
    for site in device_launches(&program) {
        // What `optimize` applies of these stays.
        let kept = of_launches().filter(|it| matches!(it.undo, Undo::Not(_)));
        let kept: Vec<Program> = kept
            .filter_map(|it| rewrite(&program, &site, it.id).ok())
            .map(|rewritten| rewritten.program)
            .collect();
        let same = |back: &Program| {
            let mut plain = std::iter::once(&program).chain(&kept);
            plain.any(|plain| {
                program
                    .files()
                    .keys()
                    .all(|path| back.files().get(path) == plain.files().get(path))
            })
        };
        for id in of_launches()
            .filter(|it| !matches!(it.undo, Undo::Not(_)))
            .map(|it| it.id)
        {
            let Ok(rewritten) = rewrite(&program, &site, id) else {
                continue;
            };
            let what = format!("{name}:{} {id}", site.line);
            out += &too_wide(&what, &program, &rewritten.program);
            match rewritten.fix("revert") {
                // There is nothing to take back.
                Err(_) if same(&rewritten.program) => {}
                Err(reasons) => out += &format!("{what}: revert refuses: {reasons}\n"),
                Ok(back) if same(&back) => exact += 1,
                // Of two rewrites, as `optimize` may apply, the first is taken back by a second step.
                Ok(back) if fixed(&back, &site, "revert").is_ok_and(|plain| same(&plain)) => exact += 1,
                Ok(_) => out += &format!("{what}: revert gives another text\n"),
            }
        }
    }
    (exact, out)
}

#[test]
fn the_rewritten_corpus_is_understood() {
    let results = in_parallel(&programs(CORPUS), |name| {
        let (exact, reverted) = not_reverted(CORPUS, name);
        (exact, after_optimize(CORPUS, name) + &reverted)
    });
    let fixtures = in_parallel(&programs(FIXTURES), |name| not_reverted(FIXTURES, name));
    let mut told = String::new();
    for (what, results) in [("the corpus", results), ("the fixtures", fixtures)] {
        let exact: usize = results.iter().map(|(exact, _)| exact).sum();
        told += &format!("{exact} rewrites of launches of {what} are taken back to the byte. Not yet:\n");
        told.extend(results.into_iter().map(|(_, lines)| lines));
    }
    for folder in OTHERS {
        let results = in_parallel(&programs(folder), |name| {
            let (exact, reverted) = not_reverted(folder, name);
            (exact, after_optimize(folder, name) + &reverted)
        });
        let exact: usize = results.iter().map(|(exact, _)| exact).sum();
        told += &format!("{exact} rewrites of launches of {folder} are taken back to the byte. Not yet:\n");
        told.extend(results.into_iter().map(|(_, lines)| lines));
    }
    let path = workspace::root().join("tests/corpus/rewritten.expect");
    expect::file(&path, &told, "rewritten_corpus");
}

/// What was a launch is told of as one.
#[test]
fn a_collected_launch_is_explained() {
    let root = Directory::new();
    let program = std::fs::read(workspace::root().join("tests/corpus/bfs.cu")).expect("a program");
    let path = root.write("bfs.cu", &program);
    let line = |part: &str| {
        let text = std::fs::read_to_string(&path).unwrap();
        1 + text.lines().position(|line| line.contains(part)).expect("a line")
    };
    let at = line("expand<<<").to_string();
    let words = [
        "rewrite",
        "bfs.cu",
        "--at",
        &at,
        "--apply",
        "aggregate-block",
        "--in-place",
    ];
    gridfuse(root.path(), &words).expect_code(0);
    let at = line("expands.launch(");
    let told = gridfuse(root.path(), &["explain", &format!("bfs.cu:{at}")])
        .expect_code(0)
        .stdout;
    let parts = [
        "  is          a launch of `expand` in `bfs_level`, collected per block\n",
        " rewrites fit; best: ",
        "  command     gridfuse rewrite bfs.cu:",
        "  runs        collected per block: one grid runs all grids of `expand` that a block launches here\n",
        "  was         expand<<<(count + 127) / 128, 128>>>(",
        "  take back   gridfuse revert bfs.cu:",
        "  child       expand (",
        "  parent      kernel bfs_level (",
        "  launched by each thread that gets here\n",
        "  reached     varying: only threads with `count > 0` get here (line ",
        "│ grid ",
        "│ block ",
        "│ count ",
        "│ retune-grid ",
        "│ revert ",
    ];
    let found: Vec<Option<usize>> = parts.iter().map(|part| told.find(part)).collect();
    assert!(
        found.iter().all(Option::is_some) && found.is_sorted(),
        "{found:?}\n{told}"
    );
    let report = gridfuse(root.path(), &["explain", "bfs.cu", "--format", "json"]).expect_code(0);
    let report = report.json();
    let schema = gridfuse(root.path(), &["schema", "explain"]).expect_code(0).json();
    assert_eq!(json_schema::problems(&schema, &report), [""; 0]);
    let collected = &report["collected"][0];
    assert_eq!(collected["runs"], "collected per block");
    assert_eq!(collected["config"][0]["name"], "grid");
    assert_eq!(collected["config"][1]["uniformity"]["level"], "constant");
    assert_eq!(collected["child"]["name"], "expand");
    // They are the user's launches still, and those of the runtime aren't.
    let check = gridfuse(root.path(), &["check", "."]).expect_code(0);
    let summary = check.stdout.lines().last().unwrap_or_default();
    assert!(
        summary.starts_with("1 device-side launch (1 collected) in 1 function, "),
        "{summary}"
    );
    let check = gridfuse(root.path(), &["check", ".", "--format", "json"])
        .expect_code(0)
        .json();
    let summary = &check["summary"];
    assert_eq!((&summary["launches"], &summary["collected"]), (&0.into(), &1.into()));
    let graph = launches(root.path(), "bfs.cu");
    assert!(
        graph.contains(&("bfs_level".to_owned(), "expand".to_owned())),
        "{graph:?}"
    );
    let quiet = gridfuse(root.path(), &["check", "--deny", "info", "gridfuse.cuh"]);
    assert_eq!(quiet.code, Some(0), "{}", quiet.stdout);
}

// The parent's name is a word in the runtime's header, too.
const MATRIX: &str = "__global__ void scale(float* m, int row, int columns, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < columns) m[row * columns + i] *= by;
}

__global__ void two(float* m, const float* by, int rows, int columns) {
    for (int r = 0; r < rows; ++r) scale<<<(columns + 255) / 256, 256>>>(m, r, columns, by[r]);
}

void run(float* m, const float* by, int rows, int columns) {
    two<<<1, 1>>>(m, by, rows, columns);
}
";

/// How uniform the grid size and the arguments of the launch are, by name, and who launches: of a launch, or of what collects it.
fn uniform(directory: &Directory, line: usize) -> (BTreeMap<String, String>, String) {
    let at = line.to_string();
    let report = gridfuse(directory.path(), &["explain", "a.cu", "--at", &at, "--format", "json"]).json();
    let launch = match &report["collected"][0] {
        serde_json::Value::Null => &report["launches"][0],
        collected => collected,
    };
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let level = |value: &serde_json::Value| text(&value["uniformity"]["level"]);
    let args = launch["args"].as_array().into_iter().flatten();
    let config = launch["config"].as_array().into_iter().flatten();
    let name = |value: &serde_json::Value| match &value["parameter"] {
        serde_json::Value::String(parameter) => parameter.clone(),
        _ => text(&value["name"]),
    };
    let mut found: BTreeMap<String, String> = args.chain(config).map(|value| (name(value), level(value))).collect();
    found.remove("block");
    if !launch["grid"].is_null() {
        found.insert("grid".to_owned(), level(&launch["grid"]));
    }
    (found, text(&launch["launched_by"]))
}

#[test]
fn arguments_of_collected_launches_are_as_uniform_as_before() {
    let line = |text: &str, what: &str| 1 + text.lines().position(|line| line.contains(what)).expect(what);
    for id in ["aggregate-block", "aggregate-grid", "aggregate-grid-stream"] {
        let directory = Directory::new();
        directory.write("a.cu", MATRIX.as_bytes());
        let launch = line(MATRIX, "<<<(");
        let before = uniform(&directory, launch);
        let at = launch.to_string();
        gridfuse(
            directory.path(),
            &["rewrite", "a.cu", "--at", &at, "--apply", id, "--in-place"],
        )
        .expect_code(0);
        let after = uniform(&directory, line(&directory.read("a.cu"), ".launch("));
        assert_eq!(after.1, before.1, "{id}");
        for (name, level) in &after.0 {
            assert_eq!(
                Some(level),
                before.0.get(name),
                "{id}, {name}: {:?}, {:?}",
                after.0,
                before.0
            );
        }
        assert!(
            after.0.contains_key("by") && after.0.contains_key("grid"),
            "{:?}",
            after.0
        );
    }
}
