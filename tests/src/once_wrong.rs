//! What is offered for the programs of `tests/fixtures/once_wrong`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::workspace;

/// Where the programs are.
pub fn home() -> PathBuf {
    workspace::root().join("tests/fixtures/once_wrong")
}

/// What is offered for all of them, as it was written down.
pub fn expected() -> PathBuf {
    home().join("offers.expect")
}

/// The names of the programs.
///
/// # Errors
/// When the directory can't be read.
pub fn names() -> Result<Vec<String>> {
    let home = home();
    let entries = fs::read_dir(&home).with_context(|| format!("{} can't be read", home.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".cu") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// A line for each launch by the device, with what is offered and how often it launches. `gridfuse`: the program that is asked.
///
/// # Errors
/// When the program can't be read, or what is asked says something else than offers.
pub fn offers(gridfuse: &mut Command, name: &str) -> Result<String> {
    let text = fs::read(home().join(name)).with_context(|| format!("{name} can't be read"))?;
    // Alone in its folder: nothing of the others is seen.
    let root = tempfile::tempdir().context("a temporary directory can't be made")?;
    fs::write(root.path().join(name), text).context("a temporary file can't be written")?;
    let said = explain(gridfuse, root.path(), name)?;
    let launches = said["launches"].as_array();
    let launches = launches.with_context(|| format!("`gridfuse explain {name}` names no launches"))?;
    let mut out = String::new();
    for launch in launches.iter().filter(|launch| launch["launched_by"] != "host") {
        let offered = |verdict: &str| {
            let rewrites = launch["rewrites"].as_array().into_iter().flatten();
            let ids = rewrites.filter(|rewrite| rewrite["verdict"] == verdict);
            let ids: Vec<&str> = ids.filter_map(|rewrite| rewrite["rewrite"].as_str()).collect();
            match ids.is_empty() {
                true => "nothing".to_owned(),
                false => ids.join(" "),
            }
        };
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        writeln!(
            out,
            "{name}:{} by {}, {} per thread\n    eligible: {}\n    assumes: {}",
            launch["place"]["start"]["line"],
            text(&launch["launchers"]),
            text(&launch["count"]["per_thread"]),
            offered("eligible"),
            offered("assumes"),
        )?;
    }
    Ok(out)
}

fn explain(gridfuse: &mut Command, root: &Path, name: &str) -> Result<Value> {
    let output = gridfuse
        .current_dir(root)
        .args(["explain", name, "--format", "json"])
        .stdin(Stdio::null())
        .output()
        .context("gridfuse can't be started")?;
    ensure!(
        output.status.success(),
        "`gridfuse explain {name}` gave {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).with_context(|| format!("`gridfuse explain {name}` prints no JSON"))
}
