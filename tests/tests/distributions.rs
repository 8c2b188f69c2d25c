//! How others distribute gridfuse: the entry for mason, and the flake for Nix. They agree with what a release has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::fs;

use gridfuse_tests::workspace;

fn read(path: &str) -> String {
    fs::read_to_string(workspace::root().join(path)).unwrap()
}

/// The platforms of a release: the machines of its workflow.
fn runners() -> Vec<String> {
    let workflow = read(".github/workflows/release.yml");
    let line = workflow.lines().find_map(|line| line.trim().strip_prefix("runner: ["));
    let names = line.unwrap().trim_end_matches(']').split(", ");
    names.map(str::to_owned).collect()
}

/// What stands for a machine, in a list of pairs.
fn named<'a>(names: &[(&str, &'a str)]) -> BTreeSet<&'a str> {
    let of = |runner: &String| names.iter().find(|(machine, _)| machine == runner);
    runners().iter().filter_map(of).map(|(_, name)| *name).collect()
}

/// Of a block of YAML such as `KEY:` the lines below it that are a list.
fn list<'a>(text: &'a str, key: &str) -> BTreeSet<&'a str> {
    let (_, below) = text.split_once(&format!("{key}:\n")).unwrap();
    below.lines().map_while(|line| line.trim().strip_prefix("- ")).collect()
}

#[test]
fn the_entry_for_mason_is_the_wheel_of_this_version() {
    let entry = read("editors/mason/packages/gridfuse/package.yaml");
    assert!(entry.starts_with("---\nname: gridfuse\n"));
    let id = format!("\n  id: pkg:pypi/gridfuse@{}\n", env!("CARGO_PKG_VERSION"));
    assert!(entry.contains(&id), "{id}");
    assert!(entry.contains("\nbin:\n  gridfuse: pypi:gridfuse\n"));
    let manifest = read("Cargo.toml");
    let wheel = read("pyproject.toml");
    let wheel = wheel
        .lines()
        .find_map(|line| line.strip_prefix("description = \""))
        .unwrap();
    assert!(entry.contains(&format!("\ndescription: {}\n", wheel.trim_end_matches('"'))));
    let licences = list(&entry, "licenses");
    let licences = licences.into_iter().rev().collect::<Vec<_>>().join(" OR ");
    assert!(manifest.contains(&format!("license = \"{licences}\"")), "{licences}");
    let platforms = named(&[
        ("ubuntu-22.04", "linux_x64_gnu"),
        ("ubuntu-22.04-arm", "linux_arm64_gnu"),
        ("macos-14", "darwin_arm64"),
        ("windows-2022", "win_x64"),
    ]);
    assert_eq!(platforms.len(), runners().len(), "a machine has no name here");
    assert_eq!(list(&entry, "supported_platforms"), platforms);
    // By this name Neovim finds the configuration of the plugin.
    assert!(entry.contains("\nneovim:\n  lspconfig: gridfuse\n"));
    assert!(workspace::root().join("editors/neovim/lsp/gridfuse.lua").is_file());
}

/// In a Nix that is unpacked, with something that stands for nixpkgs: what the flake makes is looked at, not built.
#[cfg(feature = "editors")]
#[test]
fn the_flake_makes_a_package_for_each_platform() {
    use std::process::Command;

    use gridfuse_tests::cli::{Directory, gridfuse};
    use gridfuse_tests::editors::{Debian, run};
    use serde_json::Value;

    let Some(debian) = Debian::unpack("nix", &["nix-bin"]).unwrap() else {
        println!("not tried: there is no apt here");
        return;
    };
    let root = workspace::root().display();
    let expression = format!(
        "let nixpkgs = import {root}/tests/fixtures/nix/nixpkgs.nix; \
         made = (import {root}/flake.nix).outputs {{ self = \"self\"; inherit nixpkgs; }}; in {{ \
         packages = made.packages; shells = made.devShells; \
         overlay = (made.overlays.default nixpkgs.legacyPackages.x86_64-linux {{ }}).gridfuse.pname; }}"
    );
    let directory = Directory::new();
    let words = debian.command("usr/bin/nix").unwrap();
    let mut nix = Command::new(&words[0]);
    nix.args(&words[1..])
        .args(["--extra-experimental-features", "nix-command", "--store", "dummy://"])
        .args(["eval", "--impure", "--json", "--expr", &expression])
        .env("HOME", directory.path());
    let done = run(&mut nix).unwrap_or_else(|error| panic!("{error}"));
    let made: Value = serde_json::from_slice(&done.stdout).unwrap();
    let systems = named(&[
        ("ubuntu-22.04", "x86_64-linux"),
        ("ubuntu-22.04-arm", "aarch64-linux"),
        ("macos-14", "aarch64-darwin"),
    ]);
    for kind in ["packages", "shells"] {
        let names: BTreeSet<&str> = made[kind].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, systems, "{kind}");
    }
    assert_eq!(made["overlay"], "gridfuse");
    for system in systems {
        let package = &made["packages"][system]["default"];
        assert_eq!(package["version"], env!("CARGO_PKG_VERSION"), "{system}");
        assert_eq!(package["meta"]["mainProgram"], "gridfuse", "{system}");
        assert_eq!(*package, made["packages"][system]["gridfuse"], "{system}");
    }
    // What it has the program print is something that the program prints.
    let script = made["packages"]["x86_64-linux"]["default"]["postInstall"]
        .as_str()
        .unwrap();
    let mut called = 0;
    for call in script.split("$out/bin/gridfuse ").skip(1) {
        let call: Vec<&str> = call.split([')', '\n']).next().unwrap().split(' ').collect();
        gridfuse(directory.path(), &call).expect_code(0);
        called += 1;
    }
    assert_eq!(called, 4, "{script}");
}
