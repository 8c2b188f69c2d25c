//! Where the repository, its build directory and the `gridfuse` binary are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The root of the repository: where the sources were when this was built, or, for a binary that was carried to another
/// machine, the checkout that is the current directory.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let built = tests.parent().unwrap_or(tests);
        match std::env::current_dir() {
            Ok(here) if !built.is_dir() && here.join("tests/emulator").is_dir() => here,
            _ => built.to_path_buf(),
        }
    })
}

/// Cargo's build directory: the one the running test was built into.
pub fn target_dir() -> PathBuf {
    std::env::current_exe()
        .ok()
        .and_then(|exe| {
            exe.ancestors()
                .find(|directory| directory.join("CACHEDIR.TAG").is_file())
                .map(Path::to_path_buf)
        })
        .unwrap_or_else(|| root().join("target"))
}

/// The `gridfuse` binary, built on first use with the features and the profile of the running test.
///
/// `GRIDFUSE_TEST_BIN` names another one, for example a release build.
///
/// # Panics
/// When the binary cannot be built; the panic holds the compiler's errors.
pub fn gridfuse_bin() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match build_gridfuse() {
        Ok(path) => path,
        #[allow(clippy::panic)]
        Err(message) => panic!("{message}"),
    })
}

fn build_gridfuse() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("GRIDFUSE_TEST_BIN") {
        let path = PathBuf::from(path);
        if !path.is_file() {
            return Err(format!("GRIDFUSE_TEST_BIN is {}, which is not a file", path.display()));
        }
        return Ok(path);
    }
    // The whole workspace with all features, as `tests/run` builds it: so no dependency is built a
    // second time with fewer features.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(root())
        .args(["build", "--quiet", "--workspace", "--all-features"])
        .args(["--bin", "gridfuse", "--locked"])
        .args(["--message-format", "json-render-diagnostics"])
        .arg("--target-dir")
        .arg(target_dir())
        .stdin(Stdio::null());
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let output = command
        .output()
        .map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "cargo could not build the gridfuse binary ({})\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    executable_in(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| "cargo built the gridfuse binary but did not say where it is".to_owned())
}

/// Finds the `gridfuse` executable in cargo's JSON messages.
fn executable_in(messages: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact" && message["target"]["name"] == "gridfuse")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_found_among_cargo_messages() {
        let messages = r#"
{"reason":"compiler-artifact","target":{"name":"gridfuse_analysis"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"gridfuse"},"executable":"out/debug/gridfuse"}
{"reason":"build-finished","success":true}
"#;
        assert_eq!(executable_in(messages), Some(PathBuf::from("out/debug/gridfuse")));
        assert_eq!(executable_in("not json\n{}"), None);
    }

    #[test]
    fn the_root_is_the_workspace() {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
        assert!(manifest.contains("[workspace]"));
    }
}
