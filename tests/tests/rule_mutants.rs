//! The rules of `tests/rule-mutants/rules.toml` stand where it says, cover the classes of `docs/soundness.md`, and were noticed when they
//! were taken out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::fs;

use gridfuse_tests::rule_mutants::{COMMAND, Rules, records};
use gridfuse_tests::workspace;

/// The first column of the table of classes.
fn classes(page: &str) -> BTreeSet<String> {
    let (_, rest) = page.split_once("## What was wrong once, by class").expect("the table");
    let table = rest.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = table.skip(1).take_while(|line| line.starts_with("| "));
    rows.filter_map(|row| row.get(2..)?.split_once(" | "))
        .map(|(class, _)| class.to_owned())
        .collect()
}

#[test]
fn each_rule_stands_once_in_its_file() {
    let rules = Rules::read().expect("the rules");
    let mut names = BTreeSet::new();
    for rule in &rules.rule {
        assert!(names.insert(&rule.name), "two rules are called \"{}\"", rule.name);
        let path = workspace::root().join(&rule.file);
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("\"{}\": {}: {error}", rule.name, rule.file));
        assert_eq!(
            text.matches(&rule.find).count(),
            1,
            "\"{}\": its `find` has to stand exactly once in {}; mend tests/rule-mutants/rules.toml, then run: {}",
            rule.name,
            rule.file,
            rule.command()
        );
    }
}

#[test]
fn each_class_has_a_rule() {
    let rules = Rules::read().expect("the rules");
    let page = fs::read_to_string(workspace::root().join("docs/soundness.md")).expect("the page");
    let classes = classes(&page);
    assert!(classes.len() > 60, "{classes:?}");
    let mut covered: BTreeSet<String> = rules.elsewhere.iter().chain(&rules.seen_twice).cloned().collect();
    covered.extend(rules.rule.iter().map(|rule| rule.class.clone()));
    let without: Vec<_> = classes.difference(&covered).collect();
    assert!(
        without.is_empty(),
        "{without:?}: no rule of tests/rule-mutants/rules.toml belongs to these classes of docs/soundness.md; add one"
    );
    let unknown: Vec<_> = covered.difference(&classes).collect();
    assert!(
        unknown.is_empty(),
        "{unknown:?}: tests/rule-mutants/rules.toml names classes that docs/soundness.md doesn't have"
    );
    let said = format!("lists {} of them", rules.rule.len());
    assert!(
        page.contains(&said),
        "docs/soundness.md, \"Rules that are taken out\", has to say \"{said}\""
    );
}

#[test]
fn each_rule_was_noticed_when_it_was_taken_out() {
    let rules = Rules::read().expect("the rules");
    let records = records().expect("the records");
    for rule in &rules.rule {
        let again = format!("run: {}", rule.command());
        let Some(record) = records.get(&rule.name) else {
            panic!("\"{}\" was never taken out; {again}", rule.name);
        };
        assert_eq!(
            record.fingerprint,
            rule.fingerprint(),
            "\"{}\" has changed since it was taken out; {again}",
            rule.name
        );
        assert!(
            record.killed,
            "no test notices that \"{}\" is taken out; {again}",
            rule.name
        );
    }
    let unknown: Vec<_> = records.keys().filter(|name| rules.number(name).is_err()).collect();
    assert!(
        unknown.is_empty(),
        "{unknown:?}: there are no such rules any more; run: {COMMAND}"
    );
}
