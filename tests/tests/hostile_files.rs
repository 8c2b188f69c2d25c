//! What lies in a workspace that is no readable source: the server waits for none of it, and knows the rest.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use gridfuse_tests::cli::{Directory, directory, gridfuse};
use gridfuse_tests::lsp_client::{Capabilities, Client, uri};
use gridfuse_tests::patience::wait_until;
use gridfuse_tests::workspace;
use serde_json::json;

const CHILD: &str = "__global__ void child(int* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = i;
}
";

const PARENT: &str = "#include \"child.cuh\"
__global__ void parent(int* out, const int* row, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int count = row[v + 1] - row[v];
    if (count > 0) child<<<(count + 127) / 128, 128>>>(out + row[v], count);
}
";

fn start(root: &Path) -> Client {
    let mut client = Client::spawn(workspace::gridfuse_bin(), &["lsp"]);
    client.initialize(Some(root), &Capabilities::default());
    client
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Asks until the server knows of the child's definition, which it reads from disk.
#[track_caller]
fn knows_the_child(client: &mut Client, path: &Path, expected: bool) {
    wait_until("the server knows of the child what it should", || {
        let at = client.find(path, "child<<<") + 1;
        let hover = client.hover(path, at)["contents"]["value"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(!client.stderr().contains("panicked"), "{}", client.stderr());
        hover.contains("no definition found") != expected && hover.contains("launch of `child`")
    });
}

/// What no source should be.
fn oddities(root: &Path) {
    let at = |name: &str| root.join(name);
    fs::write(at("latin.cu"), b"// \xe4\n__global__ void k() {}\n").unwrap();
    fs::write(at("binary.cuh"), [0u8, 159, 146, 150].repeat(1000)).unwrap();
    fs::write(at("nul.h"), b"int a;\0int b;").unwrap();
    pipe(&at("pipe.cu"));
    pipe(&at("pipe.cuh"));
    pipe(&at("a/pipe.cu"));
    pipe(&at("a/gridfuse.toml"));
    pipe(&at("a/compile_commands.json"));
    symlink("/dev/zero", at("zero.cu")).unwrap();
    symlink("/dev/tty", at("a/tty.cuh")).unwrap();
    symlink("/proc/self/mem", at("mem.h")).unwrap();
    symlink(at("self.cu"), at("self.cu")).unwrap();
    symlink(root, at("a/up")).unwrap();
    symlink("..", at("a/parent")).unwrap();
    symlink("nowhere", at("nowhere.cu")).unwrap();
    fs::create_dir(at("directory.cu")).unwrap();
    fs::write(root.join(OsStr::from_bytes(b"\xff\xfe.cu")), "int x;").unwrap();
    fs::write(at("secret.cu"), "int x;").unwrap();
    fs::set_permissions(at("secret.cu"), fs::Permissions::from_mode(0o0)).unwrap();
    fs::create_dir(at("closed")).unwrap();
    fs::write(at("closed/x.cu"), "int x;").unwrap();
    fs::set_permissions(at("closed"), fs::Permissions::from_mode(0o0)).unwrap();
}

/// So that the directory can be removed.
fn open_again(root: &Path) {
    fs::set_permissions(root.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
}

fn workspace_of_oddities() -> Directory {
    let root = directory(&[
        ("main.cu", PARENT.as_bytes()),
        ("child.cuh", CHILD.as_bytes()),
        ("a/x.cu", b"int a;"),
    ]);
    oddities(root.path());
    root
}

#[test]
fn a_workspace_of_oddities() {
    let root = workspace_of_oddities();
    let path = root.file("main.cu");
    let mut client = start(root.path());
    let includes = r#"#include "pipe.cuh"
#include "zero.cu"
#include "self.cu"
#include "directory.cu"
#include "binary.cuh"
#include "a/up/a/up/a/pipe.cu"
#include "/dev/stdin"
#include "secret.cu"
"#;
    client.open(&path, &format!("{includes}{PARENT}"));
    knows_the_child(&mut client, &path, true);
    // The client says of each that it has changed.
    let entries = fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().path());
    let changes: Vec<_> = entries.map(|path| json!({ "uri": uri(&path), "type": 2 })).collect();
    client.notify("workspace/didChangeWatchedFiles", json!({ "changes": changes }));
    for name in ["pipe.cu", "zero.cu", "directory.cu", "a/pipe.cu", "self.cu"] {
        client.open(&root.file(name), "int opened;");
        client.close(&root.file(name));
    }
    // What is read after them is read.
    root.write("child.cuh", b"// gone");
    let changed = json!({ "changes": [{ "uri": uri(&root.file("child.cuh")), "type": 2 }] });
    client.notify("workspace/didChangeWatchedFiles", changed);
    knows_the_child(&mut client, &path, false);
    client.shutdown();
    open_again(root.path());
}

#[test]
fn the_command_line_waits_for_nobody_either() {
    let root = workspace_of_oddities();
    gridfuse(root.path(), &["check", "--deny", "info", "."]).expect_code(1);
    for name in ["pipe.cu", "zero.cu", "self.cu"] {
        let run = gridfuse(root.path(), &["check", name]).expect_code(2);
        assert!(run.stderr.contains(name), "{}", run.story());
    }
    open_again(root.path());
}

#[test]
fn files_that_change_their_kind() {
    let root = directory(&[("main.cu", PARENT.as_bytes()), ("child.cuh", CHILD.as_bytes())]);
    let (path, header) = (root.file("main.cu"), root.file("child.cuh"));
    let mut client = start(root.path());
    client.open(&path, PARENT);
    knows_the_child(&mut client, &path, true);
    let tell = |client: &Client| {
        client.notify(
            "workspace/didChangeWatchedFiles",
            json!({ "changes": [{ "uri": uri(&header), "type": 2 }] }),
        );
    };
    let kinds: [fn(&Path); 4] = [
        |path| fs::create_dir(path).unwrap(),
        pipe,
        |path| symlink(path, path).unwrap(),
        |path| fs::write(path, b"\xff\0").unwrap(),
    ];
    for become_odd in kinds {
        fs::remove_file(&header).unwrap();
        become_odd(&header);
        tell(&client);
        knows_the_child(&mut client, &path, false);
        if header.is_dir() {
            fs::remove_dir(&header).unwrap();
        } else {
            fs::remove_file(&header).unwrap();
        }
        fs::write(&header, CHILD).unwrap();
        tell(&client);
        knows_the_child(&mut client, &path, true);
    }
    // The whole workspace goes.
    fs::remove_dir_all(root.path()).unwrap();
    tell(&client);
    knows_the_child(&mut client, &path, false);
    client.shutdown();
}

#[test]
fn ten_thousand_files() {
    let root = directory(&[("main.cu", PARENT.as_bytes()), ("child.cuh", CHILD.as_bytes())]);
    for number in 0..10_000 {
        let directory = root.path().join(format!("d{}", number / 500));
        fs::create_dir_all(&directory).unwrap();
        fs::write(
            directory.join(format!("f{number}.cu")),
            format!("__device__ int f{number}() {{ return 1; }}\n"),
        )
        .unwrap();
    }
    let path = root.file("main.cu");
    let mut client = start(root.path());
    client.open(&path, PARENT);
    knows_the_child(&mut client, &path, true);
    assert!(
        client
            .diagnostics(&path)
            .iter()
            .any(|found| found["code"] == "serialized-launches")
    );
    client.shutdown();
}

#[test]
fn paths_with_odd_names() {
    let names = [
        "with space",
        "100%",
        "%41",
        "ünïcödé",
        "日本",
        "a#b?c",
        "quote'\"",
        "semi;colon&",
        "-I",
        "$(touch x)",
    ];
    for name in names {
        let root = directory(&[]);
        let below = |file: &str| format!("{name}/{file}");
        root.write(&below("main.cu"), PARENT.as_bytes());
        root.write(&below("child.cuh"), CHILD.as_bytes());
        let path = root.file(&below("main.cu"));
        let mut client = start(root.path());
        client.open(&path, PARENT);
        knows_the_child(&mut client, &path, true);
        assert_eq!(client.diagnostics(&path).len(), 1, "{name}");
        let at = client.find(&path, "child<<<") + 1;
        let actions = client.code_actions(&path, at..at, &[], &[]);
        let threshold = actions
            .iter()
            .find(|action| action["data"]["rewrite"] == "threshold" && action["disabled"].is_null());
        let edit = client.resolve(threshold.expect("an action"))["edit"].clone();
        let encoding = client.encoding();
        let touched = gridfuse_tests::lsp_client::apply_workspace_edit(root.path(), &edit, encoding).unwrap();
        assert!(
            touched.contains(&root.file(&below("gridfuse.cuh"))),
            "{name}: {touched:?}"
        );
        client.shutdown();
        let spelled = format!("./{}", below("main.cu"));
        gridfuse(root.path(), &["check", "--deny", "info", &spelled]).expect_code(1);
    }
}
