//! However `gridfuse measure` and `gridfuse tune` come to their end before their time, no process and no file is left; and what they need
//! and isn't there is said, with exit code 2. A compiler and a GPU are faked at the process boundary.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gridfuse_tests::cli::{Directory, directory};
use gridfuse_tests::patience::{wait_for, wait_until};
use gridfuse_tests::processes;
use gridfuse_tests::workspace;

fn fixture(name: &str) -> PathBuf {
    workspace::root().join("tests/fixtures/measure").join(name)
}

fn sources() -> Directory {
    let read = |name: &str| fs::read(fixture(name)).unwrap();
    let kernel = b"__global__ void c(int* p) { p[0] = 1; }\n// gridfuse: run <<<1, 32>>> n = 8, p = zeros(n)\n\
        __global__ void k(int* p, int n) { if (threadIdx.x < n) c<<<1, 1>>>(p + threadIdx.x); }\n";
    directory(&[("program.cu", &read("program.cu")), ("kernel.cu", kernel)])
}

/// All that builds and runs programs.
const COMMANDS: [&[&str]; 4] = [
    &["measure", "program.cu", "--rewrites", "threshold"],
    &["measure", "kernel.cu", "--rewrites", "aggregate-block"],
    &[
        "measure",
        "kernel.cu",
        "--kernel",
        "k",
        "--json",
        "--rewrites",
        "aggregate-block",
    ],
    &[
        "tune",
        "program.cu",
        "--thresholds",
        "none,16",
        "--factors",
        "none",
        "--json",
    ],
];

/// Without what this machine has.
fn command(files: &Directory, home: &Directory, arguments: &[&str]) -> Command {
    let mut command = Command::new(workspace::gridfuse_bin());
    fs::create_dir_all(home.file("tmp")).unwrap();
    command
        .current_dir(files.path())
        .args(arguments)
        .env_clear()
        .env("TMPDIR", home.file("tmp"))
        .env("XDG_STATE_HOME", home.file("state"))
        .stdin(Stdio::null());
    command
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Further arguments, variables of the environment, and parts of what is said.
type Case<'a> = (&'a [&'a str], Vec<(&'a str, String)>, &'a [&'a str]);

#[test]
fn each_command_says_what_is_missing() {
    let path = std::env::var("PATH").unwrap();
    let fake = fixture("fake_nvcc.sh").display().to_string();
    let gpu = |kind: &'static str| [("PATH", path.clone()), ("FAKE_GPU", kind.to_owned())];
    let nvcc = ["--nvcc", fake.as_str()];
    let usual = ["/usr/local/cuda/bin/nvcc", "/opt/cuda/bin/nvcc"];
    let has_nvcc = usual.iter().any(|path| Path::new(path).exists());
    let cases: Vec<Case<'_>> = vec![
        (
            &[],
            Vec::new(),
            &["nvcc was not found", "install the CUDA toolkit", "--nvcc FILE"],
        ),
        (
            &["--nvcc", "/nowhere/nvcc"],
            Vec::new(),
            &["there is no compiler at /nowhere/nvcc"],
        ),
        (
            &["--nvcc", "/bin/false"],
            gpu("").to_vec(),
            &["/bin/false cannot build even a small program"],
        ),
        (
            &nvcc,
            gpu("none").to_vec(),
            &["there is no usable GPU", "CUDA_VISIBLE_DEVICES"],
        ),
        (&nvcc, gpu("no-driver").to_vec(), &["no NVIDIA driver is installed"]),
        (&nvcc, gpu("old-driver").to_vec(), &["install a newer driver"]),
        (
            &["--runner", "/nowhere/ssh gpu"],
            gpu("").to_vec(),
            &["the runner `/nowhere/ssh gpu` cannot be started"],
        ),
        (&["--runner", "false"], gpu("").to_vec(), &["leads nowhere"]),
        (
            &["--runner", "env", "--nvcc", "/nowhere/nvcc"],
            gpu("").to_vec(),
            &["no compiler at /nowhere/nvcc where `env` leads"],
        ),
    ];
    for arguments in COMMANDS {
        for (more, variables, parts) in &cases {
            if more.is_empty() && has_nvcc {
                continue;
            }
            let (files, home) = (sources(), directory(&[]));
            let output = command(&files, &home, &[arguments, more].concat())
                .envs(variables.iter().map(|(name, value)| (name, value)))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let what = format!("{arguments:?} {more:?}: {said}");
            assert_eq!(output.status.code(), Some(2), "{what}");
            for part in *parts {
                assert!(said.contains(part), "{part}: {what}");
            }
            assert!(output.stdout.is_empty(), "{what}");
            assert!(entries(&home.file("tmp")).is_empty(), "{what}");
        }
    }
}

#[test]
fn nothing_is_left_whatever_ends_it() {
    let path = std::env::var("PATH").unwrap();
    let fake = fixture("fake_nvcc.sh").display().to_string();
    for arguments in [COMMANDS[0], COMMANDS[2], COMMANDS[3]] {
        for signal in ["KILL", "TERM", "INT", "HUP"] {
            let (files, home) = (sources(), directory(&[]));
            let pids = home.file("pids");
            let mut child = command(&files, &home, &[arguments, &["--nvcc", &fake]].concat())
                .env("PATH", &path)
                .env("FAKE_HANGS", ".*")
                .env("FAKE_TIME", "1")
                .env("FAKE_PIDS", &pids)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            wait_until(&format!("{arguments:?}: a program runs"), || {
                fs::read_to_string(&pids).is_ok_and(|pids| pids.ends_with('\n'))
            });
            let id = child.id().to_string();
            assert!(
                Command::new("kill")
                    .args(["-s", signal, &id])
                    .status()
                    .unwrap()
                    .success()
            );
            let status = child.wait().unwrap();
            match signal {
                "KILL" => assert_eq!(status.signal(), Some(9)),
                _ => assert_eq!(status.code(), Some(130), "{arguments:?} {signal}"),
            }
            let alive = || {
                let pids = fs::read_to_string(&pids).unwrap();
                pids.lines().any(processes::runs)
            };
            let left = || entries(&home.file("tmp"));
            wait_for(
                || format!("{arguments:?} {signal}: {:?}, alive: {}", left(), alive()),
                || (!alive() && left().is_empty()).then_some(()),
            );
        }
    }
}
