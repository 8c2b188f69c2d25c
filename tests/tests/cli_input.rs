//! What the command line is given to look at: directories with nothing in them or that can't be read, and standard input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use gridfuse_tests::cli::{Directory, directory, gridfuse, gridfuse_reading};

const PROGRAM: &str = "\
#include \"child.cuh\"
__global__ void parent(int* out, const int* row) {
    if (row[threadIdx.x] > 0) child<<<1, 32>>>(out);
}
int main() { parent<<<1, 32>>>(nullptr, nullptr); }
";
const CHILD: &str = "__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }\n";

#[test]
fn a_directory_without_cuda_files_is_told_of() {
    let files = directory(&[("text/readme.txt", b"child<<<1, 1>>>();"), ("a.cu", CHILD.as_bytes())]);
    for command in ["check", "graph"] {
        let run = gridfuse(files.path(), &[command, "text"]).expect_code(2);
        assert!(
            run.stderr.starts_with("warning: text has no CUDA files: "),
            "{}",
            run.story()
        );
        // What there is, is looked at all the same.
        let run = gridfuse(files.path(), &[command, "a.cu", "text"]).expect_code(2);
        assert!(!run.stdout.is_empty(), "{}", run.story());
        gridfuse(files.path(), &[command, "."]).expect_code(0);
    }
    let run = gridfuse(files.path(), &["check", "text", "--format", "json"]).expect_code(2);
    assert_eq!(run.json()["summary"]["files"], 0);
}

/// Whoever runs the tests may be able to read everything: then somebody else runs the program.
#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_read_is_told_of() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use gridfuse_tests::cli::run_of;
    use gridfuse_tests::workspace;

    const NOBODY: u32 = 65534;
    let permit = |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let files = directory(&[("a.cu", CHILD.as_bytes()), ("closed/b.cu", CHILD.as_bytes())]);
    let (closed, program) = (files.file("closed"), files.file("gridfuse"));
    permit(files.path(), 0o755);
    permit(&closed, 0o000);
    let everything = fs::read_dir(&closed).is_ok();
    if everything {
        fs::copy(workspace::gridfuse_bin(), &program).unwrap();
    }
    let check = |arguments: &[&str]| {
        let mut command = match everything {
            true => Command::new(&program),
            false => Command::new(workspace::gridfuse_bin()),
        };
        if everything {
            command.uid(NOBODY).gid(NOBODY);
        }
        run_of(command.current_dir(files.path()).arg("check").args(arguments))
    };
    for named in ["closed", "."] {
        let run = check(&[named]);
        let warning = "warning: cannot look into closed: permission denied; what is in it is left out\n";
        assert_eq!((run.code, run.stderr.as_str()), (Some(2), warning), "{}", run.story());
    }
    let run = check(&[".", "--format", "json"]).expect_code(2);
    let report = run.json();
    assert_eq!(report["summary"]["files"], 1);
    assert_eq!(report["skipped"][0]["path"], "closed");
    permit(&closed, 0o755);
}

fn files() -> Directory {
    directory(&[("child.cuh", CHILD.as_bytes())])
}

#[test]
fn a_program_comes_in_on_standard_input() {
    let files = files();
    let run = |arguments: &[&str]| gridfuse_reading(files.path(), arguments, PROGRAM.as_bytes());
    let check = run(&["check", "-", "--deny", "warning"]).expect_code(1);
    assert!(check.stdout.contains("--> -:3:31\n"), "{}", check.story());
    let report = run(&["check", "-", "-", "--format", "json"]).expect_code(0).json();
    assert_eq!(report["findings"][0]["place"]["path"], "-");
    assert_eq!(report["summary"]["files"], 1);
    // What it includes is found in the current directory.
    let launches = run(&["explain", "-", "--at", "3", "--format", "json"])
        .expect_code(0)
        .json();
    assert_eq!(launches["launches"][0]["child"]["status"], "known");
    let shown = run(&["rewrite", "-", "--at", "3", "--apply", "serialize"]).expect_code(0);
    assert!(shown.stdout.starts_with("--- a/"), "{}", shown.story());
    assert!(shown.stdout.contains("+++ b/-\n"), "{}", shown.story());
    let graph = run(&["graph", "-"]).expect_code(0);
    assert!(graph.stdout.contains("parent"), "{}", graph.story());
}

/// Services that read results look files up by their paths in the repository: what has no name has none.
#[test]
fn standard_input_has_no_path_in_the_repository() {
    let files = directory(&[(".git/HEAD", b""), ("src/child.cuh", CHILD.as_bytes())]);
    let run = |arguments: &[&str]| gridfuse_reading(&files.file("src"), arguments, PROGRAM.as_bytes()).expect_code(0);
    let file = |arguments: &[&str]| {
        let all = [&["check", "-", "--format", "sarif"], arguments].concat();
        let location = &run(&all).json()["runs"][0]["results"][0]["locations"][0];
        location["physicalLocation"]["artifactLocation"].clone()
    };
    let nameless = file(&[]);
    assert_eq!(nameless["uri"], "-");
    assert_eq!(nameless["description"]["text"], "standard input");
    assert!(nameless.get("uriBaseId").is_none(), "{nameless}");
    let named = file(&["--stdin-path", "new.cu"]);
    assert_eq!(named["uri"], "src/new.cu");
    assert_eq!(named["uriBaseId"], "%SRCROOT%");
    let github = run(&["check", "-", "--format", "github"]);
    assert!(github.stdout.contains(" file=-,line=3,"), "{}", github.story());
    let github = run(&["check", "-", "--stdin-path", "new.cu", "--format", "github"]);
    assert!(github.stdout.contains(" file=src/new.cu,line=3,"), "{}", github.story());
}

/// An editor checks a text that isn't saved, from wherever it runs.
#[test]
fn a_text_on_standard_input_is_of_the_file_that_is_named() {
    let files = directory(&[
        ("src/child.cuh", CHILD.as_bytes()),
        ("src/saved.cu", b"__global__ void saved() {}\n"),
    ]);
    let run = |arguments: &[&str]| gridfuse_reading(files.path(), arguments, PROGRAM.as_bytes());
    for name in ["src/saved.cu", "src/new.cu"] {
        let check = run(&["check", "-", "--stdin-path", name]).expect_code(0);
        assert!(
            check.stdout.contains(&format!("--> {name}:3:31\n")),
            "{}",
            check.story()
        );
        let launches = run(&["explain", "-", "--at", "3", "--stdin-path", name, "--format", "json"])
            .expect_code(0)
            .json();
        assert_eq!(launches["launches"][0]["child"]["status"], "known");
        let shown = run(&[
            "rewrite",
            "-",
            "--stdin-path",
            name,
            "--at",
            "3",
            "--apply",
            "serialize",
        ])
        .expect_code(0);
        assert!(shown.stdout.contains(&format!("+++ b/{name}\n")), "{}", shown.story());
    }
    // A directory that isn't there yet is one that will be.
    let beside = run(&["check", "-", "--stdin-path", "src/nowhere/../new.cu"]).expect_code(0);
    assert!(beside.stdout.contains("--> src/new.cu:3:31\n"), "{}", beside.story());
    for command in [&["check", "-"][..], &["explain", "-", "--at", "3"], &["graph", "-"]] {
        let name = "nowhere/deep/a.cu";
        let nowhere = run(&[command, &["--stdin-path", name]].concat()).expect_code(0);
        assert_eq!(nowhere.stderr, "", "{}", nowhere.story());
        let named = nowhere.stdout.contains(&format!("{name}:3:31"));
        assert!(named || command[0] == "graph", "{}", nowhere.story());
        // There can be no such file.
        for (name, why) in [
            ("src/saved.cu/a.cu", "src/saved.cu is no directory"),
            ("src/", "--stdin-path names a file, and src/ is none"),
            ("nowhere/..", "--stdin-path names a file"),
        ] {
            let wrong = run(&[command, &["--stdin-path", name]].concat()).expect_code(2);
            assert!(wrong.stderr.contains(why), "{}", wrong.story());
        }
    }
}

#[test]
fn standard_input_is_not_written() {
    let files = files();
    for (arguments, message) in [
        (&["check", "-", "--fix"][..], "--fix cannot write to standard input"),
        (
            &["rewrite", "-", "--at", "3", "--apply", "serialize", "--in-place"],
            "standard input cannot be written",
        ),
        (
            &["rewrite", "-", "--at", "3", "--apply", "serialize", "--output", "out"],
            "standard input cannot be written",
        ),
        (&["measure", "-"], "name one instead of -"),
    ] {
        let run = gridfuse_reading(files.path(), arguments, PROGRAM.as_bytes()).expect_code(2);
        assert!(run.stderr.contains(message), "{}", run.story());
    }
    let run = gridfuse_reading(files.path(), &["check", "-", "--fix", "--diff"], PROGRAM.as_bytes());
    assert_eq!(run.code, Some(0), "{}", run.story());
    let run = gridfuse_reading(files.path(), &["check", "-"], b"\xff").expect_code(2);
    assert!(
        run.stderr.contains("cannot read standard input: not UTF-8"),
        "{}",
        run.story()
    );
    let run = gridfuse_reading(files.path(), &["explain", "-:3"], b"");
    assert_eq!(run.code, Some(2), "{}", run.story());
}
