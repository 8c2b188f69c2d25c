//! The commands and settings that editors use, over the real protocol.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use gridfuse_tests::cli::{Directory, gridfuse};
use gridfuse_tests::lsp_client::{Capabilities, Client, apply_workspace_edit, uri};
use gridfuse_tests::workspace;
use serde_json::{Value, json};

/// A server with `bfs.cu` open.
fn bfs(options: Value) -> (Directory, Client, PathBuf) {
    let root = Directory::copy_of(&workspace::root().join("tests/corpus"));
    let mut client = Client::spawn(workspace::gridfuse_bin(), &["lsp"]);
    let capabilities = Capabilities {
        change_annotations: true,
        pull_diagnostics: true,
        ..Capabilities::default()
    };
    client.initialize_with(Some(root.path()), &capabilities, options);
    let path = root.file("bfs.cu");
    client.open(&path, &root.read("bfs.cu"));
    (root, client, path)
}

fn execute(client: &mut Client, command: &str, argument: Value) -> Value {
    client.request(
        "workspace/executeCommand",
        json!({ "command": command, "arguments": [argument] }),
    )
}

#[test]
fn the_launch_graph_leads_to_the_source() {
    let (_root, mut client, path) = bfs(Value::Null);
    let drawn = execute(&mut client, "gridfuse.graph", json!({ "uri": uri(&path) }));
    let svg = drawn["svg"].as_str().unwrap();
    let nodes = drawn["nodes"].as_array().unwrap();
    for (index, node) in nodes.iter().enumerate() {
        assert!(svg.contains(&format!("data-node=\"{index}\"")), "{svg}");
        let label = node["label"].as_str().unwrap();
        let name = label.rsplit("::").next().unwrap();
        let text = client.text(&path).to_owned();
        let range = client.encoding().bytes(&text, &node["location"]["range"]).unwrap();
        assert_eq!(&text[range], name);
        assert_eq!(node["location"]["uri"], uri(&path));
        let findings = node["findings"].as_str().unwrap();
        assert!(
            findings.is_empty() || svg.contains(&format!("<title>{findings}</title>")),
            "{svg}"
        );
    }
    assert!(
        nodes
            .iter()
            .any(|node| node["findings"].as_str().unwrap().contains("warning"))
    );
    assert!(drawn["mermaid"].as_str().unwrap().starts_with("flowchart"));
    let named = |name: &str| nodes.iter().position(|node| node["label"] == name).unwrap();
    let launch = json!({
        "from": named("bfs_level"),
        "to": named("expand"),
        "count": "up to blockDim.x * gridDim.x per grid",
        "certain": true,
    });
    let launches = drawn["launches"].as_array().unwrap();
    assert_eq!(
        launches.iter().filter(|one| **one == launch).count(),
        1,
        "{launches:#?}"
    );
    let unknown = client.try_request(
        "workspace/executeCommand",
        json!({ "command": "gridfuse.graph", "arguments": [{ "uri": "file:///no/such.cu" }] }),
    );
    assert!(unknown.unwrap_err().message.contains("not known"));
    client.shutdown();
}

#[test]
fn rewrites_one_after_the_other_are_one_edit() {
    let (root, mut client, path) = bfs(Value::Null);
    let text = client.text(&path).to_owned();
    let line_with = |part: &str| text.lines().position(|line| line.contains(part)).unwrap();
    let (line, head) = (line_with("expand<<<"), line_with("void bfs_level("));
    for argument in [
        json!({ "uri": uri(&path), "rewrites": "threshold+aggregate-block" }),
        json!({ "uri": uri(&path), "rewrites": "threshold + aggregate-block", "line": line }),
        json!({ "uri": uri(&path), "rewrites": "threshold+aggregate-block", "line": head }),
    ] {
        let rewritten = execute(&mut client, "gridfuse.rewrite", argument);
        let assumptions = rewritten["assumptions"].as_array().unwrap();
        assert!(
            assumptions.iter().any(|a| a.as_str().unwrap().contains("independent")),
            "{assumptions:?}"
        );
        let described = rewritten["edit"]["changeAnnotations"]["assumptions"]["description"].as_str();
        assert!(described.unwrap().contains("independent"), "{described:?}");
        let copy = Directory::copy_of(root.path());
        let edit = rewritten["edit"].to_string().replace(
            uri(root.path()).trim_end_matches('/'),
            uri(copy.path()).trim_end_matches('/'),
        );
        let edit: Value = serde_json::from_str(&edit).unwrap();
        apply_workspace_edit(copy.path(), &edit, client.encoding()).unwrap();
        // The command line comes to the same.
        gridfuse(
            root.path(),
            &[
                "rewrite",
                "bfs.cu",
                "--at",
                &(line + 1).to_string(),
                "--apply",
                "threshold,aggregate-block",
                "--output",
                "out",
            ],
        )
        .expect_code(0);
        assert_eq!(copy.read("bfs.cu"), root.read("out/bfs.cu"));
        assert_eq!(copy.read("gridfuse.cuh"), root.read("out/gridfuse.cuh"));
        fs::remove_dir_all(root.file("out")).unwrap();
    }
    for (argument, part) in [
        (
            json!({ "uri": uri(&path), "rewrites": "faster" }),
            "no rewrite is called",
        ),
        (
            json!({ "uri": uri(&path), "rewrites": "coarsen", "line": 0 }),
            "no launch to rewrite",
        ),
        (
            json!({ "uri": uri(&path), "rewrites": "aggregate-malloc" }),
            "allocates no memory",
        ),
        (json!({ "uri": uri(&path) }), "rewrites"),
    ] {
        let params = json!({ "command": "gridfuse.rewrite", "arguments": [argument] });
        let error = client.try_request("workspace/executeCommand", params).unwrap_err();
        assert!(error.message.contains(part), "{error}");
    }
    client.shutdown();
}

#[test]
fn severities_of_the_editor_count() {
    let codes = |client: &mut Client, path: &PathBuf| -> BTreeSet<(String, i64)> {
        let report = client.pull_diagnostics(path, None);
        let items = report["items"].as_array().unwrap().iter();
        items
            .map(|item| {
                (
                    item["code"].as_str().unwrap().to_owned(),
                    item["severity"].as_i64().unwrap(),
                )
            })
            .collect()
    };
    let serialized = ("serialized-launches".to_owned(), 1);
    let settings = json!({ "severity": { "serialized-launches": "error" } });
    let (_root, mut client, path) = bfs(settings);
    // The client is asked again once it's ready; it answers with what it has.
    client.set_configuration("gridfuse", json!({ "severity": { "serialized-launches": "error" } }));
    assert!(codes(&mut client, &path).contains(&serialized));
    let off = json!({ "settings": { "gridfuse": { "severity": { "serialized-launches": "off" } } } });
    client.notify("workspace/didChangeConfiguration", off);
    // The first settings may make the server ask for a refresh too, and on a busy machine it does so only now.
    loop {
        client.wait_server_request("workspace/diagnostic/refresh", |_| true);
        let left = codes(&mut client, &path);
        if left.iter().all(|(code, _)| *code != serialized.0) {
            break;
        }
    }
    client.shutdown();
}

#[test]
fn an_editor_takes_back_what_a_command_has_made() {
    let root = Directory::new();
    let before = fs::read_to_string(workspace::root().join("tests/corpus/bt_malloc.cu")).unwrap();
    let path = root.write("bt_malloc.cu", before.as_bytes());
    let place = "    place<<<(count + 127) / 128, 128>>>(line.vertices";
    let line = before.lines().position(|line| line.starts_with(place)).unwrap() + 1;
    // The code doesn't say what that was made of: the command remembers it.
    let state = root.file("state");
    let applied = Command::new(workspace::gridfuse_bin())
        .args(["rewrite", "bt_malloc.cu", "--apply", "aggregate-malloc", "--in-place"])
        .args(["--at", &line.to_string()])
        .current_dir(root.path())
        .env("XDG_STATE_HOME", &state)
        .output()
        .unwrap();
    assert!(applied.status.success(), "{applied:?}");
    let made = root.read("bt_malloc.cu");
    assert_ne!(made, before);
    let mut back = Vec::new();
    for state in [state, root.file("another")] {
        let mut server = Command::new(workspace::gridfuse_bin());
        server.arg("lsp").env("XDG_STATE_HOME", state);
        let mut client = Client::spawn_command(server);
        client.initialize(Some(root.path()), &Capabilities::default());
        client.open(&path, &made);
        let start = made.find("place<<<").unwrap();
        let actions = client.code_actions(&path, start..start, &[], &[]);
        let found = actions.iter().find(|action| {
            let title = action["title"].as_str().unwrap_or_default();
            action["disabled"].is_null() && title.starts_with("Go back")
        });
        back.push(found.map(|action| {
            let copy = Directory::copy_of(root.path());
            let edit = action["edit"].to_string().replace(
                uri(root.path()).trim_end_matches('/'),
                uri(copy.path()).trim_end_matches('/'),
            );
            let edit: Value = serde_json::from_str(&edit).unwrap();
            apply_workspace_edit(copy.path(), &edit, client.encoding()).unwrap();
            copy.read("bt_malloc.cu")
        }));
        client.shutdown();
    }
    assert_eq!(back, [Some(before), None]);
}
