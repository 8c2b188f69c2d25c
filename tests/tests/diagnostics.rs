//! What `gridfuse check` says of the programs in `tests/fixtures/diagnostics`: exactly what their comments expect.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fmt::Write as _;

use gridfuse_tests::cli::{Directory, files_of, gridfuse};
use gridfuse_tests::fixture::Fixture;
use gridfuse_tests::workspace;

/// The findings that are missing, and those that nothing expects.
fn surprises(fixture: &Fixture) -> String {
    let directory = Directory::new();
    for file in &fixture.files {
        directory.write(file.path.trim_start_matches('/'), file.text.as_bytes());
    }
    let report = gridfuse(directory.path(), &["check", ".", "--format", "json"]).json();
    let mut surprises = String::new();
    let mut findings: Vec<_> = report["findings"].as_array().expect("findings").iter().collect();
    for file in &fixture.files {
        for wanted in &file.annotations {
            let number =
                |value: &serde_json::Value| value.as_u64().and_then(|n| usize::try_from(n).ok()).expect("an offset");
            let found = findings.iter().position(|finding| {
                let place = &finding["place"];
                let range = number(&place["start"]["offset"])..number(&place["end"]["offset"]);
                let text = |name: &str| finding[name].as_str().expect("a text");
                place["path"] == file.path.trim_start_matches('/')
                    && wanted.matches(&range, text("severity"), text("id"), text("message"))
            });
            match found {
                Some(found) => drop(findings.remove(found)),
                None => {
                    let line = file.text[..wanted.range.start].matches('\n').count() + 1;
                    let _ = writeln!(
                        surprises,
                        "missing: {}:{line}: {} {}",
                        file.path,
                        wanted.id,
                        &file.text[wanted.range.clone()]
                    );
                }
            }
        }
    }
    for finding in findings {
        let _ = writeln!(
            surprises,
            "unexpected: {}:{} {}: {}",
            finding["place"]["path"], finding["place"]["start"]["line"], finding["id"], finding["message"]
        );
    }
    surprises
}

#[test]
fn fixtures() {
    let fixtures = workspace::root().join("tests/fixtures/diagnostics");
    let mut failures = String::new();
    let mut expected = 0;
    for (name, bytes) in files_of(&fixtures) {
        let fixture =
            Fixture::try_parse(&String::from_utf8(bytes).expect("UTF-8")).unwrap_or_else(|e| panic!("{name}: {e}"));
        expected += fixture.files.iter().map(|file| file.annotations.len()).sum::<usize>();
        let surprises = surprises(&fixture);
        if !surprises.is_empty() {
            let _ = writeln!(failures, "{name}:\n{surprises}");
        }
    }
    assert!(failures.is_empty(), "{failures}");
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
