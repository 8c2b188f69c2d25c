//! The command line from end to end: exit codes, streams, files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::Path;

use gridfuse_tests::cli::{Directory, directory, files_of, gridfuse, run_of};
use gridfuse_tests::workspace;
use serde_json::json;

const WARNING: &str = "\
__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }
__global__ void parent(int* out, const int* row) {
    if (row[threadIdx.x] > 0) child<<<1, 32>>>(out);
}
int main() { parent<<<1, 32>>>(nullptr, nullptr); }
";
const ERROR: &str = "__global__ void k() { cudaDeviceSynchronize(); }\n";
const CLEAN: &str = "__global__ void k(int* a) { a[threadIdx.x] = 1; }\n";

fn files() -> Directory {
    directory(&[
        ("warning.cu", WARNING.as_bytes()),
        ("error.cu", ERROR.as_bytes()),
        ("clean.cu", CLEAN.as_bytes()),
        ("empty.cu", b""),
        (
            "broken.cu",
            b"__global__ void k( {{{ <<< }}} ) k<<<,>>>(((\n#if\n\"\n/*",
        ),
        ("sub/binary.cu", b"\x7fELF\0\0\xff"),
        ("text/readme.txt", b"child<<<1, 1>>>();"),
    ])
}

#[test]
fn exit_codes_of_check() {
    let files = files();
    let code = |arguments: &[&str]| gridfuse(files.path(), &[&["check"], arguments].concat()).code;
    assert_eq!(code(&["clean.cu"]), Some(0));
    assert_eq!(code(&["warning.cu"]), Some(0));
    assert_eq!(code(&["warning.cu", "--deny", "warning"]), Some(1));
    assert_eq!(code(&["clean.cu", "--deny", "info"]), Some(0));
    assert_eq!(code(&["error.cu"]), Some(1));
    assert_eq!(code(&["error.cu", "--deny", "error"]), Some(1));
    assert_eq!(code(&["empty.cu", "broken.cu"]), Some(0));
    assert_eq!(code(&["clean.cu", "error.cu"]), Some(1));
    assert_eq!(code(&["."]), Some(1));
    assert_eq!(code(&["missing.cu"]), Some(2));
    assert_eq!(code(&["clean.cu", "missing.cu"]), Some(2));
    assert_eq!(code(&["--deny", "everything", "clean.cu"]), Some(2));
    assert_eq!(code(&["--format", "xml", "clean.cu"]), Some(2));
    assert_eq!(code(&[]), Some(2));
    for help in ["--help", "--version"] {
        gridfuse(files.path(), &[help]).expect_code(0);
    }
    gridfuse(files.path(), &[]).expect_code(2);
}

#[test]
fn binary_files() {
    let files = files();
    let named = gridfuse(files.path(), &["check", "sub/binary.cu"]).expect_code(2);
    assert!(
        named.stderr.contains("cannot read sub/binary.cu: not UTF-8 text"),
        "{}",
        named.stderr
    );
    assert_eq!(named.stdout, "");
    let walked = gridfuse(files.path(), &["check", "sub"]).expect_code(0);
    assert!(walked.stderr.contains("skipped sub/binary.cu"), "{}", walked.stderr);
    let report = gridfuse(files.path(), &["check", "sub", "--format", "json"])
        .expect_code(0)
        .json();
    assert_eq!(report["skipped"][0]["path"], "sub/binary.cu");
    let none = gridfuse(files.path(), &["check", "text"]).expect_code(2);
    assert!(none.stdout.contains("0 files"), "{}", none.story());
}

#[test]
fn output_for_programs_and_people() {
    let files = files();
    let report = gridfuse(files.path(), &["check", ".", "--format", "json"])
        .expect_code(1)
        .json();
    assert_eq!(report["summary"]["errors"], 1);
    assert_eq!(report["summary"]["warnings"], 1);
    assert_eq!(report["summary"]["files"], 5);
    // Text goes to people: no colour when nobody looks.
    let text = gridfuse(files.path(), &["check", "."]).expect_code(1);
    assert!(
        !text.stdout.contains('\u{1b}') && !text.stderr.contains('\u{1b}'),
        "{}",
        text.story()
    );
    for part in [
        "warning[serialized-launches]",
        "error[device-sync]",
        "--> warning.cu:3:31",
        "^^^^",
    ] {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }
    for file in ["warning.cu", "clean.cu", "empty.cu", "broken.cu"] {
        let report = gridfuse(files.path(), &["explain", file, "--format", "json"])
            .expect_code(0)
            .json();
        assert!(report["launches"].is_array());
        gridfuse(files.path(), &["explain", file]).expect_code(0);
    }
    let list = gridfuse(files.path(), &["list", "--format", "json"])
        .expect_code(0)
        .json();
    assert!(!list["diagnostics"].as_array().unwrap().is_empty() && !list["rewrites"].as_array().unwrap().is_empty());
    // The command that a finding shows is one that works.
    let fix = &report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["id"] == "serialized-launches")
        .unwrap()["fixes"][0];
    let command: Vec<&str> = fix["command"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect();
    let diff = gridfuse(files.path(), &command[1..]).expect_code(0);
    assert!(
        diff.stdout.contains("--- ") && diff.stdout.contains("+++ ") && diff.stdout.contains("@@"),
        "{}",
        diff.story()
    );
    assert_eq!(files.read("warning.cu"), WARNING, "showing changes nothing");
}

#[test]
fn ways_to_rewrite() {
    let files = files();
    let rewrite = |more: &[&str]| gridfuse(files.path(), &[&["rewrite", "warning.cu", "--at", "3"], more].concat());
    let before = files_of(files.path());
    let output = rewrite(&["--apply", "aggregate-block", "--output", "out"]).expect_code(0);
    assert!(output.stderr.contains("assumes"), "{}", output.story());
    assert!(files.read("out/warning.cu").contains("gridfuse::Aggregator"));
    assert!(files.file("out/gridfuse.cuh").is_file());
    fs::remove_dir_all(files.file("out")).unwrap();
    assert!(files_of(files.path()) == before);
    // Options.
    let diff = rewrite(&["--apply", "threshold", "--set", "threshold=17"]).expect_code(0);
    assert!(diff.stdout.contains("= 17;"), "{}", diff.stdout);
    for wrong in ["threshold=0", "threshold=-1", "threshold=x", "other=1"] {
        let run = rewrite(&["--apply", "threshold", "--set", wrong]);
        assert!(
            matches!(run.code, Some(1 | 2)) && !run.stderr.is_empty(),
            "{}",
            run.story()
        );
    }
    rewrite(&["--apply", "no-such"]).expect_code(2);
    gridfuse(
        files.path(),
        &["rewrite", "warning.cu", "--at", "1", "--apply", "threshold"],
    )
    .expect_code(2);
    gridfuse(
        files.path(),
        &["rewrite", "missing.cu", "--at", "1", "--apply", "threshold"],
    )
    .expect_code(2);
    // Refused: nothing changes, the reason is told.
    let twice = rewrite(&["--apply", "fire-and-forget,fire-and-forget", "--in-place"]).expect_code(1);
    assert!(twice.stderr.contains("cannot be applied"), "{}", twice.story());
    assert!(files_of(files.path()) == before);
    // A header of that name that is somebody else's stays.
    files.write("gridfuse.cuh", b"// mine\n");
    let kept = rewrite(&["--apply", "aggregate-block", "--in-place"]).expect_code(1);
    assert!(
        kept.stderr.contains("another file named gridfuse.cuh"),
        "{}",
        kept.story()
    );
    assert_eq!(files.read("gridfuse.cuh"), "// mine\n");
    assert_eq!(files.read("warning.cu"), WARNING);
    fs::remove_file(files.file("gridfuse.cuh")).unwrap();
    rewrite(&["--apply", "threshold,aggregate-block", "--in-place"]).expect_code(0);
    let clean = gridfuse(files.path(), &["check", "warning.cu", "--deny", "info"]).expect_code(0);
    assert!(clean.stdout.contains(" 0 findings"), "{}", clean.story());
}

#[cfg(unix)]
#[test]
fn files_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let files = files();
    let mode = |mode| fs::set_permissions(files.path(), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    let writable = fs::write(files.file("probe"), "").is_ok();
    if !writable {
        let run = gridfuse(
            files.path(),
            &[
                "rewrite",
                "warning.cu",
                "--at",
                "3",
                "--apply",
                "aggregate-block",
                "--in-place",
            ],
        );
        assert_eq!(run.code, Some(2), "{}", run.story());
    }
    mode(0o755);
    assert_eq!(files.read("warning.cu"), WARNING);
}

#[test]
fn the_corpus_is_reported() {
    let report = gridfuse(workspace::root(), &["check", "tests/corpus", "--format", "json"])
        .expect_code(0)
        .json();
    assert_eq!(report["skipped"], json!([]));
    let findings = report["findings"].as_array().unwrap();
    for file in ["tests/corpus/bfs.cu", "tests/corpus/sssp.cu"] {
        let found = findings
            .iter()
            .find(|f| f["place"]["path"] == file && f["id"] == "serialized-launches");
        let fixes = found.unwrap_or_else(|| panic!("nothing in {file}"))["fixes"]
            .as_array()
            .unwrap();
        assert!(
            fixes.iter().any(|fix| fix["rewrite"] == "aggregate-block"),
            "{fixes:#?}"
        );
    }
}

#[test]
fn paths_of_all_kinds() {
    let files = directory(&[("a b/ü (1).cu", WARNING.as_bytes())]);
    let run = gridfuse(files.path(), &["check", "a b/ü (1).cu", "--deny", "warning"]).expect_code(1);
    assert!(run.stdout.contains("--> a b/ü (1).cu:3:31"), "{}", run.stdout);
    let absolute = files.file("a b/ü (1).cu");
    let elsewhere = Directory::new();
    let run = gridfuse(elsewhere.path(), &["check", &absolute.display().to_string()]).expect_code(0);
    assert!(run.stdout.contains(&absolute.display().to_string()), "{}", run.stdout);
    let run = gridfuse(&files.file("a b"), &["explain", "../a b/./ü (1).cu:3"]).expect_code(0);
    assert!(run.stdout.contains("child<<<1, 32>>>"), "{}", run.stdout);
    assert!(Path::new(&absolute).exists());
}

#[test]
fn who_mistypes_is_told_what_was_meant() {
    let files = files();
    let said = |arguments: &[&str], part: &str| {
        let run = gridfuse(files.path(), arguments).expect_code(2);
        assert!(run.stderr.contains(part), "{part}: {}", run.story());
    };
    said(&["list", "seralized-launches"], "did you mean `serialized-launches`?");
    said(&["list", "nonsense"], "`gridfuse list` names them");
    let rewrite = |id, more: &[&str], part: &str| {
        let arguments = ["rewrite", "warning.cu", "--at", "3", "--apply", id];
        said(&[&arguments, more].concat(), part);
    };
    rewrite("agregate-blokc", &[], "did you mean `aggregate-block`?");
    rewrite("nonsense", &[], "there are: optimize, ");
    rewrite("threshold", &["--set", "treshold=8"], "did you mean `threshold`?");
    let rewrites = ["measure", "warning.cu", "--rewrites", "threshhold+aggregate-block"];
    said(&rewrites, "did you mean `threshold`?");
    files.write("gridfuse.toml", b"[severity]\nserialised-launches = 'off'\n");
    said(&["check", "warning.cu"], "did you mean `serialized-launches`?");
    files.write("gridfuse.toml", b"");
    files.write(
        "allow.cu",
        b"__global__ void k() {}  // gridfuse: allow(launch-in-loops)\n",
    );
    let run = gridfuse(files.path(), &["check", "allow.cu"]).expect_code(0);
    assert!(run.stdout.contains("did you mean `launch-in-loop`?"), "{}", run.story());
}

#[test]
fn colour_where_it_is_wanted() {
    let files = files();
    let coloured = |arguments: &[&str], no_color: &str| {
        let mut command = std::process::Command::new(workspace::gridfuse_bin());
        command.current_dir(files.path()).args(arguments);
        for variable in ["CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(variable);
        }
        let run = run_of(command.env("NO_COLOR", no_color));
        (run.stdout + &run.stderr).contains('\u{1b}')
    };
    for (arguments, no_color, expected) in [
        (&["check", "warning.cu"][..], "", false),
        (&["check", "warning.cu", "--color", "auto"], "", false),
        (&["check", "warning.cu", "--color", "always"], "", true),
        // What is said for one command counts more than what is said for all.
        (&["--color=always", "check", "warning.cu"], "1", true),
        (&["check", "missing.cu", "--color=always"], "", true),
        (&["check", "missing.cu", "--color=never"], "", false),
        (&["chekc", "--color=always"], "", true),
        (&["chekc"], "", false),
    ] {
        assert_eq!(coloured(arguments, no_color), expected, "{arguments:?} {no_color}");
    }
    gridfuse(files.path(), &["check", "warning.cu", "--color", "loud"]).expect_code(2);
}
