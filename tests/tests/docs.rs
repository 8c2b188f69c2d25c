//! The generated pages of `docs/` are what the source says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use gridfuse_tests::cli::gridfuse;
use gridfuse_tests::{
    assumptions, docs, doctor_captures, examples, expect, installing, newcomers, reach, screens, tutorial, workspace,
};

#[test]
fn the_pages_are_fresh() {
    let report = gridfuse(workspace::root(), &["list", "--format", "json"])
        .expect_code(0)
        .json();
    let mut pages = docs::pages(&report, &assumptions::recorded()).expect("pages");
    pages.insert(
        reach::NAME.to_owned(),
        reach::page().expect("the record of tests/reach"),
    );
    let installed = installing::record::Record::read().expect("the record of tests/install");
    pages.insert(installing::page::NAME.to_owned(), installing::page::page(&installed));
    pages.insert(doctor_captures::NAME.to_owned(), doctor_captures::page());
    pages.insert(screens::NAME.to_owned(), screens::page());
    pages.insert(tutorial::NAME.to_owned(), tutorial::page());
    let newcomers = newcomers::rows();
    for row in &newcomers {
        assert_eq!(
            row.position, 1,
            "{}: `{}` isn't the first in the menu",
            row.file, row.best
        );
    }
    pages.insert(newcomers::NAME.to_owned(), newcomers::page(&newcomers));
    pages.extend(examples::pages(&examples::all()));
    let directory = workspace::root().join("docs");
    if expect::updates() {
        docs::write(&directory, &pages).expect("docs");
    }
    let differences = docs::differences(&directory, &pages).expect("docs");
    assert!(
        differences.is_empty(),
        "{differences:#?}\nrun: UPDATE_EXPECT=1 cargo test -p gridfuse-tests --test docs"
    );
}

/// The rewritten code stays the programmer's own: what is new stands beside the kernel that launches, and little in it.
#[test]
fn few_lines_of_a_parent_change() {
    const MOST: usize = 15;
    for example in examples::all() {
        let parents = example.parents();
        assert!(!parents.is_empty(), "{}: no kernel has changed", example.name);
        for parent in parents {
            assert!(
                parent.changed_lines <= MOST,
                "{}: {parent:?}\n{}",
                example.name,
                example.diff()
            );
        }
        assert!(
            !example.diff().lines().any(|line| line.starts_with("+#define")),
            "{}",
            example.name
        );
    }
}

#[test]
fn the_readme_names_what_there_is() {
    let readme = std::fs::read_to_string(workspace::root().join("README.md")).expect("README.md");
    for directory in ["server", "analysis", "codeactions", "editors", "tests", "docs"] {
        assert!(workspace::root().join(directory).is_dir(), "{directory}");
        assert!(
            readme.contains(&format!("`{directory}/`")),
            "the README says nothing of {directory}/"
        );
    }
    let help = gridfuse(workspace::root(), &["--help"]).expect_code(0).stdout;
    for command in [
        "lsp",
        "check",
        "explain",
        "graph",
        "rewrite",
        "list",
        "doctor",
        "schema",
        "completions",
        "man",
    ] {
        assert!(
            help.contains(command) && readme.contains(&format!("`gridfuse {command}")),
            "{command}"
        );
    }
}
