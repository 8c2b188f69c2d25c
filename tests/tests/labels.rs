//! How often the analyses say of a launch site what a reader says (`tests/labels`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gridfuse_tests::cli::{Directory, gridfuse};
use gridfuse_tests::workspace;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Labels {
    file: String,
    launch: Vec<Launch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Launch {
    of: String,
    #[serde(rename = "loop")]
    in_loop: bool,
    divergent: Option<bool>,
    stream: String,
    sync: bool,
    recursive: bool,
    launched_by: Option<String>,
    grid: String,
    block: String,
    args: Vec<String>,
}

/// Right and all answers by field, and what was wrong.
#[derive(Default)]
struct Score {
    fields: BTreeMap<&'static str, (u32, u32)>,
    wrong: Vec<String>,
    unsound: Vec<String>,
}

/// From the most uniform to the least.
const LEVELS: [&str; 5] = ["constant", "grid-uniform", "block-uniform", "warp-uniform", "varying"];

impl Score {
    fn compare(&mut self, field: &'static str, at: &str, label: &Value, answer: &Value) {
        let (right, all) = self.fields.entry(field).or_default();
        *all += 1;
        if label == answer {
            *right += 1;
        } else {
            self.wrong.push(format!("{at}: {field}: {answer}, labelled {label}"));
        }
    }

    fn uniformity(&mut self, field: &'static str, at: &str, label: &str, operand: &Value) {
        if label == "?" {
            return;
        }
        let label = match label {
            "grid" | "block" | "warp" => format!("{label}-uniform"),
            other => other.to_owned(),
        };
        let rank = |level: &str| {
            LEVELS
                .iter()
                .position(|l| *l == level)
                .unwrap_or_else(|| panic!("{level}"))
        };
        let at = format!("{at}: `{}`", operand["text"].as_str().unwrap());
        let said = &operand["uniformity"];
        self.compare(field, &at, &label.clone().into(), &said["level"]);
        for kind in ["level", "proved"] {
            let level = said[kind].as_str().unwrap();
            if rank(level) < rank(&label) {
                self.unsound.push(format!("{at}: {kind}: {level}, labelled {label}"));
            }
        }
    }
}

fn file(score: &mut Score, path: &Path) {
    let labels: Labels = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    let source = path.parent().unwrap().join(&labels.file);
    // By itself: the other programs have functions of the same names.
    let directory = Directory::new();
    directory.write("program.cu", &fs::read(&source).unwrap());
    let report = gridfuse(directory.path(), &["explain", "program.cu", "--format", "json"]).json();
    let launches: Vec<&Value> = report["launches"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|l| l["parent"]["kind"] != "host")
        .collect();
    let found: Vec<String> = launches
        .iter()
        .map(|l| {
            let name = |v: &Value| v["name"].as_str().unwrap_or("?").to_owned();
            let child = name(&l["child"]);
            format!("{}: {}", name(&l["parent"]), child.split('<').next().unwrap())
        })
        .collect();
    let labelled: Vec<&str> = labels.launch.iter().map(|l| l.of.as_str()).collect();
    assert_eq!(found, labelled, "{}: launch sites", labels.file);
    for (label, launch) in labels.launch.iter().zip(launches) {
        let at = format!("{}:{}", labels.file, launch["place"]["start"]["line"]);
        score.compare("loop", &at, &label.in_loop.into(), &launch["in_loop"]);
        if let Some(divergent) = label.divergent {
            score.compare("divergent", &at, &divergent.into(), &launch["divergent"]);
        }
        score.compare("stream", &at, &label.stream.as_str().into(), &launch["stream"]);
        score.compare("sync", &at, &label.sync.into(), &(!launch["sync"].is_null()).into());
        score.compare("recursive", &at, &label.recursive.into(), &launch["recursive"]);
        if let Some(who) = &label.launched_by {
            score.compare("launched by", &at, &who.as_str().into(), &launch["launched_by"]);
        }
        score.uniformity("grid size", &at, &label.grid, &launch["grid"]);
        score.uniformity("block size", &at, &label.block, &launch["block"]);
        let args = launch["args"].as_array().unwrap();
        assert_eq!(args.len(), label.args.len(), "{at}: arguments");
        for (label, arg) in label.args.iter().zip(args) {
            score.uniformity("arguments", &at, label, arg);
        }
    }
}

#[test]
fn the_analyses_agree_with_readers() {
    let directory = workspace::root().join("tests/labels");
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    let mut score = Score::default();
    for path in &files {
        file(&mut score, path);
    }
    for (field, (right, all)) in &score.fields {
        println!(
            "{field:<12} {right:>4} of {all:>4}  {:.1} %",
            f64::from(*right) / f64::from(*all) * 100.0
        );
    }
    println!("{}", score.wrong.join("\n"));
    assert!(score.unsound.is_empty(), "too uniform:\n{}", score.unsound.join("\n"));
    for (field, (right, all)) in &score.fields {
        let target = if *field == "arguments" { 95 } else { 97 };
        assert!(right * 100 >= all * target, "{field}: {right} of {all}");
    }
    assert!(score.fields["stream"].1 >= 60, "too few launch sites");
}
