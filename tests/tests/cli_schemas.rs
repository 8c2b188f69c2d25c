//! The JSON that commands print is as `gridfuse schema` and `docs/schemas` say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::Path;

use gridfuse_tests::cli::{Directory, directory, gridfuse};
use gridfuse_tests::{expect, json_schema, workspace};
use serde_json::{Value, json};

const COMMANDS: [&str; 6] = ["check", "explain", "list", "doctor", "measure", "tune"];

fn schema(of: &str) -> Value {
    gridfuse(workspace::root(), &["schema", of]).expect_code(0).json()
}

/// The schema, which then allows no field that it doesn't name: what is printed is documented, all of it.
fn strict(mut schema: Value) -> Value {
    fn close(part: &mut Value) {
        match part {
            Value::Object(keywords) => {
                if keywords.contains_key("properties") {
                    keywords.entry("additionalProperties").or_insert(json!(false));
                }
                keywords.values_mut().for_each(close);
            }
            Value::Array(parts) => parts.iter_mut().for_each(close),
            _ => {}
        }
    }
    close(&mut schema);
    schema
}

#[track_caller]
fn expect_fits(of: &str, printed: &Value) {
    assert_eq!(json_schema::problems(&strict(schema(of)), printed), [""; 0], "{of}");
}

#[test]
fn the_schemas_are_written_down() {
    for of in COMMANDS {
        let text = gridfuse(workspace::root(), &["schema", of]).expect_code(0).stdout;
        let path = workspace::root().join(format!("docs/schemas/{of}.json"));
        expect::file(&path, &text, "cli_schemas");
    }
    gridfuse(workspace::root(), &["schema", "rewrite"]).expect_code(2);
}

/// Programs that launch, wait, recurse, iterate and allocate.
const PROGRAMS: [&str; 8] = [
    "corpus/bfs.cu",
    "corpus/bt_malloc.cu",
    "corpus/jacobi.cu",
    "corpus/los.cu",
    "corpus/qs.cu",
    "fixtures/diagnostics/device_sync.cu",
    "fixtures/diagnostics/recursion.cu",
    "fixtures/diagnostics/suppression.cu",
];

#[test]
fn check_and_explain_print_what_is_documented() {
    let (check, explain) = (strict(schema("check")), strict(schema("explain")));
    let (mut findings, mut launches) = (0, 0);
    for program in PROGRAMS {
        let path = &format!("tests/{program}");
        let checked = gridfuse(workspace::root(), &["check", path, "--format", "json"]).json();
        assert_eq!(json_schema::problems(&check, &checked), [""; 0], "{path}");
        let explained = gridfuse(workspace::root(), &["explain", path, "--format", "json"]).json();
        assert_eq!(json_schema::problems(&explain, &explained), [""; 0], "{path}");
        findings += checked["findings"].as_array().unwrap().len();
        launches += explained["launches"].as_array().unwrap().len();
    }
    assert!(findings > 20 && launches > 20, "{findings} {launches}");
}

#[test]
fn what_check_leaves_out_and_fixes_is_documented() {
    let program = b"__global__ void k() {}  // gridfuse: allow(launch-in-loop)\n";
    let files: Directory = directory(&[("a.cu", program), ("binary.cu", b"\xff")]);
    let report = gridfuse(files.path(), &["check", ".", "--fix", "--format", "json"]).json();
    for list in ["skipped", "fixed"] {
        assert_eq!(report[list].as_array().unwrap().len(), 1, "{list}: {report:#}");
    }
    expect_fits("check", &report);
}

#[test]
fn list_and_doctor_print_what_is_documented() {
    let report = gridfuse(workspace::root(), &["list", "--format", "json"]).json();
    expect_fits("list", &report);
    let report = gridfuse(workspace::root(), &["doctor", "--format", "json"]).json();
    expect_fits("doctor", &report);
}

/// What was printed on machines with a GPU.
#[test]
fn measure_and_tune_have_printed_what_is_documented() {
    let results = workspace::root().join("tests/gpu/results");
    let records = |directory: &Path, of: &str, prefix: &str| {
        let schema = schema(of);
        let mut seen = 0;
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if !name.starts_with(prefix) || !name.ends_with(".json") {
                continue;
            }
            let report: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            if report.get("version").is_some() && report.get("left_out").is_some() {
                assert_eq!(json_schema::problems(&schema, &report), [""; 0], "{}", path.display());
                seen += 1;
            }
        }
        assert!(seen > 0, "{of}");
    };
    records(&results.join("measured"), "measure", "");
    records(&results, "tune", "tune_");
}
