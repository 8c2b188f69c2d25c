//! Measuring on other machines: a real ssh server and a real Slurm, here, and behind them a compiler and a GPU that are faked.
#![cfg(all(unix, feature = "remote"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gridfuse_tests::cli::{Directory, Run, directory};
use gridfuse_tests::patience::{wait_for, wait_until};
use gridfuse_tests::processes;
use gridfuse_tests::remote_hosts::{SlurmCluster, SshServer};
use gridfuse_tests::workspace;
use serde_json::Value;

struct Laptop {
    files: Directory,
    home: Directory,
    /// What the runner needs here.
    variables: Vec<(String, String)>,
}

impl Laptop {
    fn new(variables: Vec<(String, String)>) -> Laptop {
        let source = fs::read(workspace::root().join("tests/fixtures/measure/program.cu")).unwrap();
        Laptop {
            files: directory(&[("program.cu", &source)]),
            home: Directory::new(),
            variables,
        }
    }

    fn command(&self, what: &str, runner: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(workspace::gridfuse_bin());
        command
            .current_dir(self.files.path())
            .args([what, "program.cu", "--runner", runner])
            .args(arguments)
            .env("XDG_STATE_HOME", self.home.path())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, what: &str, runner: &str, arguments: &[&str]) -> Run {
        let output = self.command(what, runner, arguments).output().expect("gridfuse starts");
        Run {
            command: format!("gridfuse {what} --runner '{runner}' {}", arguments.join(" ")),
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// An nvcc that is nowhere but there, with what it is to do.
fn compiler(fakes: &[(&str, &str)]) -> Directory {
    let fake = workspace::root().join("tests/fixtures/measure/fake_nvcc.sh");
    let exports: String = fakes
        .iter()
        .map(|(name, value)| format!("export {name}='{value}'\n"))
        .collect();
    let there = directory(&[(
        "bin of it/nvcc",
        format!("#!/bin/sh\n{exports}exec '{}' \"$@\"\n", fake.display()).as_bytes(),
    )]);
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(there.file("bin of it/nvcc"), fs::Permissions::from_mode(0o755)).unwrap();
    there
}

fn nvcc(there: &Directory) -> String {
    there.file("bin of it/nvcc").display().to_string()
}

fn variant<'a>(report: &'a Value, rewrites: &str) -> &'a Value {
    let mut variants = report["variants"].as_array().unwrap().iter();
    let found = variants.find(|variant| variant["rewrites"] == rewrites);
    &found.unwrap_or_else(|| panic!("no {rewrites} in {report:#}"))["outcome"]
}

/// Programs end and files go, mostly soon.
#[track_caller]
fn nothing_is_left(tmp: &Path, pids: &Path) {
    let files = || {
        fs::read_dir(tmp)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<PathBuf>>()
    };
    let alive = || {
        let pids = fs::read_to_string(pids).unwrap_or_default();
        pids.lines().filter(|pid| processes::runs(pid)).count()
    };
    wait_for(
        || format!("left: {:?}, {} programs", files(), alive()),
        || (files().is_empty() && alive() == 0).then_some(()),
    );
}

/// What is to be seen of every runner: `tmp`, `pids`: where programs there leave files, and their process ids.
fn measures_and_cleans_up(laptop: &Laptop, runner: &str, tmp: &Path, pids: &Path) {
    let good = compiler(&[]);
    let arguments = ["--nvcc", &nvcc(&good), "--repeat", "2", "--json", "--rewrites"];
    let quoted = "a 'b  c' \"it's $HOME\" 'x\ny' '*'";
    let all = [&arguments[..], &["aggregate-block,threshold", "--args", quoted]].concat();
    let report = laptop.run("measure", runner, &all).expect_code(0).json();
    assert_eq!(report["machine"]["gpu"], "Fake GPU");
    assert_eq!(
        report["args"],
        serde_json::json!(["a", "b  c", "it's $HOME", "x\ny", "*"])
    );
    assert_eq!(report["original"]["device_launches"], 12);
    let outcome = variant(&report, "aggregate-block");
    assert_eq!(
        (&outcome["median_ms"], &outcome["agreement"]["compared"]),
        (&0.5.into(), &1.into()),
        "{report:#}"
    );
    nothing_is_left(tmp, pids);

    let bad = compiler(&[
        ("FAKE_WRONG", "gridfuse::PerGrid"),
        ("FAKE_NO_BUILD", "kChildThreshold"),
        ("FAKE_HANGS", "gridfuse::PerBlock"),
    ]);
    let path = nvcc(&bad);
    let names = "aggregate-block,aggregate-grid,threshold,aggregate-warp";
    let arguments = [
        "--nvcc",
        &path,
        "--repeat",
        "1",
        "--json",
        "--timeout",
        "10",
        "--rewrites",
        names,
    ];
    let report = laptop.run("measure", runner, &arguments).expect_code(1).json();
    assert_eq!(
        variant(&report, "aggregate-block")["outcome"],
        "timed-out",
        "{report:#}"
    );
    assert_eq!(
        variant(&report, "aggregate-grid")["agreement"]["found"],
        "6",
        "{report:#}"
    );
    let failure = variant(&report, "threshold");
    assert_eq!(failure["messages"][0]["path"], "program.cu", "{report:#}");
    assert_eq!(variant(&report, "aggregate-warp")["agreement"]["agreement"], "agrees");
    nothing_is_left(tmp, pids);

    // However this end comes to its end.
    let hangs = compiler(&[("FAKE_HANGS", ".*")]);
    for signal in ["KILL", "INT"] {
        let _ = fs::remove_file(pids);
        let path = nvcc(&hangs);
        let mut child = laptop
            .command("measure", runner, &["--nvcc", &path, "--rewrites", "threshold"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("a program runs", || {
            fs::read_to_string(pids).is_ok_and(|pids| pids.ends_with('\n'))
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
        if signal == "INT" {
            assert_eq!(status.code(), Some(130));
        }
        nothing_is_left(tmp, pids);
    }

    let fast = compiler(&[("FAKE_TIME", "1 + abs(g - 3) + abs(t - 16) / 32")]);
    let path = nvcc(&fast);
    let few = [
        "--thresholds",
        "none,16,64",
        "--factors",
        "none",
        "--granularities",
        "none,block,grid",
    ];
    let arguments = [&few[..], &["--nvcc", &path, "--repeat", "2", "--json"]].concat();
    let report = laptop.run("tune", runner, &arguments).expect_code(0).json();
    assert_eq!(report["search"]["best_ms"], 1.0, "{report:#}");
    nothing_is_left(tmp, pids);
}

#[test]
fn inputs_are_sent_along() {
    let (tmp, pids) = (Directory::new(), Directory::new());
    let laptop = Laptop::new(vec![("TMPDIR".to_owned(), tmp.path().display().to_string())]);
    laptop.files.write("data/graph.txt", b"0 1\n");
    laptop.files.write("data/it's big.bin", &vec![7; 3 << 20]);
    laptop.files.write(".gitignore", b"data\n");
    let good = compiler(&[("FAKE_READS", "data/graph.txt")]);
    let path = nvcc(&good);
    let arguments = ["--nvcc", &path, "--repeat", "1", "--json", "--rewrites", "threshold"];
    // A shell on this machine, which has a directory of the same name.
    let manifest = |inputs: &str| {
        let text = format!("[measure]\nrunner = 'env'\ninputs = [{inputs}]\n");
        laptop.files.write("gridfuse.toml", text.as_bytes());
    };
    manifest("'data/*'");
    let run = laptop.run("measure", "env", &arguments).expect_code(0);
    assert_eq!(variant(&run.json(), "threshold")["outcome"], "ran", "{}", run.story());
    assert!(
        run.stderr.contains("sending data/graph.txt, file 1 of 2"),
        "{}",
        run.story()
    );
    // Programs have read the copy, and written to it.
    assert_eq!(laptop.files.read("data/graph.txt"), "0 1\n");
    nothing_is_left(tmp.path(), &pids.file("pids"));

    manifest("'data/*.bin'");
    let report = laptop.run("measure", "env", &arguments).expect_code(1).json();
    assert_eq!(report["original"]["outcome"], "failed", "{report:#}");
    manifest("'data/graph.txt', 'none/*'");
    let run = laptop.run("measure", "env", &arguments).expect_code(2);
    assert!(run.stderr.contains("`none/*` names no file"), "{}", run.story());
    nothing_is_left(tmp.path(), &pids.file("pids"));
}

#[test]
fn through_ssh() {
    let pids = Directory::new();
    let pids = pids.file("pids");
    let server = SshServer::start(&[("FAKE_PIDS", pids.to_str().unwrap())]);
    let laptop = Laptop::new(Vec::new());
    measures_and_cleans_up(&laptop, &server.runner(), &server.tmp(), &pids);

    // A project says it in its file; what is in the way is said.
    let runner = server.runner();
    laptop
        .files
        .write("gridfuse.toml", format!("[measure]\nrunner = '{runner}'\n").as_bytes());
    let run = |runner: &str, arguments: &[&str], part: &str| {
        let run = laptop.run("measure", runner, arguments).expect_code(2);
        assert!(run.stderr.contains(part), "{part}: {}", run.story());
    };
    let mut command = Command::new(workspace::gridfuse_bin());
    command
        .current_dir(laptop.files.path())
        .args(["measure", "program.cu", "--nvcc", "/nowhere/nvcc"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("there is no compiler at /nowhere/nvcc where `ssh"),
        "{said}"
    );
    run(&server.runner_with_wrong_key(), &[], "ssh-copy-id");
    run(&server.runner_to_stranger(), &[], "connect once by hand");
    run("ssh -F none -p 1 127.0.0.1", &[], "no ssh server listens there");
    run("ssh -F none nowhere.invalid", &[], "is its name right?");
    let none = compiler(&[("FAKE_GPU", "none")]);
    run(&runner, &["--nvcc", &nvcc(&none)], "CUDA_VISIBLE_DEVICES");
    nothing_is_left(&server.tmp(), &pids);
}

#[test]
fn through_slurm() {
    let cluster = SlurmCluster::start();
    let pids = Directory::new();
    let pids = pids.file("pids");
    let mut variables = cluster.variables();
    variables.push(("FAKE_PIDS".to_owned(), pids.display().to_string()));
    let laptop = Laptop::new(variables);
    measures_and_cleans_up(&laptop, &cluster.runner(), &cluster.tmp(), &pids);
    let run = laptop
        .run("measure", "srun --quiet --partition=nowhere", &[])
        .expect_code(2);
    assert!(run.stderr.contains("partition"), "{}", run.story());
    shares_of_a_job_array(&laptop);
}

/// The commands of docs/measuring.md: each job of an array measures a share, and the shares are put together.
fn shares_of_a_job_array(laptop: &Laptop) {
    let page = fs::read_to_string(workspace::root().join("docs/measuring.md")).unwrap();
    let (_, commands) = page.split_once("```sh\nsbatch").expect("the commands");
    let (commands, _) = commands.split_once("```").expect("their end");
    let fake = workspace::root().join("tests/fixtures/measure/fake_nvcc.sh");
    let gridfuse = format!(
        "{} measure program.cu --nvcc {}",
        workspace::gridfuse_bin().display(),
        fake.display()
    );
    let commands = format!("sbatch {commands}")
        // There are no GPUs to be had.
        .replace("--array=1-4 --gpus=1", "--array=1-2 --output=/dev/null")
        .replace("gridfuse measure bfs.cu", &gridfuse)
        .replace("--join", "--json --join");
    let output = Command::new("sh")
        .args(["-e", "-c", &commands])
        .current_dir(laptop.files.path())
        .env("XDG_STATE_HOME", laptop.home.path())
        .envs(laptop.variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .output()
        .expect("sh starts");
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{commands}\n{stdout}\n{stderr}");
    // What sbatch prints comes first.
    let json = stdout.find('{').map(|from| &stdout[from..]).expect("a report");
    let report: Value = serde_json::from_str(json).expect("a report");
    assert_eq!(report["gpus"], 2, "{report:#}");
    assert!(
        report["variants"]
            .as_array()
            .is_some_and(|variants| variants.len() > 10),
        "{report:#}"
    );
}
