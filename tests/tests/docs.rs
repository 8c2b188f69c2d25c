//! The generated pages of `docs/` are what the source says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use gridfuse_tests::cli::gridfuse;
use gridfuse_tests::{docs, screens, workspace};

#[test]
fn the_pages_are_fresh() {
    let report = gridfuse(workspace::root(), &["list", "--format", "json"])
        .expect_code(0)
        .json();
    let mut pages = docs::pages(&report).expect("pages");
    pages.insert(screens::NAME.to_owned(), screens::page());
    let differences = docs::differences(&workspace::root().join("docs"), &pages).expect("docs");
    assert!(
        differences.is_empty(),
        "{differences:#?}\nrun: cargo run -p gridfuse-tests --bin docs"
    );
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
    for command in ["lsp", "check", "explain", "graph", "rewrite", "list"] {
        assert!(
            help.contains(command) && readme.contains(&format!("`gridfuse {command}")),
            "{command}"
        );
    }
}
