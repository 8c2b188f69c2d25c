//! Programs for which a rewrite was once offered that computed something else, trapped, or didn't compile: what is offered for them now,
//! in `tests/fixtures/once_wrong/offers.expect`. Each of these offers was run in the emulator before it was written down there
//! (`emulate FILE --apply ID --at LINE --seeds 6`), and prints what the original prints, unless what it assumes doesn't hold.
//!
//! `UPDATE_EXPECT=1` writes the file anew; run what is new in it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use gridfuse_tests::cli::{directory, gridfuse, in_parallel};
use gridfuse_tests::{expect, workspace};
use serde_json::Value;

fn home() -> PathBuf {
    workspace::root().join("tests/fixtures/once_wrong")
}

/// A line for each launch by the device, with what is offered and how often it launches.
fn offers(name: &str, text: &[u8]) -> String {
    // Alone in its folder: nothing of the others is seen.
    let root = directory(&[(name, text)]);
    let run = gridfuse(root.path(), &["explain", name, "--format", "json"]).expect_code(0);
    let said: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let mut out = String::new();
    for launch in said["launches"].as_array().expect("launches") {
        if launch["launched_by"] == "host" {
            continue;
        }
        let offered = |verdict: &str| {
            let rewrites = launch["rewrites"].as_array().expect("rewrites").iter();
            let ids = rewrites.filter(|rewrite| rewrite["verdict"] == verdict);
            let ids: Vec<&str> = ids.filter_map(|rewrite| rewrite["rewrite"].as_str()).collect();
            match ids.is_empty() {
                true => "nothing".to_owned(),
                false => ids.join(" "),
            }
        };
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        writeln!(
            out,
            "{name}:{} by {}, {} per thread\n    eligible: {}\n    assumes: {}",
            launch["place"]["start"]["line"],
            text(&launch["launchers"]),
            text(&launch["count"]["per_thread"]),
            offered("eligible"),
            offered("assumes"),
        )
        .expect("a string");
    }
    out
}

#[test]
fn what_was_wrong_once_is_offered_no_more() {
    let mut names: Vec<String> = fs::read_dir(home())
        .expect("the fixtures")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".cu"))
        .collect();
    names.sort();
    let all = in_parallel(&names, |name| {
        offers(name, &fs::read(home().join(name)).expect("a fixture"))
    });
    let found = all.concat();
    let expected = home().join("offers.expect");
    expect::file(&expected, &found, "once_wrong");
}
