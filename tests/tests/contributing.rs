//! What people who come need: pages that are linked and name what there is, a changelog, workflows that call scripts that exist, and crates
//! that can be packaged.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use gridfuse_tests::workspace;
use regex::Regex;
use serde_json::Value;

const GUIDE: &str = ".github/CONTRIBUTING.md";

/// What isn't the repository's own.
const FOREIGN: [&str; 4] = ["target", "node_modules", ".git", "dist"];

/// The files under a directory whose names end so.
fn files(directory: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        if entry.file_type().unwrap().is_dir() {
            if !FOREIGN.contains(&&*name) {
                files(&path, ending, found);
            }
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Where the links of a page lead to, without those to other sites.
fn links(text: &str) -> Vec<String> {
    // Code has brackets, too.
    let prose = Regex::new(r"(?ms)^```.*?^```|`[^`\n]*`").unwrap().replace_all(text, "");
    let link = Regex::new(r"\]\(([^()\s]+)\)").unwrap();
    let all = link.captures_iter(&prose).map(|found| found[1].to_owned());
    all.filter(|link| !link.contains("://") && !link.starts_with('#'))
        .collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    let root = workspace::root();
    let mut pages = Vec::new();
    files(root, ".md", &mut pages);
    let mut dead = Vec::new();
    let mut seen = 0;
    for page in pages {
        for link in links(&read(&page)) {
            seen += 1;
            let path = link.split('#').next().unwrap();
            if !page.parent().unwrap().join(path).exists() {
                let page = page.strip_prefix(root).unwrap().display().to_string();
                dead.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(seen > 100, "only {seen} links are found");
    assert!(dead.is_empty(), "nothing is where these links lead: {dead:#?}");
}

fn contributing_pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    files(&workspace::root().join("docs/contributing"), ".md", &mut pages);
    pages.sort();
    pages
}

#[test]
fn the_guide_links_every_page_for_contributors() {
    let guide = links(&read(&workspace::root().join(GUIDE)));
    let pages = contributing_pages();
    assert!(pages.len() >= 5);
    for page in pages {
        let link = format!("../docs/contributing/{}", page.file_name().unwrap().to_string_lossy());
        assert!(
            guide.contains(&link),
            "{GUIDE} has no link to {link}: add a line to its table"
        );
    }
    let readme = links(&read(&workspace::root().join("README.md")));
    for link in [GUIDE, "docs/CHANGELOG.md"] {
        assert!(
            readme.iter().any(|known| known == link),
            "README.md has no link to {link}"
        );
    }
}

/// Paths, binaries, tests and crates that the pages name are there. What is only an example isn't.
#[test]
fn pages_for_contributors_name_what_there_is() {
    const EXAMPLES: [&str; 2] = ["annotate_launch", "single_thread_block"];
    let root = workspace::root();
    // A row of a table speaks of its layer.
    let mut bases = vec![root.to_path_buf()];
    for source in ["analysis/src", "codeactions/src"] {
        let source = root.join(source);
        let layers = fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().path());
        bases.extend(layers.filter(|path| path.is_dir()));
        bases.push(source);
    }
    let code = Regex::new(r"`([A-Za-z0-9_.-]+/[A-Za-z0-9_./-]*)`").unwrap();
    let option = Regex::new(r"--(bin|test) ([a-z0-9_-]+)").unwrap();
    let binaries: BTreeSet<String> = metadata()["packages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|package| package["targets"].as_array().unwrap())
        .map(|target| target["name"].as_str().unwrap().to_owned())
        .collect();
    let mut seen = 0;
    let mut missing = Vec::new();
    let guide = root.join(GUIDE);
    for page in contributing_pages().iter().chain([&guide]) {
        let text = read(page);
        let page = page.strip_prefix(root).unwrap().display();
        for path in code.captures_iter(&text).map(|found| found[1].to_owned()) {
            seen += 1;
            let is_example = EXAMPLES.iter().any(|name| path.contains(name));
            if !is_example && !bases.iter().any(|base| base.join(&path).exists()) {
                missing.push(format!("{page}: {path}"));
            }
        }
        for found in option.captures_iter(&text) {
            seen += 1;
            if !binaries.contains(&found[2]) {
                missing.push(format!("{page}: {}", &found[0]));
            }
        }
    }
    assert!(seen > 30, "only {seen} names are found");
    assert!(missing.is_empty(), "pages name what isn't there: {missing:#?}");
}

#[test]
fn every_layer_is_explained() {
    let page = read(&workspace::root().join("docs/contributing/architecture.md"));
    let mut forgotten = Vec::new();
    for krate in ["analysis", "codeactions"] {
        for entry in fs::read_dir(workspace::root().join(krate).join("src")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if !["lib", "tests"].contains(&name.as_str()) && !page.contains(&format!("\n| `{name}` |")) {
                forgotten.push(format!("{krate}/src/{name}"));
            }
        }
    }
    assert!(
        forgotten.is_empty(),
        "add a row to docs/contributing/architecture.md for {forgotten:?}"
    );
}

fn run(command: &mut Command) -> Output {
    let output = command.current_dir(workspace::root()).stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn metadata() -> Value {
    let output = run(cargo().args(["metadata", "--format-version", "1", "--no-deps", "--locked"]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The version stands in the manifests and in both changelogs, with something said of it.
#[test]
fn the_changelog_has_an_entry_for_this_version() {
    let output = run(Command::new(workspace::root().join(".ci/package")).arg("version"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    let notes = run(Command::new(workspace::root().join(".ci/package")).arg("notes"));
    let notes = String::from_utf8_lossy(&notes.stdout).into_owned();
    assert!(
        notes.contains("\n- "),
        "docs/CHANGELOG.md says nothing under `## {version}`: add what users notice"
    );
    let wrong = run(Command::new(workspace::root().join(".ci/package")).args(["version", "99.0.0"]));
    assert!(!wrong.status.success(), "a release of another version is made");
}

#[test]
fn workflows_call_scripts_that_exist() {
    let root = workspace::root();
    let script = Regex::new(r"(?m)^\s*(?:- )?(?:run: )?((?:\.ci|tests|editors)/[\w./-]+)(?: (\w+))?").unwrap();
    let package = read(&root.join(".ci/package"));
    let mut workflows = Vec::new();
    files(&root.join(".github/workflows"), ".yml", &mut workflows);
    let mut called = BTreeSet::new();
    for workflow in workflows {
        for found in script.captures_iter(&read(&workflow)) {
            let path = root.join(&found[1]);
            let there = fs::metadata(&path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
            assert!(there, "{} calls {}, which can't be run", workflow.display(), &found[1]);
            if &found[1] == ".ci/package" {
                let what = found.get(2).map_or("", |what| what.as_str());
                assert!(
                    package.contains(&format!("\n{what})\n")),
                    "`.ci/package {what}` is unknown"
                );
            }
            called.insert(format!(
                "{} {}",
                &found[1],
                found.get(2).map_or("", |what| what.as_str())
            ));
        }
    }
    for needed in [
        ".ci/run ",
        ".ci/package crates",
        ".ci/package program",
        ".ci/package extension",
        ".ci/package wheel",
        ".ci/package npm",
        ".ci/package deb",
        ".ci/package sbom",
        ".ci/package sums",
        ".ci/package site",
    ] {
        assert!(called.contains(needed), "no workflow calls `{needed}`: {called:?}");
    }
}

/// What `tests/run --quick` leaves out is there: else a test that was renamed is quick by accident.
#[test]
fn what_is_left_out_of_the_quick_tests_is_there() {
    let script = read(&workspace::root().join("tests/run"));
    let (_, list) = script.split_once("\nslow=(\n").expect("a list");
    let (list, _) = list.split_once("\n)\n").expect("its end");
    let names: Vec<&str> = list
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.split(": ").next())
        .collect();
    assert_eq!(
        names.len(),
        list.lines().count(),
        "a line of the list isn't `\"name: reason\"`"
    );
    for name in names {
        let path = workspace::root().join("tests/tests").join(name).with_extension("rs");
        assert!(
            path.is_file(),
            "tests/run leaves out {name}, which isn't in tests/tests"
        );
    }
}

/// Everything in a crate's directory is in its package, with licences and a page; and what it depends on has a version there.
#[test]
fn crates_can_be_packaged() {
    let metadata = metadata();
    let published: Vec<&Value> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|package| package["publish"].is_null())
        .collect();
    let names: BTreeSet<&str> = published
        .iter()
        .map(|package| package["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["gridfuse", "gridfuse-analysis", "gridfuse-codeactions"].into());
    for package in published {
        let name = package["name"].as_str().unwrap();
        for field in ["description", "license", "readme"] {
            assert!(
                package[field].is_string(),
                "{name} has no {field}: add it to its Cargo.toml"
            );
        }
        assert!(
            !package["keywords"].as_array().unwrap().is_empty(),
            "{name} has no keywords"
        );
        for dependency in package["dependencies"].as_array().unwrap() {
            let of = dependency["name"].as_str().unwrap();
            assert_ne!(dependency["req"], "*", "{name} depends on {of} without a version");
            let ours = dependency["path"].is_string();
            assert!(
                !ours || names.contains(of),
                "{name} depends on {of}, which isn't published"
            );
        }
        let mut list = cargo();
        list.args([
            "package",
            "--list",
            "--allow-dirty",
            "--offline",
            "--locked",
            "-p",
            name,
        ]);
        let output = run(&mut list);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let listed: BTreeSet<String> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(str::to_owned)
            .collect();
        let directory = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        let mut there = Vec::new();
        files(directory, "", &mut there);
        let there: Vec<String> = there
            .iter()
            .map(|path| path.strip_prefix(directory).unwrap().display().to_string())
            .chain(["README.md", "LICENSE-MIT", "LICENSE-APACHE"].map(str::to_owned))
            // A link to a directory is packaged as what is in it.
            .filter(|path| !listed.contains(path) && !listed.iter().any(|file| Path::new(file).starts_with(path)))
            .collect();
        assert!(there.is_empty(), "not in the package of {name}: {there:?}");
    }
}
