//! The client against a scripted server: a thread at the other end of two pipes.

use super::*;

/// Starts a client whose server is `script`; the script gets each message and returns its answers.
fn client(mut script: impl FnMut(&Value) -> Vec<Value> + Send + 'static) -> Client {
    let (server_reads, client_writes) = io::pipe().unwrap();
    let (client_reads, mut server_writes) = io::pipe().unwrap();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(server_reads);
        while let Ok(Some(message)) = read_message(&mut reader) {
            for mut answer in script(&message) {
                answer["jsonrpc"] = json!("2.0");
                let body = answer.to_string();
                let _ = write!(
                    server_writes,
                    "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n\
                     content-length: {}\r\n\r\n{body}",
                    body.len()
                );
            }
        }
    });
    Client::over(client_reads, client_writes)
}

/// The message of the panic of `f`.
fn panic_message(f: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_err();
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

fn file() -> PathBuf {
    std::env::temp_dir().join("ä b.cu")
}

#[test]
fn requests_find_their_responses_in_any_order() {
    let mut held = Vec::new();
    let mut client = client(move |message| {
        held.push(json!({ "id": message["id"], "result": message["method"] }));
        if held.len() == 2 {
            held.drain(..).rev().collect()
        } else {
            Vec::new()
        }
    });
    let one = client.send_request("one", Value::Null);
    assert_eq!(client.poll_response(one), None);
    let two = client.send_request("two", Value::Null);
    assert_eq!(client.wait_response(one), Ok(json!("one")));
    assert_eq!(client.wait_response(two), Ok(json!("two")));
}

#[test]
fn initialize_takes_the_encoding_of_the_server() {
    let mut client = client(|message| match message["method"].as_str() {
        Some("initialize") => {
            let offered = &message["params"]["capabilities"]["general"]["positionEncodings"];
            assert_eq!(offered, &json!(["utf-8", "utf-16"]));
            vec![json!({
                "id": message["id"],
                "result": { "capabilities": { "positionEncoding": offered[0] } },
            })]
        }
        Some("initialized") => vec![json!({ "method": "ready", "params": {} })],
        _ => Vec::new(),
    });
    assert_eq!(client.encoding(), PositionEncoding::Utf16);
    client.initialize(None, &Capabilities::default());
    assert_eq!(client.encoding(), PositionEncoding::Utf8);
    client.wait_notification("ready", |_| true);
}

#[test]
fn capabilities_are_what_was_selected() {
    let minimal = Capabilities::minimal().to_json();
    assert!(minimal["general"].get("positionEncodings").is_none());
    assert!(minimal["textDocument"].get("diagnostic").is_none());
    assert!(minimal["textDocument"]["codeAction"].get("resolveSupport").is_none());
    let full = Capabilities {
        pull_diagnostics: true,
        extra: json!({ "window": { "showDocument": { "support": true } } }),
        ..Capabilities::default()
    }
    .to_json();
    assert!(full["textDocument"]["diagnostic"].is_object());
    assert_eq!(full["window"]["showDocument"]["support"], true);
    assert_eq!(full["window"]["workDoneProgress"], true);
    assert_eq!(
        full["textDocument"]["codeAction"]["resolveSupport"]["properties"],
        json!(["edit"])
    );
}

#[test]
fn requests_of_the_server_are_answered() {
    let (answers, answered) = std::sync::mpsc::channel();
    let client = client(move |message| {
        if message["method"] == "start" {
            return vec![
                json!({ "id": "a", "method": "workspace/configuration",
                    "params": { "items": [{ "section": "gridfuse" }, { "section": "other" }] } }),
                json!({ "id": "b", "method": "workspace/inlayHint/refresh" }),
                json!({ "id": "c", "method": "no/such/method" }),
            ];
        }
        answers.send(message.clone()).unwrap();
        Vec::new()
    });
    client.set_configuration("gridfuse", json!({ "threshold": 64 }));
    client.notify("start", Value::Null);
    let next = || answered.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(next()["result"], json!([{ "threshold": 64 }, null]));
    let refresh = next();
    assert_eq!((&refresh["id"], &refresh["result"]), (&json!("b"), &Value::Null));
    assert_eq!(next()["error"]["code"], ResponseError::METHOD_NOT_FOUND);
    client.wait_server_request("workspace/inlayHint/refresh", |_| true);
    assert_eq!(client.server_requests()[0].0, "workspace/configuration");
}

#[test]
fn diagnostics_are_those_of_the_current_version() {
    let mut client = client(|message| {
        let document = &message["params"]["textDocument"];
        let text = &message["params"]["contentChanges"][0]["text"];
        // The editor's way of writing the URI: escaped differently than ours.
        let uri = document["uri"].as_str().unwrap_or_default().replace("%20b", "%20%62");
        match message["method"].as_str() {
            Some("textDocument/didChange") => vec![
                json!({ "method": "textDocument/publishDiagnostics",
                    "params": { "uri": uri, "version": 1, "diagnostics": ["stale"] } }),
                json!({ "method": "textDocument/publishDiagnostics",
                    "params": { "uri": uri, "version": document["version"], "diagnostics": [text] } }),
            ],
            _ => Vec::new(),
        }
    });
    let path = file();
    client.open(&path, "äx y\n");
    client.replace(&path, "x", "zz");
    assert_eq!(client.text(&path), "äzz y\n");
    assert_eq!(client.diagnostics(&path), [json!("zz")]);
    client.change(&path, &[(0..2, ""), (0..2, "k")]);
    assert_eq!(client.text(&path), "k y\n");
    assert_eq!(client.version(&path), 3);
    assert_eq!(client.diagnostics(&path), [json!("")]);
    assert_eq!(client.published(&path).len(), 4);
}

#[test]
fn changes_count_columns_in_the_agreed_encoding() {
    let (changes, seen) = std::sync::mpsc::channel();
    let mut client = client(move |message| {
        if message["method"] == "textDocument/didChange" {
            changes.send(message["params"]["contentChanges"].clone()).unwrap();
        }
        Vec::new()
    });
    let path = file();
    client.open(&path, "a\n𝄞x\n");
    client.replace(&path, "x", "y");
    let change = seen.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(change[0]["range"]["start"], json!({ "line": 1, "character": 2 }));
    assert_eq!(change[0]["range"]["end"], json!({ "line": 1, "character": 3 }));
}

#[test]
fn a_silent_server_makes_a_helpful_panic() {
    let mut client = client(|_| vec![json!({ "method": "window/logMessage", "params": "busy" })]);
    client.set_timeout(Duration::from_millis(50));
    let message = panic_message(|| {
        client.request("textDocument/hover", json!({}));
    });
    for part in ["the response to textDocument/hover", "nothing came in 50ms", "busy"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn an_answer_that_is_an_error() {
    let mut client =
        client(|message| vec![json!({ "id": message["id"], "error": { "code": -32800, "message": "cancelled" } })]);
    let id = client.send_request("slow", Value::Null);
    client.cancel(id);
    let error = client.wait_response(id).unwrap_err();
    assert_eq!(error.code, ResponseError::REQUEST_CANCELLED);
}

#[cfg(unix)]
#[test]
fn a_crashed_server_is_quoted() {
    let mut client = Client::spawn(
        Path::new("/bin/sh"),
        &["-c", "echo 'thread panicked: boom' >&2; exit 101"],
    );
    let message = panic_message(|| {
        client.request("initialize", json!({}));
    });
    assert!(message.contains("boom"), "{message}");
}

#[cfg(unix)]
#[test]
fn printing_to_standard_output_is_noticed() {
    let mut client = Client::spawn(Path::new("/bin/sh"), &["-c", "echo debugging; sleep 5"]);
    let message = panic_message(|| {
        client.request("initialize", json!({}));
    });
    assert!(message.contains("not a header line"), "{message}");
}

#[cfg(unix)]
#[test]
fn the_exit_code_is_the_servers() {
    let mut client = Client::spawn(Path::new("/bin/sh"), &["-c", "read line; exit 3"]);
    assert_eq!(client.exit(), Some(3));
    let mut client = Client::spawn(Path::new("/bin/sh"), &["-c", "cat >/dev/null; exit 1"]);
    assert_eq!(client.hang_up(), Some(1));
    let mut client = Client::spawn(Path::new("/bin/sh"), &["-c", "exec sleep 60"]);
    client.set_timeout(Duration::from_millis(50));
    let message = panic_message(|| {
        client.exit();
    });
    assert!(message.contains("still running"), "{message}");
}

#[test]
fn positions_in_every_encoding() {
    let text = "a\r\nä𝄞b\n";
    for (encoding, column) in [
        (PositionEncoding::Utf8, 6),
        (PositionEncoding::Utf16, 3),
        (PositionEncoding::Utf32, 2),
    ] {
        let b = text.find('b').unwrap();
        let position = json!({ "line": 1, "character": column });
        assert_eq!(encoding.position(text, b), position);
        assert_eq!(encoding.offset(text, &position), Ok(b));
        let past = json!({ "line": 0, "character": 99 });
        assert_eq!(encoding.offset(text, &past), Ok(1), "the end, before the line break");
        assert_eq!(
            encoding.offset(text, &json!({ "line": 2, "character": 0 })),
            Ok(text.len())
        );
        assert!(encoding.offset(text, &json!({ "line": 3, "character": 0 })).is_err());
    }
    let inside = json!({ "line": 1, "character": 2 });
    assert!(PositionEncoding::Utf16.offset(text, &inside).is_err());
    assert!(PositionEncoding::Utf16.offset(text, &json!({ "line": "x" })).is_err());
}

fn edit(range: [[usize; 2]; 2], new: &str) -> Value {
    let position = |[line, character]: [usize; 2]| json!({ "line": line, "character": character });
    json!({ "range": { "start": position(range[0]), "end": position(range[1]) }, "newText": new })
}

#[test]
fn text_edits_are_applied_to_the_original() {
    let edits = [
        edit([[1, 0], [1, 1]], "B"),
        edit([[0, 0], [0, 0]], "1"),
        edit([[0, 0], [0, 0]], "2"),
    ];
    let apply = |edits: &[Value]| apply_text_edits("a\nb\n", edits, PositionEncoding::Utf16);
    assert_eq!(apply(&edits), Ok("12a\nB\n".to_owned()));
    let overlapping = [edit([[0, 0], [1, 1]], ""), edit([[1, 0], [1, 1]], "")];
    assert!(apply(&overlapping).unwrap_err().contains("overlap"));
    assert!(apply(&[json!({})]).is_err());
}

#[test]
fn workspace_edits_change_and_create_files() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let (main, header) = (root.join("main.cu"), root.join("include/gridfuse.cuh"));
    fs::write(&main, "a\n").unwrap();
    let create = json!({ "kind": "create", "uri": uri(&header), "options": { "ignoreIfExists": true } });
    let changes = json!({ "documentChanges": [
        create,
        { "textDocument": { "uri": uri(&header), "version": null },
          "edits": [edit([[0, 0], [0, 0]], "#pragma once\n")] },
        { "textDocument": { "uri": uri(&main), "version": 1 },
          "edits": [edit([[0, 0], [0, 1]], "b")] },
    ] });
    let apply = |edit: &Value| apply_workspace_edit(root, edit, PositionEncoding::Utf16);
    assert_eq!(apply(&changes), Ok(vec![header.clone(), main.clone()]));
    assert_eq!(fs::read_to_string(&header).unwrap(), "#pragma once\n");
    assert_eq!(fs::read_to_string(&main).unwrap(), "b\n");
    assert_eq!(apply(&json!({ "documentChanges": [create] })), Ok(Vec::new()));

    let simple = json!({ "changes": { uri(&main): [edit([[0, 1], [0, 1]], "c")] } });
    assert_eq!(apply(&simple), Ok(vec![main.clone()]));
    assert_eq!(fs::read_to_string(&main).unwrap(), "bc\n");

    let moved = root.join("moved.cu");
    let rename = json!({ "documentChanges": [
        { "kind": "rename", "oldUri": uri(&main), "newUri": uri(&moved) },
        { "kind": "delete", "uri": uri(&header) },
    ] });
    apply(&rename).unwrap();
    assert!(moved.is_file() && !main.exists() && !header.exists());

    let outside = json!({ "changes": { "file:///elsewhere/x.cu": [] } });
    assert!(apply(&outside).unwrap_err().contains("outside"));
    let again = json!({ "documentChanges": [{ "kind": "create", "uri": uri(&moved) }] });
    assert!(apply(&again).unwrap_err().contains("there already"));
    assert!(apply(&json!({})).is_err());
}
