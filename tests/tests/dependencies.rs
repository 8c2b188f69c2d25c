//! The dependencies are what `.deny.toml` says: their licences, where they come from, and which ones. `cargo deny check` says the same, and
//! more where there is a network.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use gridfuse_tests::workspace;
use serde::Deserialize;
use serde_json::Value;

/// What this test understands of `.deny.toml`; the rest is for `cargo deny`.
#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Licenses {
    allow: Vec<String>,
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Bans {
    deny: Vec<String>,
    skip: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

/// A licence expression holds: `A`, `A OR B`, `A AND (B OR C)`, `A WITH E`, and the old `A/B`.
fn holds(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let result = either(&words, &mut at, allowed);
    assert_eq!(at, words.len(), "`{expression}` isn't understood");
    result
}

fn either(words: &[&str], at: &mut usize, allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut result = both(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        result |= both(words, at, allowed);
    }
    result
}

fn both(words: &[&str], at: &mut usize, allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut result = single(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        result &= single(words, at, allowed);
    }
    result
}

fn single(words: &[&str], at: &mut usize, allowed: &dyn Fn(&str) -> bool) -> bool {
    let word = words.get(*at).copied().unwrap_or_default();
    *at += 1;
    if word == "(" {
        let result = either(words, at, allowed);
        assert_eq!(words.get(*at), Some(&")"), "{words:?}");
        *at += 1;
        return result;
    }
    if words.get(*at) == Some(&"WITH") {
        let name = format!("{word} WITH {}", words.get(*at + 1).copied().unwrap_or_default());
        *at += 2;
        return allowed(&name);
    }
    allowed(word)
}

/// What is wrong with the packages.
fn problems(packages: &[Value], deny: &Deny) -> Vec<String> {
    let text = |package: &Value, name: &str| package[name].as_str().unwrap_or_default().to_owned();
    let mut problems = Vec::new();
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages {
        let (name, version) = (text(package, "name"), text(package, "version"));
        let extra = deny
            .licenses
            .exceptions
            .iter()
            .filter(|exception| exception.name == name);
        let all: Vec<&String> = deny
            .licenses
            .allow
            .iter()
            .chain(extra.flat_map(|exception| &exception.allow))
            .collect();
        let licence = text(package, "license");
        if licence.is_empty() || !holds(&licence, &|one| all.iter().any(|allowed| *allowed == one)) {
            problems.push(format!("{name} {version} has the licence `{licence}`"));
        }
        if let Some(source) = package["source"].as_str() {
            let registry = source.strip_prefix("registry+").or(source.strip_prefix("sparse+"));
            if !registry.is_some_and(|registry| deny.sources.allow_registry.iter().any(|allowed| allowed == registry)) {
                problems.push(format!("{name} {version} comes from {source}"));
            }
        }
        if deny.bans.deny.contains(&name) {
            problems.push(format!("{name} {version} is banned"));
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if text(dependency, "req") == "*" && dependency["path"].is_null() {
                problems.push(format!("{name} takes any version of {}", text(dependency, "name")));
            }
        }
        if !deny.bans.skip.contains(&format!("{name}@{version}")) {
            versions.entry(name).or_default().insert(version);
        }
    }
    let several = versions.iter().filter(|(_, versions)| versions.len() > 1);
    problems.extend(several.map(|(name, versions)| format!("{name} is there as {versions:?}")));
    for skipped in &deny.bans.skip {
        let (name, version) = skipped.split_once('@').expect("name@version");
        if !packages
            .iter()
            .any(|package| text(package, "name") == name && text(package, "version") == version)
        {
            problems.push(format!("{skipped} is skipped, and isn't there any more"));
        }
    }
    problems
}

fn deny() -> Deny {
    let text = fs::read_to_string(workspace::root().join(".deny.toml")).unwrap();
    toml::from_str(&text).unwrap()
}

#[test]
fn dependencies_are_what_they_may_be() {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(workspace::root())
        .args(["metadata", "--format-version", "1", "--all-features", "--locked"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100);
    let problems = problems(packages, &deny());
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn what_may_not_be_is_found() {
    let package = |name: &str, version: &str, license: &str, source: &str| {
        serde_json::json!({ "name": name, "version": version, "license": license, "source": source,
            "dependencies": [{ "name": "any", "req": if name == "loose" { "*" } else { "^1" } }] })
    };
    let here = "registry+https://github.com/rust-lang/crates.io-index";
    let mut deny = deny();
    deny.bans.skip = vec!["old@1.0.0".to_owned(), "gone@1.0.0".to_owned()];
    let packages = [
        package("good", "1.0.0", "(MIT OR GPL-3.0) AND Zlib", here),
        package("llvm", "1.0.0", "Apache-2.0 WITH LLVM-exception", here),
        package("old", "1.0.0", "MIT/Apache-2.0", here),
        package("old", "2.0.0", "Apache-2.0 / MIT", here),
        package("copyleft", "1.0.0", "MIT AND GPL-3.0", here),
        package("silent", "1.0.0", "", here),
        package("git", "1.0.0", "MIT", "git+https://example.com/x"),
        package("elsewhere", "1.0.0", "MIT", "registry+https://example.com/index"),
        package("openssl-sys", "1.0.0", "MIT", here),
        package("loose", "1.0.0", "MIT", here),
        package("two", "1.0.0", "MIT", here),
        package("two", "2.0.0", "MIT", here),
    ];
    let found = problems(&packages, &deny);
    let subjects: Vec<&str> = found
        .iter()
        .filter_map(|problem| problem.split([' ', '@']).next())
        .collect();
    assert_eq!(
        subjects,
        [
            "copyleft",
            "silent",
            "git",
            "elsewhere",
            "openssl-sys",
            "loose",
            "two",
            "gone"
        ],
        "{found:#?}"
    );
}
