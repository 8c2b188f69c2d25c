//! `gridfuse doctor` on machines that are made up: a `PATH` and a CUDA_HOME with programs that only say what they are.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use gridfuse_tests::cli::{Directory, Run, run_of};
use gridfuse_tests::doctor_captures::{MACHINES, capture, has_what_cannot_be_hidden, path};
use gridfuse_tests::nvcc::Nvcc;
use gridfuse_tests::{expect, workspace};
use serde_json::Value;

const NVCC: &str = "echo 'Cuda compilation tools, release 12.4, V12.4.131'";
const SMI: &str = "echo 'NVIDIA H100 80GB HBM3, 9.0, 570.86.10'";

/// The functions of a driver that are called.
const DRIVER: &str = r#"
#include <cstdio>
#include <cstring>
extern "C" {
__attribute__((constructor)) void loaded() { fclose(fopen(TRACE, "w")); }
int cuInit(unsigned) { return INIT; }
int cuDriverGetVersion(int* version) { *version = 12080; return 0; }
int cuDeviceGetCount(int* count) { *count = 2; return 0; }
int cuDeviceGet(int* device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char* name, int, int) { strcpy(name, "NVIDIA Anything"); return 0; }
int cuDeviceTotalMem_v2(size_t* bytes, int) { *bytes = 80ull << 30; return 0; }
int cuDeviceGetAttribute(int* value, int what, int) {
    *value = what == 75 ? 9 : what == 76 ? 0 : what == 16 ? 114 : -1;
    return 0;
}
}
"#;

/// A machine: a directory for its programs, and a project in another one.
struct Machine {
    disk: Directory,
}

impl Machine {
    fn new() -> Machine {
        let disk = Directory::new();
        disk.write("home/cuda/bin/x", b"");
        disk.write("bin/x", b"");
        disk.write("project/a.cu", b"__global__ void k() {}\n");
        // What is below belongs to the project, and not what is above.
        disk.write("project/.git/HEAD", b"");
        Machine { disk }
    }

    fn program(&self, path: &str, script: &str) {
        let file = self.disk.write(path, format!("#!/bin/sh\n{script}\n").as_bytes());
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn doctor(&self, path: &str, arguments: &[&str]) -> Run {
        self.doctor_in("400", path, arguments)
    }

    fn doctor_in(&self, columns: &str, path: &str, arguments: &[&str]) -> Run {
        let mut command = Command::new(workspace::gridfuse_bin());
        for variable in ["CUDA_PATH", "NVCC_CCBIN", "CUDA_VISIBLE_DEVICES"] {
            command.env_remove(variable);
        }
        command
            .current_dir(self.disk.file("project"))
            .env("COLUMNS", columns)
            .env("PATH", path)
            // With a directory of the project among those of libraries, the driver of this machine isn't asked.
            .env("LD_LIBRARY_PATH", ".")
            .env("CUDA_HOME", self.disk.file("home/cuda"));
        run_of(command.arg("doctor").args(arguments))
    }

    /// A driver's library that says what it is given, and leaves a trace.
    fn driver(&self, directory: &str, init: i32) {
        let source = self.disk.write("home/driver.cpp", DRIVER.as_bytes());
        let library = self.disk.write(&format!("{directory}/libcuda.so"), b"");
        let mut compiler = Command::new("g++");
        compiler.args(["-shared", "-fPIC", "-O1"]).arg(format!("-DINIT={init}"));
        compiler.arg(format!("-DTRACE=\"{}\"", self.disk.file("trace").display()));
        let done = run_of(compiler.arg("-o").args([&library, &source]));
        assert_eq!(done.code, Some(0), "{}", done.story());
    }

    fn doctor_with_libraries(&self, libraries: &str) -> Value {
        let mut command = Command::new(workspace::gridfuse_bin());
        command
            .current_dir(self.disk.file("project"))
            .env("PATH", self.own_path())
            .env("LD_LIBRARY_PATH", libraries)
            .env("CUDA_HOME", self.disk.file("home/cuda"))
            .env_remove("CUDA_VISIBLE_DEVICES");
        run_of(command.args(["doctor", "--format", "json"])).json()
    }

    /// The status and what was found, by the name of the check.
    fn checks(&self, path: &str) -> (Run, impl Fn(&str) -> (String, String) + use<>) {
        let run = self.doctor(path, &["--format", "json"]);
        let report = run.json();
        let checks = report["checks"].as_array().cloned().unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let of = move |name: &str| {
            let check = checks.iter().find(|check| check["name"] == name);
            let check = check.unwrap_or_else(|| panic!("no {name}: {report:#}"));
            (
                text(&check["status"]),
                format!("{} -> {}", text(&check["found"]), text(&check["help"])),
            )
        };
        (run, of)
    }

    fn own_path(&self) -> String {
        self.disk.file("bin").display().to_string()
    }
}

#[track_caller]
fn expect(found: (String, String), status: &str, part: &str) {
    assert!(found.0 == status && found.1.contains(part), "{found:?}");
}

/// What is to be read fits the terminal; commands, which are copied, are in one piece.
#[test]
fn the_report_fits_the_terminal() {
    let machine = Machine::new();
    let words = |run: &Run| -> Vec<String> { run.stdout.split_whitespace().map(str::to_owned).collect() };
    let wide = machine.doctor("", &[]);
    assert!(wide.stdout.lines().any(|line| line.len() > 200), "{}", wide.stdout);
    for columns in [60, 80] {
        let narrow = machine.doctor_in(&columns.to_string(), "", &[]);
        assert_eq!(words(&narrow), words(&wide));
        for line in narrow.stdout.lines().filter(|line| line.chars().count() > columns) {
            let line = line.trim_start();
            assert!(line.starts_with('`') || !line.contains(' '), "{columns}: {line}");
        }
    }
}

#[test]
fn everything_is_there() {
    let machine = Machine::new();
    machine.program("home/cuda/bin/nvcc", NVCC);
    machine.program("bin/nvidia-smi", SMI);
    machine.program("bin/g++", "exit 1");
    machine.disk.write("home/cuda/lib64/libcudadevrt.a", b"");
    machine.disk.write(
        "project/build/compile_commands.json",
        br#"[{"directory": "..", "file": "a.cu", "command": "nvcc -c a.cu"}]"#,
    );
    let (run, of) = machine.checks(&machine.own_path());
    assert_eq!(run.code, Some(0), "{}", run.story());
    expect(of("compiler"), "ok", "nvcc of CUDA 12.4");
    expect(of("host compiler"), "ok", "bin/g++");
    expect(of("device runtime"), "ok", "lib64/libcudadevrt.a");
    expect(of("driver"), "ok", "570.86.10");
    expect(of("GPU"), "ok", "H100");
    expect(of("gridfuse.toml"), "ok", "none is needed");
    expect(of("compile commands"), "ok", "1 files, 1 of them .cu");
    let text = machine.doctor(&machine.own_path(), &[]).expect_code(0);
    assert!(
        text.stdout
            .contains("checking and rewriting work; measuring does, too\n"),
        "{}",
        text.story()
    );
}

#[test]
fn what_is_missing_is_named_with_what_helps() {
    let machine = Machine::new();
    if Path::new("/usr/local/cuda/bin/nvcc").exists() || Path::new("/proc/driver/nvidia").exists() {
        return;
    }
    let (run, of) = machine.checks(&machine.own_path());
    assert_eq!(run.code, Some(1), "{}", run.story());
    expect(of("compiler"), "missing", "install the CUDA toolkit, 12 or newer");
    expect(of("host compiler"), "missing", "install g++");
    expect(of("driver"), "missing", "install NVIDIA's driver");
    expect(of("GPU"), "missing", "runner = \"ssh HOST\"");
    expect(of("compile commands"), "note", "CMAKE_EXPORT_COMPILE_COMMANDS");
    let text = machine.doctor(&machine.own_path(), &[]).expect_code(1);
    let first = text.stdout.lines().next().unwrap_or_default();
    assert!(
        first.ends_with("measuring lacks: compiler, host compiler, device runtime, driver, GPU"),
        "{}",
        text.story()
    );
    machine
        .disk
        .write("project/gridfuse.toml", b"[measure]\nrunner = 'ssh far'\n");
    let text = machine.doctor(&machine.own_path(), &[]).expect_code(0);
    assert!(
        text.stdout.contains("measuring goes through `ssh far`"),
        "{}",
        text.story()
    );
}

#[test]
fn what_is_too_old_or_broken_is_told_of() {
    let machine = Machine::new();
    machine.program("home/cuda/bin/nvcc", "echo 'release 11.8, V11.8.89'");
    machine.program("bin/nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9");
    machine.disk.write("project/gridfuse.toml", b"arch = 90\n");
    machine.disk.write("project/compile_commands.json", b"[{}]");
    let (_, of) = machine.checks(&machine.own_path());
    expect(of("compiler"), "missing", "is of CUDA 11.8, which is too old");
    expect(of("driver"), "missing", "NVIDIA-SMI has failed");
    expect(of("gridfuse.toml"), "missing", "gridfuse.toml:1:8");
    expect(of("compile commands"), "note", "an entry is left out");
    machine.program("bin/nvidia-smi", "echo 'Tesla P100, 6.0, 470.1'");
    let (_, of) = machine.checks(&machine.own_path());
    expect(of("driver"), "missing", "too old");
    expect(of("GPU"), "missing", "needs compute capability 7.0");
}

#[test]
fn nothing_of_the_project_is_run() {
    let machine = Machine::new();
    let traps = ["nvcc", "nvidia-smi", "g++", "ssh"];
    let trap = format!("touch {}", machine.disk.file("trapped").display());
    for name in traps {
        machine.program(&format!("project/{name}"), &trap);
        machine.program(&format!("project/tools/{name}"), &trap);
    }
    machine
        .disk
        .write("project/gridfuse.toml", b"[measure]\nrunner = 'ssh far'\n");
    let tools = machine.disk.file("project/tools").display().to_string();
    for path in [".", "tools", &tools] {
        let (run, of) = machine.checks(path);
        expect(of("compiler"), "note", "an nvcc in the project isn't run");
        assert!(!machine.disk.file("trapped").exists(), "{}", run.story());
    }
    // A link to it from outside is the same program.
    std::os::unix::fs::symlink(machine.disk.file("project/nvcc"), machine.disk.file("bin/nvcc")).unwrap();
    let (run, of) = machine.checks(&machine.own_path());
    expect(of("compiler"), "note", "an nvcc in the project isn't run");
    assert!(!machine.disk.file("trapped").exists(), "{}", run.story());
}

#[cfg(target_os = "linux")]
#[test]
fn the_driver_is_asked_without_any_program() {
    let machine = Machine::new();
    let libraries = machine.disk.file("home/lib").display().to_string();
    let of = |report: &Value, name: &str| {
        let checks = report["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == name).unwrap();
        format!("{} {}", check["status"], check["found"]).replace('"', "")
    };
    machine.driver("home/lib", 0);
    let report = machine.doctor_with_libraries(&libraries);
    assert!(of(&report, "driver").starts_with("ok "), "{report:#}");
    assert!(of(&report, "driver").ends_with("for CUDA 12.8 and older"), "{report:#}");
    let gpu = "ok NVIDIA Anything (compute capability 9.0, 114 multiprocessors, 80.0 GiB), and 1 more GPU";
    assert_eq!(of(&report, "GPU"), gpu);
    assert_eq!(report["gpus"].as_array().unwrap().len(), 2);
    assert_eq!(report["gpus"][1]["multiprocessors"], 114);
    assert!(machine.disk.file("trace").exists());
    // No GPU; then one that fails: nvidia-smi may know why.
    machine.driver("home/lib", 100);
    let report = machine.doctor_with_libraries(&libraries);
    assert_eq!(of(&report, "GPU"), "missing the driver sees no GPU");
    machine.driver("home/lib", 803);
    let report = machine.doctor_with_libraries(&libraries);
    assert!(
        of(&report, "driver").contains("cuInit gives CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        "{report:#}"
    );
    machine.program("bin/nvidia-smi", "echo 'Driver/library version mismatch'; exit 18");
    let report = machine.doctor_with_libraries(&libraries);
    assert!(
        of(&report, "driver").contains("Driver/library version mismatch"),
        "{report:#}"
    );
    // A library in the project is not loaded.
    fs::remove_file(machine.disk.file("trace")).unwrap();
    machine.driver("project/lib", 0);
    for libraries in ["lib", ".", "", &machine.disk.file("project/lib").display().to_string()] {
        machine.doctor_with_libraries(&format!("{libraries}:"));
        assert!(!machine.disk.file("trace").exists(), "{libraries}");
    }
}

/// The page of `docs/` has what is said now of machines without a GPU.
#[test]
fn what_is_recorded_of_machines_is_said_now() {
    // Another toolkit has another version, and other directories.
    let recorded = Nvcc::get().root().ends_with("site-packages/nvidia/cu13");
    for machine in &MACHINES {
        let same = machine.name == "nothing" || machine.name == "nvcc" && recorded;
        if same && !has_what_cannot_be_hidden() {
            expect::file(&path(machine), &capture(machine).unwrap(), "cli_doctor");
        }
    }
}
