//! The program for other platforms, built here and run by an emulator: `tests/install/cross.json`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::Directory;
use crate::lsp_client::{Capabilities, Client};
use crate::workspace;

/// What makes the record.
pub const COMMAND: &str = ".ci/package cross";

/// A platform.
#[derive(Clone, Copy, Debug)]
pub struct Platform {
    /// Rust's word for it.
    pub target: &'static str,
    /// Runs a program for it.
    runner: &'static [&'static str],
    /// How an absolute path begins there.
    root: &'static str,
}

/// The platforms.
pub const PLATFORMS: [Platform; 2] = [
    Platform {
        target: "x86_64-pc-windows-gnu",
        runner: &["wine"],
        root: "Z:",
    },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        runner: &["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
        root: "",
    },
];

/// What was seen of a platform.
#[derive(Debug, Deserialize, Serialize)]
pub struct Crossed {
    /// The platform.
    pub target: String,
    /// What ran the program, and its version.
    pub runner: String,
    /// What the program did.
    pub runs: Vec<Ran>,
}

/// Something that the program did.
#[derive(Debug, Deserialize, Serialize)]
pub struct Ran {
    /// What was asked.
    pub what: String,
    /// What came of it.
    pub found: String,
}

/// Where the record is.
pub fn path() -> PathBuf {
    workspace::root().join("tests/install/cross.json")
}

/// What was written down last; nothing where nothing was.
pub fn recorded() -> Vec<Crossed> {
    let text = fs::read_to_string(path()).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Writes it down, in place of what was known of this platform.
pub fn write(new: Crossed) -> Result<()> {
    let mut all = recorded();
    all.retain(|known| known.target != new.target);
    all.push(new);
    all.sort_by(|a, b| b.target.cmp(&a.target));
    fs::write(path(), serde_json::to_string_pretty(&all)? + "\n")?;
    Ok(())
}

/// A program for a platform, and a directory with a source text whose lines end as on Windows.
struct Trial<'a> {
    platform: &'a Platform,
    program: &'a Path,
    directory: Directory,
}

const SOURCE: &str = "bfs.cu";

impl Trial<'_> {
    fn command(&self) -> Command {
        let mut command = Command::new(self.platform.runner[0]);
        command
            .args(&self.platform.runner[1..])
            .arg(self.program)
            .current_dir(self.directory.path())
            .env("WINEDEBUG", "-all")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        let output = self.command().args(arguments).output();
        output.with_context(|| format!("{} cannot be started", self.platform.runner[0]))
    }

    /// The ids of what `check` finds.
    fn check(&self, path: &str) -> Result<String> {
        let output = self.run(&["check", path, "--format", "json"])?;
        let said = String::from_utf8_lossy(&output.stderr);
        let report: Value = serde_json::from_slice(&output.stdout).with_context(|| format!("check {path}: {said}"))?;
        let findings = report["findings"].as_array().context("no findings")?;
        let ids: BTreeSet<&str> = findings.iter().filter_map(|finding| finding["id"].as_str()).collect();
        ensure!(!ids.is_empty(), "check {path} finds nothing");
        Ok(ids.into_iter().collect::<Vec<_>>().join(", "))
    }

    /// The path of the source as this platform writes it.
    fn absolute(&self) -> String {
        let path = format!("{}{}", self.platform.root, self.directory.file(SOURCE).display());
        match self.platform.root {
            "" => path,
            _ => path.replace('/', "\\"),
        }
    }

    fn rewrite(&self) -> Result<String> {
        let line = fs::read_to_string(self.directory.file(SOURCE))?
            .lines()
            .position(|line| line.contains("expand<<<"))
            .context("a launch")?
            + 1;
        let line = line.to_string();
        let arguments = [
            "rewrite",
            SOURCE,
            "--at",
            &line,
            "--apply",
            "aggregate-block",
            "--in-place",
        ];
        let output = self.run(&arguments)?;
        ensure!(
            output.status.success(),
            "rewrite: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = self.directory.read(SOURCE);
        let (all, windows) = (text.matches('\n').count(), text.matches("\r\n").count());
        ensure!(
            all == windows,
            "{} of {all} lines don't end with CRLF any more",
            all - windows
        );
        ensure!(
            self.directory.file("gridfuse.cuh").is_file(),
            "there is no runtime header"
        );
        Ok(format!("{all} lines, all end with CRLF; gridfuse.cuh beside them"))
    }

    /// A session in an editor, which names files as this platform does.
    fn serve(&self) -> Result<String> {
        let mut command = self.command();
        command.arg("lsp").stdin(Stdio::piped());
        let mut client = Client::spawn_command(command);
        client.set_timeout(Duration::from_secs(120));
        let below = |name: &str| {
            let root = self.platform.root;
            let slash = if root.is_empty() { "" } else { "/" };
            PathBuf::from(format!("{slash}{root}{}", self.directory.file(name).display()))
        };
        let file = below(SOURCE);
        client.initialize(Some(&below("")), &Capabilities::default());
        client.open(&file, &self.directory.read(SOURCE));
        let found = client.diagnostics(&file);
        let ids: BTreeSet<&str> = found.iter().filter_map(|found| found["code"].as_str()).collect();
        ensure!(!ids.is_empty(), "the server finds nothing");
        let at = client.find(&file, "expand<<<") + 1;
        let hover = client.hover(&file, at)["contents"]["value"]
            .as_str()
            .unwrap_or_default()
            .len();
        ensure!(hover > 100, "the server's hover has {hover} bytes");
        let actions = client.code_actions(&file, at..at, &[], &[]);
        let enabled = actions.iter().filter(|action| action["disabled"].is_null()).count();
        let ids = ids.into_iter().collect::<Vec<_>>().join(", ");
        client.shutdown();
        Ok(format!("diagnostics ({ids}), a hover, {enabled} actions in the menu"))
    }
}

/// Runs a program that was built for a platform.
pub fn try_one(platform: &Platform, program: &Path) -> Result<Crossed> {
    let source = workspace::root().join("tests/fixtures/newcomers").join(SOURCE);
    let text = fs::read_to_string(source)?.replace('\n', "\r\n");
    let directory = Directory::new();
    directory.write(SOURCE, text.as_bytes());
    let trial = Trial {
        platform,
        program,
        directory,
    };
    let version = trial.run(&["--version"])?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    ensure!(
        version.ends_with(env!("CARGO_PKG_VERSION")),
        "`--version` says {version}"
    );
    let runner = Command::new(platform.runner[0]).arg("--version").output()?;
    let runner = String::from_utf8_lossy(&runner.stdout)
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned();
    let mut runs = Vec::new();
    let mut ran = |what: &str, found: String| {
        println!("{what}: {found}");
        runs.push(Ran {
            what: what.to_owned(),
            found,
        });
    };
    ran("`--version`", version);
    ran("`check` of a file with CRLF", trial.check(SOURCE)?);
    let absolute = match platform.root {
        "" => "`check` of an absolute path",
        _ => "`check` of a path with a drive and backslashes",
    };
    ran(absolute, trial.check(&trial.absolute())?);
    ran("`lsp`", trial.serve()?);
    ran("`rewrite --in-place` of a file with CRLF", trial.rewrite()?);
    Ok(Crossed {
        target: platform.target.to_owned(),
        runner,
        runs,
    })
}
