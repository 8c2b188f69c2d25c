//! What belongs to a new rewrite or diagnostic and is easily forgotten: that its file is compiled, that it stands in the table, that
//! something tests it. Each failure says what to do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use gridfuse_tests::cli::gridfuse;
use gridfuse_tests::workspace;
use regex::Regex;

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn shown(path: &Path) -> String {
    path.strip_prefix(workspace::root())
        .unwrap_or(path)
        .display()
        .to_string()
}

/// The files in which the module of a file may be declared.
fn parents(path: &Path) -> Vec<PathBuf> {
    let directory = path.parent().unwrap();
    let within = match path.file_name().is_some_and(|name| name == "mod.rs") {
        true => directory.parent().unwrap(),
        false => directory,
    };
    let names = ["mod.rs", "lib.rs", "main.rs"].map(|name| within.join(name));
    names.into_iter().chain([within.with_extension("rs")]).collect()
}

/// A file that no `mod` names is compiled by nobody, and its tests are run by nobody.
#[test]
fn every_file_is_a_module() {
    let mut forgotten = Vec::new();
    let mut seen = 0;
    for krate in ["analysis", "codeactions", "server", "tests", "tests/fuzz-targets"] {
        let root = workspace::root().join(krate).join("src");
        for path in sources(&root) {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let is_root = path.parent() == Some(&root) && ["lib", "main"].contains(&name.as_str());
            if is_root || path.starts_with(root.join("bin")) {
                continue;
            }
            seen += 1;
            let name = match name.as_str() {
                "mod" => path
                    .parent()
                    .unwrap()
                    .file_name()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned(),
                _ => name,
            };
            let declared = Regex::new(&format!(r"(?m)^\s*(pub(\([a-z: ]+\))? )?mod (r#)?{name}\s*[;{{]")).unwrap();
            let parents = parents(&path);
            if !parents
                .iter()
                .any(|parent| parent.exists() && declared.is_match(&read(parent)))
            {
                let parent = parents
                    .iter()
                    .find(|parent| parent.exists())
                    .map_or_else(String::new, |it| shown(it));
                forgotten.push(format!("{}: add `mod {name};` to {parent}", shown(&path)));
            }
        }
    }
    assert!(seen > 300, "{seen} files");
    assert!(forgotten.is_empty(), "files that nobody compiles: {forgotten:#?}");
}

/// The ids of the entries in a folder's files, with the file. Where others need it, the id is a constant in front of the entry.
fn entries(folder: &str) -> Vec<(String, PathBuf)> {
    let id = Regex::new(r#"(?m)^(?:    id: |pub const ID: &str = )"([a-z-]+)"[,;]"#).unwrap();
    let mut found = Vec::new();
    for path in sources(&workspace::root().join(folder)) {
        let text = read(&path);
        found.extend(id.captures_iter(&text).map(|found| (found[1].to_owned(), path.clone())));
    }
    found
}

/// The folders of entries, with the list of `gridfuse list` in which they are.
const FOLDERS: [(&str, &str); 2] = [
    ("codeactions/src/handlers", "rewrites"),
    ("analysis/src/diagnostics", "diagnostics"),
];

#[test]
fn every_entry_is_in_its_table() {
    let listed = gridfuse(workspace::root(), &["list", "--format", "json"])
        .expect_code(0)
        .json();
    let mut forgotten = Vec::new();
    for (folder, list) in FOLDERS {
        let known: BTreeSet<&str> = listed[list]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["id"].as_str().unwrap())
            .collect();
        let entries = entries(folder);
        assert!(entries.len() > 5, "{folder}: {entries:?}");
        for id in &known {
            // The other tests look for entries in the text.
            assert!(
                entries.iter().any(|(found, _)| found == id),
                "{id}: write `id: \"{id}\",` into its entry in {folder}"
            );
        }
        for (id, path) in entries {
            if !known.contains(id.as_str()) {
                forgotten.push(format!(
                    "{id}, of {}: add it to the table in {folder}/mod.rs",
                    shown(&path)
                ));
            }
        }
    }
    assert!(
        forgotten.is_empty(),
        "what isn't in its table, nobody can use: {forgotten:#?}"
    );
}

/// What names an id in a test: as a word of its own, or, of a fixture, after a severity.
fn tests_of(entries: &str) -> String {
    let root = workspace::root();
    let mut folders = vec![root.join("tests/tests")];
    match entries {
        "analysis/src/diagnostics" => folders.push(root.join("analysis/tests")),
        _ => folders.push(root.join("codeactions/src/tests")),
    }
    // What goes through the whole table tests nothing that is one entry's own.
    let through_all = ["docs.rs", "entries.rs"];
    let mut text: String = folders
        .iter()
        .flat_map(|folder| sources(folder))
        .filter(|path| !through_all.iter().any(|name| path.ends_with(name)))
        .map(|path| read(&path))
        .collect();
    for fixture in fs::read_dir(root.join("tests/fixtures/diagnostics")).unwrap() {
        text.push_str(&fs::read_to_string(fixture.unwrap().path()).unwrap());
    }
    text
}

#[test]
fn every_entry_is_tested() {
    let mut untested = Vec::new();
    for (folder, _) in FOLDERS {
        let tests = tests_of(folder);
        let what = match folder {
            "analysis/src/diagnostics" => "expect it in a program in tests/fixtures/diagnostics",
            _ => "apply it in a file of its own in codeactions/src/tests",
        };
        // Entries that differ in a word stand in one file.
        let mut files: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
        for (id, path) in entries(folder) {
            files.entry(path).or_default().push(id);
        }
        for (path, ids) in files {
            let named = Regex::new(&format!(r"(^|[^a-z-])({})([^a-z-]|$)", ids.join("|"))).unwrap();
            if !named.is_match(&tests) {
                untested.push(format!("{}, of {}: {what}", ids.join(", "), shown(&path)));
            }
        }
    }
    assert!(untested.is_empty(), "no test names these: {untested:#?}");
}

/// Since which version there is a diagnostic or a rewrite, users read in the changelog.
#[test]
fn every_entry_is_in_the_changelog() {
    let changelog = read(&workspace::root().join("docs/CHANGELOG.md"));
    let missing: Vec<String> = FOLDERS
        .iter()
        .flat_map(|(folder, _)| entries(folder))
        .filter(|(id, _)| !changelog.contains(&format!("`{id}`")))
        .map(|(id, path)| {
            format!(
                "{id}, of {}: name it in the newest entry of docs/CHANGELOG.md",
                shown(&path)
            )
        })
        .collect();
    assert!(missing.is_empty(), "users don't hear of these: {missing:#?}");
}
