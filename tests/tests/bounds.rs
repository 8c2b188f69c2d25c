//! Nothing outside of the workspace is written, whatever an include, a compile command, a link or a client says.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use gridfuse_tests::cli::{Directory, directory, gridfuse};
use gridfuse_tests::lsp_client::{Capabilities, Client, uri};
use gridfuse_tests::patience::wait_until;
use gridfuse_tests::workspace;
use serde_json::{Value, json};

const CHILD: &str = "__global__ void child(int* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = i;
}
";

fn parent(include: &str) -> String {
    format!(
        "#include \"{include}\"
__global__ void parent(int* out, const int* row, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int count = row[v + 1] - row[v];
    if (count > 0) child<<<(count + 127) / 128, 128>>>(out + row[v], count);
}}
int main() {{ parent<<<1, 32>>>(nullptr, nullptr, 3); }}
"
    )
}

/// A workspace beside a library; `include` is how the one includes the other.
fn two(include: &str) -> Directory {
    let root = directory(&[
        ("workspace/.git/HEAD", b""),
        ("workspace/main.cu", parent(include).as_bytes()),
        ("library/child.cuh", CHILD.as_bytes()),
    ]);
    symlink(root.file("library"), root.file("workspace/linked")).unwrap();
    symlink(root.file("library/child.cuh"), root.file("workspace/link.cuh")).unwrap();
    root
}

/// The ways from the workspace to the library.
const INCLUDES: [&str; 3] = ["../library/child.cuh", "linked/child.cuh", "link.cuh"];

/// Names of what lies below a directory, with what is in the files.
fn content(directory: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = entries
        .map(|path| {
            (
                path.display().to_string(),
                fs::read_to_string(&path).unwrap_or_default(),
            )
        })
        .collect();
    all.sort();
    all
}

fn start(root: &Path) -> Client {
    let mut client = Client::spawn(workspace::gridfuse_bin(), &["lsp"]);
    client.initialize(Some(root), &Capabilities::default());
    client
}

/// The files that an edit names.
fn named(edit: &Value) -> Vec<String> {
    let changes = edit["documentChanges"].as_array().into_iter().flatten();
    let of = |change: &Value| {
        let uri = change["uri"].as_str().or(change["textDocument"]["uri"].as_str());
        uri.unwrap_or_default().to_owned()
    };
    changes.map(of).collect()
}

#[test]
fn edits_stay_in_the_workspace() {
    for include in INCLUDES {
        let root = two(include);
        let path = root.file("workspace/main.cu");
        let mut client = start(&root.file("workspace"));
        client.open(&path, &parent(include));
        let (mut edited, mut refused) = (0, 0);
        // What touches the workspace alone can be done. What is best depends on the header, which may be read between offer and edit.
        wait_until("an edit is refused, and one is made", || {
            let at = client.find(&path, "child<<<") + 1;
            for action in client.code_actions(&path, at..at, &[], &[]) {
                if action["data"].is_null() || !action["disabled"].is_null() {
                    continue;
                }
                match client.try_request("codeAction/resolve", action) {
                    Ok(action) => {
                        edited += 1;
                        let outside = named(&action["edit"]);
                        let inside = uri(&root.file("workspace"));
                        assert!(
                            outside
                                .iter()
                                .all(|name| name.starts_with(&inside) && !name.contains("/link")),
                            "{include}: {outside:?}"
                        );
                    }
                    Err(error) if error.message.contains("outside of the workspace") => refused += 1,
                    // The header may not be read yet.
                    Err(error) => assert!(error.message.contains("cannot be applied"), "{error:?}"),
                }
            }
            let argument = json!({ "uri": uri(&path), "rewrites": "aggregate-block" });
            let asked = json!({ "command": "gridfuse.rewrite", "arguments": [argument] });
            match client.try_request("workspace/executeCommand", asked) {
                Ok(answer) => panic!("{include}: {answer:#}"),
                Err(error) if error.message.contains("outside of the workspace") => refused += 1,
                Err(_) => {}
            }
            refused > 0 && edited > 0
        });
        client.shutdown();
    }
}

#[test]
fn an_open_document_is_edited_wherever_it_is() {
    let root = two(INCLUDES[0]);
    let path = root.file("workspace/main.cu");
    let mut client = start(&root.file("workspace"));
    client.open(&path, &parent(INCLUDES[0]));
    client.open(&root.file("library/child.cuh"), CHILD);
    let argument = json!({ "uri": uri(&path), "rewrites": "serialize" });
    let answer = client.request(
        "workspace/executeCommand",
        json!({ "command": "gridfuse.rewrite", "arguments": [argument] }),
    );
    assert!(named(&answer["edit"]).contains(&uri(&path)), "{answer:#}");
    client.shutdown();
}

#[test]
fn the_command_line_stays_in_the_workspace() {
    for include in INCLUDES {
        let root = two(include);
        let here = root.file("workspace");
        let before = content(&root.file("library"));
        let run = gridfuse(
            &here,
            &[
                "rewrite",
                "main.cu",
                "--at",
                "6",
                "--apply",
                "aggregate-block",
                "--in-place",
            ],
        );
        assert_eq!(content(&root.file("library")), before, "{}", run.story());
        assert_eq!(
            fs::read_to_string(here.join("main.cu")).unwrap(),
            parent(include),
            "all or none"
        );
        assert!(
            run.code == Some(2) && run.stderr.contains("outside of the workspace"),
            "{}",
            run.story()
        );
        gridfuse(&here, &["check", "--fix", "main.cu"]);
        assert_eq!(content(&root.file("library")), before);
    }
}

#[test]
fn output_stays_in_its_directory() {
    let root = directory(&[
        ("main.cu", (CHILD.to_owned() + &parent("none.h")).as_bytes()),
        ("elsewhere/x", b""),
    ]);
    fs::create_dir(root.file("out")).unwrap();
    symlink(root.file("elsewhere/main.cu"), root.file("out/main.cu")).unwrap();
    let run = gridfuse(
        root.path(),
        &[
            "rewrite",
            "main.cu",
            "--at",
            "10",
            "--apply",
            "serialize",
            "--output",
            "out",
        ],
    );
    assert_eq!(content(&root.file("elsewhere")).len(), 1, "{}", run.story());
    assert!(
        run.code == Some(2) && run.stderr.contains("outside of the workspace"),
        "{}",
        run.story()
    );
    fs::remove_file(root.file("out/main.cu")).unwrap();
    gridfuse(
        root.path(),
        &[
            "rewrite",
            "main.cu",
            "--at",
            "10",
            "--apply",
            "serialize",
            "--output",
            "out",
        ],
    )
    .expect_code(0);
    assert!(root.file("out/main.cu").is_file());
}
