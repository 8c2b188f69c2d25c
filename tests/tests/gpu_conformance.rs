//! `gpu-conformance` from the command line to the record, with a fake compiler in place of CUDA's.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use gridfuse_tests::gpu::conformance_record::{self, Conformance, PROGRAMS, Status};
use gridfuse_tests::workspace;

/// The fake compiler takes a source for the shell script that is its program.
const NVCC: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then
    echo 'Cuda compilation tools, release 13.0, V13.0.88'; exit
fi
for word in "$@"; do
    case "$previous" in -o) out=$word ;; esac
    case "$word" in *.cu) source=$word ;; esac
    previous=$word
done
if grep -q broken "$source"; then echo "$PWD/$source(1): error: broken" >&2; exit 1; fi
cp "$source" "$out"
chmod +x "$out"
"#;

const PROGRAM: [(&str, &str); 6] = [
    ("fine", "echo one; echo two"),
    ("fails", "echo begun; echo 'illegal address' >&2; exit 3"),
    ("crashes", "kill -SEGV $$"),
    ("hangs", "echo begun; sleep 60 & wait"),
    ("varies", "echo . >> varies.log; wc -l < varies.log"),
    ("unbuilt", "broken"),
];

fn run(only: &str) -> (Output, Conformance) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("repo");
    let nvcc = directory.path().join("nvcc");
    fs::create_dir_all(root.join(PROGRAMS)).unwrap();
    for (name, text) in PROGRAM {
        let text = format!("#!/bin/sh\n{text}\n");
        fs::write(root.join(conformance_record::source_of(name)), text).unwrap();
    }
    fs::write(&nvcc, NVCC).unwrap();
    fs::set_permissions(&nvcc, fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_gpu-conformance"))
        .args(["--timeout", "5", "--jobs", "2", "--commit", "abc", "--only", only])
        .args(["--out", "out", "--root", "repo", "--nvcc", "nvcc"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    let record = Conformance::load(&directory.path().join("out/conformance.json")).unwrap();
    let place = directory.path().display().to_string();
    let json = fs::read_to_string(directory.path().join("out/conformance.json")).unwrap();
    assert!(!json.contains(&place), "places of this machine are left out");
    (output, record)
}

#[test]
fn what_goes_wrong_is_recorded() {
    let (output, record) = run("");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(record.commit, "abc");
    assert_eq!(record.machine.cuda.as_deref(), Some("13.0.88"));
    let found = record.programs.iter().map(|program| {
        let runs = program.wall_s.len();
        (
            program.name.as_str(),
            program.status,
            program.exit_code,
            runs,
            program.stdout.as_str(),
        )
    });
    let expected = [
        ("crashes", Status::Failed, None, 1, ""),
        ("fails", Status::Failed, Some(3), 1, "begun\n"),
        ("fine", Status::Ok, Some(0), 3, "one\ntwo\n"),
        ("hangs", Status::DidNotFinish, None, 1, "begun\n"),
        ("unbuilt", Status::NotBuilt, None, 0, ""),
        ("varies", Status::Varies, Some(0), 2, "1\n"),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    let message = |index: usize| record.programs[index].message.as_deref().unwrap_or_default();
    assert!(message(1).contains("illegal address"));
    assert!(message(4).contains("$ROOT"), "{}", message(4));
    let table = String::from_utf8(output.stdout).unwrap();
    for part in ["did not finish", "illegal address", "1 of 6 programs ended well"] {
        assert!(table.contains(part), "{part} is missing in\n{table}");
    }
}

#[test]
fn all_well_is_success() {
    let (output, record) = run("^fine$");
    assert!(output.status.success());
    assert_eq!(record.programs.len(), 1);
}

// That they compile without warnings is what their record shows.
#[test]
fn the_programs_say_what_they_show() {
    let root = workspace::root();
    let names = conformance_record::names(root).unwrap();
    assert!(names.len() >= 45, "{} programs", names.len());
    for name in names {
        let text = fs::read_to_string(root.join(conformance_record::source_of(&name))).unwrap();
        assert!(text.starts_with("// "), "{name} does not begin with what it shows");
    }
}
