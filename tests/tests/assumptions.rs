//! Everything that a rewrite takes for granted anywhere has a section of `docs/assumptions.md`, and every section is about something that a
//! rewrite does take for granted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;

use gridfuse_codeactions::api::assumption::ASSUMPTIONS;
use gridfuse_tests::{assumptions, docs, expect, workspace};

#[test]
fn all_that_is_assumed_is_on_the_page() {
    let made = assumptions::made();
    expect::file(&assumptions::record_file(), &assumptions::record(&made), "assumptions");
    let page = std::fs::read_to_string(workspace::root().join("docs").join(docs::ASSUMPTIONS)).expect("the page");
    let sections: BTreeSet<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let missing: Vec<&String> = made.keys().filter(|id| !sections.contains(id.as_str())).collect();
    assert!(
        missing.is_empty(),
        "no section of {}: {missing:?}\nrun: cargo run -p gridfuse-tests --bin docs",
        docs::ASSUMPTIONS
    );
    let elsewhere: BTreeSet<&str> = assumptions::ELSEWHERE.iter().map(|(id, ..)| *id).collect();
    let kinds = ASSUMPTIONS.iter().map(|kind| kind.id());
    let never: Vec<&str> = kinds
        .filter(|id| !made.contains_key(*id) && !elsewhere.contains(id))
        .collect();
    assert!(
        never.is_empty(),
        "no program leads to {never:?}: add one to tests/fixtures"
    );
    let needless: Vec<&&str> = elsewhere.iter().filter(|id| made.contains_key(**id)).collect();
    assert!(
        needless.is_empty(),
        "programs lead to {needless:?}, which aren't made elsewhere alone"
    );
}
