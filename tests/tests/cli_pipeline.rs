//! `check` in a pipeline: only what has changed, only what is new, and what calls it there.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::Path;
use std::process::Command;

use gridfuse_tests::cli::{Directory, Run, gridfuse, run_of};
use gridfuse_tests::workspace;
use serde_json::Value;

/// Two findings of the same code, in one function.
const SLOW: &str = "\
__global__ void child(int* out) { out[threadIdx.x] = 1; }
__global__ void parent(int* out, int n) {
    for (int i = 0; i < n; ++i) child<<<1, 32>>>(out + i);
}
";

const OTHER: &str = "
__global__ void second(int* out, int n) {
    for (int i = 0; i < n; ++i) child<<<1, 64>>>(out + i);
}
";

fn git(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command
        .current_dir(directory)
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.invalid",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().expect("git is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn commit(directory: &Directory, message: &str) {
    git(directory.path(), &["add", "--all"]);
    git(directory.path(), &["commit", "--quiet", "--message", message]);
}

/// A repository on the branch `main` with two programs, one of which includes a header.
fn repository() -> Directory {
    let directory = Directory::new();
    directory.write("src/a.cu", SLOW.as_bytes());
    directory.write("src/b.cu", b"#include \"child.cuh\"\n__global__ void parent(int* out, int n) { for (int i = 0; i < n; ++i) leaf<<<1, 32>>>(out); }\n");
    directory.write("src/child.cuh", b"__global__ void leaf(int* out) { *out = 1; }\n");
    git(directory.path(), &["init", "--quiet", "--initial-branch", "main"]);
    commit(&directory, "first");
    directory
}

fn check(directory: &Directory, arguments: &[&str]) -> Run {
    gridfuse(directory.path(), &[&["check", "--format", "json"], arguments].concat())
}

/// The files in which something is found.
fn found_in(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    let mut paths: Vec<String> = findings
        .map(|found| found["place"]["path"].as_str().unwrap().to_owned())
        .collect();
    paths.dedup();
    paths
}

#[test]
fn files_that_have_changed_are_looked_at() {
    let repository = repository();
    assert_eq!(found_in(&check(&repository, &["."]).json()), ["src/a.cu", "src/b.cu"]);
    let run = check(&repository, &[".", "--changed-since", "HEAD"]).expect_code(0);
    assert!(found_in(&run.json()).is_empty(), "{}", run.story());
    assert!(
        run.stderr.contains("no CUDA file has changed since HEAD"),
        "{}",
        run.story()
    );
    // One that git doesn't know of yet; a name with a blank.
    repository.write("new one.cu", SLOW.as_bytes());
    let run = check(&repository, &[".", "--changed-since", "main"]);
    assert_eq!(found_in(&run.json()), ["new one.cu"]);
    // What is ignored is not the repository's.
    repository.write(".gitignore", b"new*\n");
    assert!(found_in(&check(&repository, &[".", "--changed-since", "main"]).json()).is_empty());
    // Committed, and from a directory below.
    repository.write("src/a.cu", format!("{SLOW}{OTHER}").as_bytes());
    git(repository.path(), &["checkout", "--quiet", "-b", "work"]);
    commit(&repository, "second");
    let below = gridfuse(
        &repository.file("src"),
        &["check", "--format", "json", ".", "--changed-since", "main"],
    );
    assert_eq!(found_in(&below.json()), ["a.cu"]);
    // A header counts for those that include it; a file that is gone, for nobody.
    repository.write("src/child.cuh", b"__global__ void leaf(int* out) { *out = 2; }\n");
    fs::remove_file(repository.file("src/a.cu")).unwrap();
    let run = check(&repository, &["src", "--changed-since", "HEAD"]);
    assert_eq!(found_in(&run.json()), ["src/b.cu"]);
}

/// What happens on the other branch meanwhile has not changed here.
#[test]
fn it_counts_from_where_the_branch_has_left() {
    let repository = repository();
    git(repository.path(), &["checkout", "--quiet", "-b", "work"]);
    repository.write("src/b.cu", format!("{SLOW}{OTHER}").as_bytes());
    commit(&repository, "on the branch");
    git(repository.path(), &["checkout", "--quiet", "main"]);
    repository.write("src/a.cu", format!("{SLOW}{OTHER}").as_bytes());
    commit(&repository, "meanwhile");
    git(repository.path(), &["checkout", "--quiet", "work"]);
    let run = check(&repository, &[".", "--changed-since", "main"]);
    assert_eq!(found_in(&run.json()), ["src/b.cu"]);
}

#[test]
fn what_git_cannot_say_is_told() {
    let repository = repository();
    for reference in ["nowhere", "--help", "--output=x"] {
        let argument = format!("--changed-since={reference}");
        let run = check(&repository, &[".", &argument]).expect_code(2);
        let expected = format!("git knows no commit `{reference}`");
        assert!(run.stderr.contains(&expected), "{}", run.story());
    }
    assert!(!repository.file("x").exists());
    let plain = Directory::new();
    plain.write("a.cu", SLOW.as_bytes());
    let run = check(&plain, &[".", "--changed-since", "main"]).expect_code(2);
    assert!(run.stderr.contains("needs a git repository"), "{}", run.story());
}

/// Neither a git in the repository nor a program that the repository names is run.
#[test]
fn nothing_of_the_repository_is_run() {
    use std::os::unix::fs::PermissionsExt;
    let repository = repository();
    let trap = repository.file("trapped");
    let script = format!("#!/bin/sh\ntouch {}\n", trap.display());
    for name in ["git", "tools/git", "monitor"] {
        let file = repository.write(name, script.as_bytes());
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let monitor = repository.file("monitor").display().to_string();
    for (name, value) in [("core.fsmonitor", &monitor), ("diff.external", &monitor)] {
        git(repository.path(), &["config", name, value]);
    }
    let path = std::env::var("PATH").unwrap();
    let path = format!(".:{}:{path}", repository.file("tools").display());
    let mut command = Command::new(workspace::gridfuse_bin());
    command.current_dir(repository.path()).env("PATH", path);
    let run = run_of(command.args(["check", ".", "--changed-since", "HEAD"]));
    assert_eq!(run.code, Some(0), "{}", run.story());
    assert!(!trap.exists(), "{}", run.story());
}

#[test]
fn old_findings_do_not_block() {
    let directory = Directory::new();
    directory.write("src/a.cu", SLOW.as_bytes());
    let before = check(&directory, &["."]).json()["findings"].as_array().unwrap().len();
    assert!(before > 0);
    let run = check(&directory, &[".", "--baseline", "known.json", "--deny", "info"]).expect_code(2);
    assert!(run.stderr.contains("--write-baseline makes one"), "{}", run.story());
    let run = check(
        &directory,
        &[".", "--baseline", "known.json", "--write-baseline", "--deny", "info"],
    )
    .expect_code(0);
    assert!(run.stderr.contains("wrote known.json"), "{}", run.story());
    let written = directory.read("known.json");
    assert!(
        written.contains("\"src/a.cu\"") && written.contains("\"parent\""),
        "{written}"
    );
    let known = ["--baseline", "known.json", "--deny", "info"];
    let report = check(&directory, &[&["."], &known[..]].concat()).expect_code(0).json();
    assert_eq!(report["findings"].as_array().unwrap().len(), 0);
    assert_eq!(report["summary"]["baseline"], before);
    // Lines go down, blanks change: they are the same findings.
    let moved = format!(
        "// a comment\n\n{}",
        SLOW.replace("<<<1, 32>>>", "<<<1,  32>>>")
            .replace("; ++i)", ";\n         ++i)")
    );
    directory.write("src/a.cu", moved.as_bytes());
    check(&directory, &[&["src"], &known[..]].concat()).expect_code(0);
    // The same code once more is new, and so is other code.
    let line = "    for (int i = 0; i < n; ++i) child<<<1, 32>>>(out + i);\n";
    let again = SLOW.replace(line, &line.repeat(2));
    directory.write("src/a.cu", again.as_bytes());
    let report = check(&directory, &[&["."], &known[..]].concat()).expect_code(1).json();
    assert_eq!(report["summary"]["baseline"], before, "{report:#}");
    directory.write("src/a.cu", format!("{SLOW}{OTHER}").as_bytes());
    let run = gridfuse(directory.path(), &[&["check", "."], &known[..]].concat()).expect_code(1);
    assert!(
        run.stdout.contains("in `second`") || run.stdout.contains("<<<1, 64>>>"),
        "{}",
        run.story()
    );
    assert!(
        run.stdout.contains(&format!("; {before} in the baseline")),
        "{}",
        run.story()
    );
    // What is gone is told, where its file was looked at.
    directory.write("src/a.cu", b"__global__ void child(int* out) {}\n");
    directory.write("b.cu", b"");
    let run = check(&directory, &[&["."], &known[..]].concat()).expect_code(0);
    assert!(
        run.stderr.contains("are gone: --write-baseline") || run.stderr.contains("is gone"),
        "{}",
        run.story()
    );
    let run = check(&directory, &[&["b.cu"], &known[..]].concat()).expect_code(0);
    assert!(!run.stderr.contains("gone"), "{}", run.story());
    // Other ways to print it leave out the same.
    directory.write("src/a.cu", SLOW.as_bytes());
    for format in ["sarif", "github", "text"] {
        let run = gridfuse(
            directory.path(),
            &[&["check", ".", "--format", format], &known[..]].concat(),
        )
        .expect_code(0);
        assert!(!run.stdout.contains("a.cu"), "{}", run.story());
    }
}

#[test]
fn a_baseline_that_is_none_is_told() {
    let directory = Directory::new();
    directory.write("a.cu", SLOW.as_bytes());
    for text in [
        "",
        "{}",
        "[]",
        "{\"schema\": 2, \"findings\": []}",
        "{\"schema\": 1, \"findings\": [], \"more\": 1}",
    ] {
        directory.write("known.json", text.as_bytes());
        let run = check(&directory, &["a.cu", "--baseline", "known.json"]).expect_code(2);
        assert!(run.stderr.contains("known.json is no baseline"), "{}", run.story());
    }
    for (arguments, part) in [
        (&["a.cu", "--write-baseline"][..], "--baseline <FILE>"),
        (
            &["a.cu:3", "--baseline", "known.json", "--write-baseline"],
            "leave the line out",
        ),
        (
            &["a.cu", "--baseline", "nowhere/known.json", "--write-baseline"],
            "nowhere",
        ),
        (
            &[
                "a.cu",
                "--baseline",
                "k.json",
                "--write-baseline",
                "--changed-since",
                "x",
            ],
            "cannot be used with",
        ),
    ] {
        let run = check(&directory, arguments).expect_code(2);
        assert!(run.stderr.contains(part), "{}", run.story());
    }
}

/// The script of the action, as the runner of GitHub calls it.
fn action(directory: &Directory, variables: &[(&str, &str)]) -> Run {
    let bin = workspace::gridfuse_bin().parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(workspace::root().join(".ci/action"));
    command.current_dir(directory.path()).env("PATH", path);
    run_of(command.envs(variables.iter().copied()))
}

#[test]
fn the_action_marks_what_is_new() {
    let repository = repository();
    let run = action(
        &repository,
        &[
            ("GRIDFUSE_INSTALL", "echo installed >installed.txt"),
            ("GRIDFUSE_DENY", "warning"),
        ],
    );
    assert_eq!(run.code, Some(1), "{}", run.story());
    assert!(run.stdout.contains("::warning file=src/a.cu,line=3"), "{}", run.story());
    assert!(run.stdout.contains("file=src/b.cu"), "{}", run.story());
    assert_eq!(repository.read("installed.txt"), "installed\n");
    check(&repository, &[".", "--baseline", "known.json", "--write-baseline"]).expect_code(0);
    let known = [
        ("GRIDFUSE_DENY", "info"),
        ("GRIDFUSE_BASELINE", "known.json"),
        ("GRIDFUSE_SARIF", "out.sarif"),
    ];
    let run = action(&repository, &known);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{}", run.story());
    repository.write("src/c d.cu", SLOW.as_bytes());
    let paths = [
        ("GRIDFUSE_PATHS", "src/a.cu\nsrc/c d.cu\n"),
        ("GRIDFUSE_CHANGED_SINCE", "main"),
    ];
    let run = action(&repository, &[&known[..], &paths[..]].concat());
    assert_eq!(run.code, Some(1), "{}", run.story());
    assert!(
        run.stdout.contains("file=src/c d.cu") && !run.stdout.contains("a.cu"),
        "{}",
        run.story()
    );
    let log: Value = serde_json::from_str(&repository.read("out.sarif")).unwrap();
    assert!(!log["runs"][0]["results"].as_array().unwrap().is_empty());
    let run = action(&repository, &[("GRIDFUSE_INSTALL", "exit 7")]);
    assert_eq!(run.code, Some(7), "{}", run.story());
    let run = action(
        &repository,
        &[("GRIDFUSE_PATHS", "nowhere"), ("GRIDFUSE_SARIF", "out.sarif")],
    );
    assert_eq!(run.code, Some(2), "{}", run.story());
}

/// Each input of the action reaches the script, which knows it.
#[test]
fn the_script_knows_the_inputs_of_the_action() {
    let action = fs::read_to_string(workspace::root().join("action.yml")).unwrap();
    let script = fs::read_to_string(workspace::root().join(".ci/action")).unwrap();
    let inputs = action
        .split_once("\ninputs:\n")
        .unwrap()
        .1
        .split_once("\nruns:\n")
        .unwrap()
        .0;
    let inputs: Vec<&str> = inputs
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'))
        .filter(|name| !name.starts_with(' '))
        .collect();
    assert!(inputs.len() >= 6, "{inputs:?}");
    for input in inputs {
        let variable = format!("GRIDFUSE_{}", input.replace('-', "_").to_uppercase());
        let passed = format!("{variable}: ${{{{ inputs.{input} }}}}");
        assert!(action.contains(&passed), "action.yml has no `{passed}`");
        assert!(
            script.contains(&format!("${{{variable}:-")),
            ".ci/action knows nothing of {variable}"
        );
    }
}

/// What pre-commit calls: the entry, the arguments, and the names of files.
#[test]
fn the_hooks_are_commands() {
    let hooks = fs::read_to_string(workspace::root().join(".pre-commit-hooks.yaml")).unwrap();
    let entries: Vec<&str> = hooks
        .lines()
        .filter_map(|line| line.trim().strip_prefix("entry: gridfuse "))
        .collect();
    assert_eq!(entries, ["check", "check --fix"]);
    for entry in entries {
        let directory = repository();
        let words: Vec<&str> = entry
            .split(' ')
            .chain(["--deny", "warning", "src/a.cu", "src/b.cu"])
            .collect();
        gridfuse(directory.path(), &words).expect_code(1);
    }
}
