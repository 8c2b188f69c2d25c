//! The routes: each one gets an empty directory with the packages in `packages/`, installs, and looks at a program with what is there then.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::record::{Package, Record, Route};
use super::registry::Registry;
use crate::cli::Directory;
use crate::workspace;

/// A user's program.
const PROGRAM: &str = "bfs.cu";

/// A directory in which something is tried.
struct Empty {
    directory: Directory,
    /// The packages for it.
    packages: Vec<String>,
    /// What has been run.
    commands: Vec<String>,
    seconds: f64,
    load: f64,
}

impl Empty {
    /// One with those of the packages whose names end so.
    fn new(made: &Path, endings: &[&str]) -> Result<Empty> {
        let directory = Directory::new();
        fs::create_dir_all(directory.file("packages"))?;
        fs::create_dir_all(directory.file("home"))?;
        let mut packages = Vec::new();
        for name in names(made)? {
            if endings.iter().any(|ending| name.ends_with(ending)) {
                fs::copy(made.join(&name), directory.file("packages").join(&name))?;
                packages.push(name);
            }
        }
        ensure!(
            !packages.is_empty(),
            "no package ends in {endings:?}: call `.ci/package try`"
        );
        let program = workspace::root().join("tests/fixtures/newcomers").join(PROGRAM);
        fs::copy(program, directory.file(PROGRAM))?;
        Ok(Empty {
            directory,
            packages,
            commands: Vec::new(),
            seconds: 0.0,
            load: load(),
        })
    }

    /// A command in the directory, with a home in which nothing is.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .current_dir(self.directory.path())
            .env("HOME", self.directory.file("home"))
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
            .env("npm_config_update_notifier", "false")
            .stdin(Stdio::null());
        // The compiler stays where it is.
        for (variable, directory) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            let home = std::env::home_dir().filter(|_| std::env::var_os(variable).is_none());
            command.envs(home.map(|home| (variable, home.join(directory))));
        }
        for inherited in [
            "CARGO_TARGET_DIR",
            "CARGO_PROFILE_DEV_DEBUG",
            "CARGO_INCREMENTAL",
            "PYTHONPATH",
        ] {
            command.env_remove(inherited);
        }
        command
    }

    fn output(&self, line: &str) -> Result<String> {
        let output = self.command(line).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`{line}` failed:\n{text}{errors}");
        Ok(text)
    }

    /// Runs what a user types.
    fn install(&mut self, line: &str) -> Result<()> {
        println!("$ {line}");
        let begin = Instant::now();
        self.output(line)?;
        self.seconds += begin.elapsed().as_secs_f64();
        self.commands.push(line.to_owned());
        Ok(())
    }

    /// Looks at the program with what is installed now, and rewrites it. `gridfuse`: how it is called.
    fn route(self, tool: &str, version: &str, gridfuse: &str, installed: &[PathBuf]) -> Result<Route> {
        let begin = Instant::now();
        let line = format!("{gridfuse} check {PROGRAM} --format json");
        println!("$ {line}");
        let report: Value = serde_json::from_str(&self.output(&line)?)?;
        let check_seconds = begin.elapsed().as_secs_f64();
        let findings = report["findings"].as_array().context("no findings")?;
        let ids: BTreeSet<String> = findings
            .iter()
            .filter_map(|finding| finding["id"].as_str().map(str::to_owned))
            .collect();
        ensure!(!ids.is_empty(), "`{line}` finds nothing");
        ensure!(
            report["version"] == env!("CARGO_PKG_VERSION"),
            "another version is installed"
        );
        // The runtime header comes with the program.
        let at = findings
            .iter()
            .find_map(|finding| finding["place"]["start"]["line"].as_u64());
        let line = format!(
            "{gridfuse} rewrite {PROGRAM} --at {} --apply aggregate-block --in-place",
            at.unwrap_or(1)
        );
        self.output(&line)?;
        let header = self
            .directory
            .read("gridfuse.cuh")
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        let licences: BTreeSet<String> = installed
            .iter()
            .flat_map(|path| files(path))
            .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .filter(|name| name.starts_with("LICENSE-"))
            .collect();
        Ok(Route {
            tool: tool.to_owned(),
            tool_version: self
                .output(version)?
                .lines()
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned(),
            commands: self.commands,
            packages: self.packages,
            load: self.load,
            seconds: rounded(self.seconds),
            check_seconds: rounded(check_seconds),
            installed_bytes: installed
                .iter()
                .flat_map(|path| files(path))
                .filter_map(|path| Some(fs::metadata(path).ok()?.len()))
                .sum(),
            findings: ids.into_iter().collect(),
            licences: licences.into_iter().collect(),
            header,
            removed: None,
        })
    }
}

/// How many processes want to run: what else the machine does.
fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|first| first.parse().ok())
        .unwrap_or_default()
}

/// Hundredths of a second are enough.
fn rounded(seconds: f64) -> f64 {
    (seconds * 100.0).round() / 100.0
}

/// The files of a directory, without those in others.
fn names(directory: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("{}: call `.ci/package try`", directory.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// A file, or all files below a directory; links are left out.
fn files(path: &Path) -> Vec<PathBuf> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_file() => vec![path.to_path_buf()],
        Ok(about) if about.is_dir() => {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.flat_map(|entry| files(&entry.path())).collect()
        }
        _ => Vec::new(),
    }
}

fn archive(made: &Path) -> Result<Route> {
    let mut empty = Empty::new(made, &[".tar.gz"])?;
    let name = empty.packages.first().context("a package")?.clone();
    empty.install(&format!("tar -xzf packages/{name}"))?;
    let name = name.trim_end_matches(".tar.gz");
    let installed = empty.directory.file(name);
    empty.route("tar", "tar --version", &format!("{name}/gridfuse"), &[installed])
}

fn pip(made: &Path) -> Result<Route> {
    let mut empty = Empty::new(made, &[".whl"])?;
    empty.output("python3 -m venv venv")?;
    let before: BTreeSet<PathBuf> = files(&empty.directory.file("venv")).into_iter().collect();
    empty.install("venv/bin/pip install --no-index --find-links packages gridfuse")?;
    let after = files(&empty.directory.file("venv")).into_iter();
    let installed: Vec<PathBuf> = after.filter(|file| !before.contains(file)).collect();
    empty.route(
        "pip",
        "venv/bin/pip --version | cut -d' ' -f1-2",
        "venv/bin/gridfuse",
        &installed,
    )
}

fn npx(made: &Path) -> Result<Route> {
    let mut empty = Empty::new(made, &[".tgz"])?;
    let files: Vec<PathBuf> = empty
        .packages
        .iter()
        .map(|name| empty.directory.file("packages").join(name))
        .collect();
    let registry = Registry::of(&files)?;
    empty
        .directory
        .write("home/.npmrc", format!("registry={}\n", registry.url).as_bytes());
    empty.install("npx --yes gridfuse --version")?;
    let installed = empty.directory.file("home/.npm/_npx");
    empty.route("npx", "echo npm $(npm --version)", "npx gridfuse", &[installed])
}

fn cargo(made: &Path) -> Result<Route> {
    let mut empty = Empty::new(made, &[".crate"])?;
    for name in empty.packages.clone() {
        empty.output(&format!("tar -xzf packages/{name}"))?;
    }
    let version = env!("CARGO_PKG_VERSION");
    // The two crates that it depends on are not in the registry before they are published.
    let patches: Vec<String> = ["analysis", "codeactions"]
        .iter()
        .map(|name| format!("--config 'patch.crates-io.gridfuse-{name}.path=\"gridfuse-{name}-{version}\"'"))
        .collect();
    empty.install(&format!(
        "cargo install --quiet --root . --path gridfuse-{version} {}",
        patches.join(" ")
    ))?;
    // The sources are not installed; their licences stay with them.
    let program = fs::metadata(empty.directory.file("bin/gridfuse"))?.len();
    let sources = empty.directory.file(&format!("gridfuse-{version}"));
    let licences = ["LICENSE-MIT", "LICENSE-APACHE"].map(|name| sources.join(name));
    let mut route = empty.route("cargo", "cargo --version", "bin/gridfuse", &licences)?;
    route.installed_bytes = program;
    Ok(route)
}

fn deb(made: &Path) -> Result<Route> {
    let mut empty = Empty::new(made, &[".deb"])?;
    ensure!(
        empty.output("dpkg -s gridfuse").is_err(),
        "gridfuse is installed here as a Debian package: `dpkg -r gridfuse` first"
    );
    let name = empty.packages.first().context("a package")?.clone();
    empty.install(&format!("dpkg -i packages/{name}"))?;
    // What a container leaves out (manuals, say) is not on disk, whatever the list says.
    let listed = empty.output("dpkg -L gridfuse")?;
    let installed: Vec<PathBuf> = listed
        .lines()
        .map(PathBuf::from)
        .filter(|path| path.is_file())
        .collect();
    for part in [
        "bash-completion/completions/gridfuse",
        "man1/gridfuse-check.1.gz",
        "_gridfuse",
        "gridfuse.fish",
    ] {
        ensure!(listed.contains(part), "the package has no {part}:\n{listed}");
    }
    let route = empty.route("dpkg", "dpkg --version", "/usr/bin/gridfuse", &installed);
    let removed = Command::new("dpkg").args(["-r", "gridfuse"]).output()?;
    ensure!(
        removed.status.success(),
        "dpkg -r gridfuse failed: {}",
        String::from_utf8_lossy(&removed.stderr)
    );
    let left: Vec<&PathBuf> = installed.iter().filter(|path| path.exists()).collect();
    ensure!(left.is_empty(), "dpkg -r gridfuse leaves {left:?}");
    let mut route = route?;
    route.removed = Some("dpkg -r gridfuse".to_owned());
    Ok(route)
}

/// Goes a route with the packages in a directory.
type Install = fn(&Path) -> Result<Route>;

/// The routes; the one that takes long is the last.
const ROUTES: [(&str, Install); 5] = [
    ("tar", archive),
    ("pip", pip),
    ("npx", npx),
    ("dpkg", deb),
    ("cargo", cargo),
];

/// Tries these routes, or all of them, with the packages in a directory. What is known of others stays.
pub fn try_them(made: &Path, only: &[String]) -> Result<Record> {
    let known = ROUTES.map(|(name, _)| name);
    if let Some(unknown) = only.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("there is no route {unknown}, only {}", known.join(", "));
    }
    let rustc = Command::new("rustc").arg("-vV").output().context("rustc")?;
    let rustc = String::from_utf8_lossy(&rustc.stdout).into_owned();
    let platform = rustc
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap_or_default();
    let about = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let system = about
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .unwrap_or(std::env::consts::OS);
    let mut packages = Vec::new();
    for file in names(made)? {
        let bytes = fs::metadata(made.join(&file))?.len();
        packages.push(Package { file, bytes });
    }
    let user = Command::new("id").arg("-u").output().context("id")?.stdout;
    let may_dpkg = user.trim_ascii() == b"0" && Path::new("/usr/bin/dpkg").exists();
    let mut before = Record::read().map_or(Vec::new(), |record| record.routes);
    let mut routes = Vec::new();
    for (name, route) in ROUTES {
        let at = before.iter().position(|known| known.tool == name);
        let known = at.map(|at| before.remove(at));
        if !only.is_empty() && !only.iter().any(|wanted| wanted == name) {
            routes.extend(known);
        } else if name == "dpkg" && !may_dpkg {
            println!("the Debian package is not tried: that needs dpkg, and root");
        } else {
            routes.push(route(made)?);
        }
    }
    Ok(Record {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        platform: platform.to_owned(),
        system: system.trim_matches('"').to_owned(),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        packages,
        routes,
    })
}
