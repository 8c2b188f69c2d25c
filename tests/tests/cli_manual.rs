//! What is made from the command line itself: completions for shells, and the pages of the manual.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use gridfuse_tests::cli::{Directory, files_of, gridfuse};

const COMMANDS: [&str; 13] = [
    "lsp",
    "check",
    "explain",
    "graph",
    "rewrite",
    "revert",
    "measure",
    "tune",
    "list",
    "doctor",
    "schema",
    "completions",
    "man",
];

#[test]
fn shells_complete_every_command() {
    let nowhere = Directory::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = gridfuse(nowhere.path(), &["completions", shell]).expect_code(0);
        for word in COMMANDS.iter().chain(&["color", "deny"]) {
            assert!(run.stdout.contains(word), "{word} for {shell}");
        }
        assert!(!run.stdout.contains("guard"), "{shell} knows what is hidden");
    }
    gridfuse(nowhere.path(), &["completions", "tcsh"]).expect_code(2);
}

/// A line of a page without what sets it in bold.
fn plain(line: &str) -> String {
    let mut line = line.replace("\\-", "-");
    for font in ["\\fB", "\\fI", "\\fR"] {
        line = line.replace(font, "");
    }
    line
}

#[test]
fn every_command_has_a_page() {
    let version = env!("CARGO_PKG_VERSION");
    let nowhere = Directory::new();
    let run = gridfuse(nowhere.path(), &["man", "--output", "pages"]).expect_code(0);
    let pages = files_of(&nowhere.file("pages"));
    assert_eq!(pages.len(), COMMANDS.len() + 1, "{}", run.story());
    for command in COMMANDS {
        let page = nowhere.read(&format!("pages/gridfuse-{command}.1"));
        assert!(page.contains(&format!(".TH gridfuse-{command} 1")), "{page}");
        assert!(page.contains(&format!("\"gridfuse {version}\"")), "{page}");
        let usage = page.lines().skip_while(|line| *line != ".SH SYNOPSIS").nth(1).unwrap();
        let help = gridfuse(nowhere.path(), &[command, "--help"]).expect_code(0).stdout;
        let expected = help.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap();
        assert_eq!(plain(usage), expected);
        let printed = gridfuse(nowhere.path(), &["man", command]).expect_code(0);
        assert_eq!(printed.stdout, page);
    }
    let page = gridfuse(nowhere.path(), &["man"]).expect_code(0).stdout;
    assert_eq!(page, nowhere.read("pages/gridfuse.1"));
    assert!(page.contains("Exit codes:"), "{page}");
    assert!(!page.contains("guard"), "{page}");
    let run = gridfuse(nowhere.path(), &["man", "frobnicate"]).expect_code(2);
    assert!(
        run.stderr.contains("no command is called `frobnicate`"),
        "{}",
        run.story()
    );
}
