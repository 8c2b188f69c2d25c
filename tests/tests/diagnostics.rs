//! What `gridfuse check` says of the programs in `tests/fixtures/diagnostics`: exactly what their comments expect.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fmt::Write as _;
use std::fs;

use gridfuse_tests::cli::{Directory, files_of, gridfuse};
use gridfuse_tests::fixture::{Fixture, expecting, lines_before};
use gridfuse_tests::{expect, workspace};
use serde_json::Value;

/// What the comments of a fixture don't say right.
#[derive(Default)]
struct Surprises {
    /// For a person.
    text: String,
    /// Comments that would expect what nothing expects, each with the number of lines of the fixture in front of it.
    comments: Vec<(usize, String)>,
}

/// The findings that are missing, and those that nothing expects. `raw` is the fixture as it stands in its file.
fn surprises(raw: &str, fixture: &Fixture) -> Surprises {
    let number = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok()).expect("an offset");
    let range = |finding: &Value| {
        let place = &finding["place"];
        number(&place["start"]["offset"])..number(&place["end"]["offset"])
    };
    let directory = Directory::new();
    for file in &fixture.files {
        directory.write(file.path.trim_start_matches('/'), file.text.as_bytes());
    }
    let report = gridfuse(directory.path(), &["check", ".", "--format", "json"]).json();
    let mut surprises = Surprises::default();
    let mut findings: Vec<_> = report["findings"].as_array().expect("findings").iter().collect();
    for file in &fixture.files {
        for wanted in &file.annotations {
            let found = findings.iter().position(|finding| {
                let text = |name: &str| finding[name].as_str().expect("a text");
                finding["place"]["path"] == file.path.trim_start_matches('/')
                    && wanted.matches(&range(finding), text("severity"), text("id"), text("message"))
            });
            match found {
                Some(found) => drop(findings.remove(found)),
                None => {
                    let line =
                        lines_before(raw, &file.path) + file.text[..wanted.range.start].matches('\n').count() + 1;
                    let _ = writeln!(
                        surprises.text,
                        "line {line}: {} isn't found in `{}`",
                        wanted.id,
                        &file.text[wanted.range.clone()]
                    );
                }
            }
        }
    }
    for finding in findings {
        let text = |name: &str| finding[name].as_str().expect("a text");
        let path = format!("/{}", finding["place"]["path"].as_str().expect("a path"));
        let file = fixture.file(&path).expect("a file of the fixture");
        let before = lines_before(raw, &path);
        let line = before + number(&finding["place"]["start"]["line"]);
        let what = format!("{} {}", text("severity"), text("id"));
        let _ = write!(
            surprises.text,
            "line {line}: nothing expects {}: {}",
            text("id"),
            text("message")
        );
        match expecting(&file.text, &range(finding), &what) {
            Some((lines, comment)) => {
                let _ = writeln!(surprises.text, "; what would:\n{comment}");
                surprises.comments.push((before + lines, comment));
            }
            None => surprises.text.push_str("; no carets can stand below it\n"),
        }
    }
    surprises
}

/// The fixture with more comments.
fn with_comments(raw: &str, mut comments: Vec<(usize, String)>) -> String {
    comments.sort();
    let end = if raw.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines: Vec<String> = raw.split_inclusive('\n').map(str::to_owned).collect();
    for (at, comment) in comments.into_iter().rev() {
        lines.insert(at, format!("{comment}{end}"));
    }
    lines.concat()
}

#[test]
fn fixtures() {
    let fixtures = workspace::root().join("tests/fixtures/diagnostics");
    let mut failures = String::new();
    let mut expected = 0;
    for (name, bytes) in files_of(&fixtures) {
        let raw = String::from_utf8(bytes).expect("UTF-8");
        let read = |raw: &str| Fixture::try_parse(raw).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut fixture = read(&raw);
        let mut found = surprises(&raw, &fixture);
        if expect::updates() && !found.comments.is_empty() {
            let more = with_comments(&raw, found.comments);
            fs::write(fixtures.join(&name), &more).unwrap_or_else(|e| panic!("{name}: {e}"));
            fixture = read(&more);
            found = surprises(&more, &fixture);
        }
        expected += fixture.files.iter().map(|file| file.annotations.len()).sum::<usize>();
        if !found.text.is_empty() {
            let _ = writeln!(failures, "tests/fixtures/diagnostics/{name}:\n{}", found.text);
        }
    }
    assert!(
        failures.is_empty(),
        r#"{failures}What is found and right, this writes into the programs:
UPDATE_EXPECT=1 cargo test -p gridfuse-tests --test diagnostics"#
    );
    assert!(expected > 20, "{expected} findings are expected");
}

/// The toolkit's own headers are full of CUDA; a few of them with everything that one finds there.
#[test]
fn headers_of_the_toolkit_are_clean() {
    let include = gridfuse_tests::nvcc::Nvcc::get().root().join("include");
    let headers = [
        "cooperative_groups.h",
        "cuda_fp16.hpp",
        "cuda_runtime.h",
        "device_launch_parameters.h",
        "vector_functions.hpp",
    ];
    let headers: Vec<String> = headers
        .iter()
        .map(|name| include.join(name))
        .filter(|path| path.is_file())
        .map(|path| path.display().to_string())
        .collect();
    let mut arguments = vec!["check", "--format", "json"];
    arguments.extend(headers.iter().map(String::as_str));
    let report = gridfuse(Directory::new().path(), &arguments).expect_code(0).json();
    assert_eq!(report["findings"], serde_json::json!([]));
}
