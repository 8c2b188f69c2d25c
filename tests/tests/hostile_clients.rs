//! Clients that don't keep to the protocol, and connections that break: the server answers with errors, goes on, or ends; it neither
//! panics nor hangs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use gridfuse_tests::cli::{Directory, directory};
use gridfuse_tests::lsp_client::{Capabilities, Client, PositionEncoding, uri};
use gridfuse_tests::patience::wait_for;
use gridfuse_tests::workspace;
use serde_json::{Value, json};

const PROGRAM: &str = "\
__global__ void child(int* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = i;
}
__global__ void parent(int* out, const int* row, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int count = row[v + 1] - row[v];
    if (count > 0) child<<<(count + 127) / 128, 128>>>(out + row[v], count);
}
int main() { parent<<<1, 32>>>(nullptr, nullptr, 3); }
";

fn start(root: &Path, capabilities: &Capabilities) -> Client {
    let mut client = Client::spawn(workspace::gridfuse_bin(), &["lsp"]);
    client.initialize(Some(root), capabilities);
    client
}

fn program() -> Directory {
    directory(&[("main.cu", PROGRAM.as_bytes())])
}

/// The server still knows the launch of the program.
#[track_caller]
fn lives(client: &mut Client, path: &Path) {
    let at = client.find(path, "child<<<") + 1;
    let hover = client.hover(path, at).to_string();
    assert!(hover.contains("launch of `child`"), "{hover}");
    assert!(!client.stderr().contains("panicked"), "{}", client.stderr());
}

fn change(client: &Client, path: &Path, version: i64, changes: Value) {
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": uri(path), "version": version }, "contentChanges": changes }),
    );
}

#[test]
fn every_request_has_an_answer_before_initialize_and_after_shutdown() {
    let document = json!({ "uri": "file:///x.cu" });
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 1 } });
    let requests = [
        (
            "textDocument/hover",
            json!({ "textDocument": document, "position": range["start"] }),
        ),
        (
            "textDocument/codeAction",
            json!({ "textDocument": document, "range": range, "context": { "diagnostics": [] } }),
        ),
        ("textDocument/codeLens", json!({ "textDocument": document })),
        (
            "textDocument/inlayHint",
            json!({ "textDocument": document, "range": range }),
        ),
        ("textDocument/diagnostic", json!({ "textDocument": document })),
        (
            "textDocument/prepareCallHierarchy",
            json!({ "textDocument": document, "position": range["start"] }),
        ),
        (
            "workspace/executeCommand",
            json!({ "command": "gridfuse.measure", "arguments": [document] }),
        ),
        ("shutdown", Value::Null),
    ];
    let root = program();
    let path = root.file("main.cu");
    let mut client = Client::spawn(workspace::gridfuse_bin(), &["lsp"]);
    for (method, params) in &requests {
        let answer = client.try_request(method, params.clone());
        assert!(answer.is_err(), "{method} before initialize: {answer:?}");
    }
    client.notify(
        "textDocument/didOpen",
        json!({ "textDocument": { "uri": uri(&path), "languageId": "cuda", "version": 1, "text": "int early;" } }),
    );
    client.notify("initialized", json!({}));
    client.initialize(Some(root.path()), &Capabilities::default());
    let again = client.try_request("initialize", json!({ "capabilities": {} }));
    assert!(again.is_err(), "a second initialize: {again:?}");
    client.notify("initialized", json!({}));
    client.open(&path, PROGRAM);
    lives(&mut client, &path);
    assert_eq!(client.request("shutdown", Value::Null), Value::Null);
    for (method, params) in &requests {
        let answer = client.try_request(method, params.clone());
        assert!(answer.is_err(), "{method} after shutdown: {answer:?}");
    }
    change(&client, &path, 9, json!([{ "text": "late" }]));
    assert_eq!(client.exit(), Some(0));
}

#[test]
fn documents_in_any_order() {
    let root = program();
    let path = root.file("main.cu");
    let mut client = start(root.path(), &Capabilities::default());
    let (never, empty) = (root.file("never.cu"), root.file("empty.cu"));
    // Changed, saved and closed without having been opened.
    change(&client, &never, 4, json!([{ "text": "int x;" }]));
    let document = json!({ "textDocument": { "uri": uri(&never) } });
    client.notify("textDocument/didSave", document.clone());
    client.notify("textDocument/didClose", document);
    // Opened twice: the second text counts.
    client.open(&path, "int before;");
    client.open(&path, PROGRAM);
    assert_eq!(client.diagnostics(&path).len(), 1);
    // Closed twice.
    client.open(&empty, "");
    for _ in 0..2 {
        client.notify(
            "textDocument/didClose",
            json!({ "textDocument": { "uri": uri(&empty) } }),
        );
    }
    // Versions that fall, repeat, and are none.
    for version in [7, 7, 3, -1, i64::from(i32::MAX)] {
        change(&client, &path, version, json!([{ "text": PROGRAM }]));
    }
    change(
        &client,
        &path,
        i64::MAX,
        json!([{ "text": "the version is no number of the protocol" }]),
    );
    lives(&mut client, &path);
    client.shutdown();
}

#[test]
fn positions_that_are_none() {
    let root = program();
    let path = root.file("main.cu");
    let text = format!("// ä😀\r\n{PROGRAM}");
    for encoding in [PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32] {
        let capabilities = Capabilities {
            position_encodings: vec![encoding],
            ..Capabilities::default()
        };
        let mut client = start(root.path(), &capabilities);
        client.open(&path, &text);
        let numbers = [0u64, 3, 4, 5, 6, 7, 1_000, u64::from(u32::MAX)];
        for line in [0u64, 1, 9, 13, 99, u64::from(u32::MAX)] {
            for character in numbers {
                let at = json!({ "line": line, "character": character });
                let zero = json!({ "line": 0, "character": 0 });
                client.document_request("textDocument/hover", &path, json!({ "position": at }));
                client.document_request("textDocument/prepareCallHierarchy", &path, json!({ "position": at }));
                for range in [json!({ "start": at, "end": at }), json!({ "start": at, "end": zero })] {
                    let context = json!({ "diagnostics": [] });
                    client.document_request(
                        "textDocument/codeAction",
                        &path,
                        json!({ "range": range, "context": context }),
                    );
                    client.document_request("textDocument/inlayHint", &path, json!({ "range": range }));
                }
            }
        }
        let position = |line: i64, character: i64| json!({ "line": line, "character": character });
        for wrong in [
            position(-1, 0),
            position(0, -1),
            position(0, 1 << 40),
            json!(7),
            json!({ "line": "0" }),
        ] {
            let params = json!({ "textDocument": { "uri": uri(&path) }, "position": wrong });
            assert!(client.try_request("textDocument/hover", params).is_err(), "{wrong}");
        }
        // Edits at such places leave a text; which one is the client's fault.
        let mut version = 2;
        for (line, character) in [(0, 4), (0, 5), (0, 6), (99, 0), (3, 99_999)] {
            let at = position(line, character);
            for range in [
                json!({ "start": at, "end": at }),
                json!({ "start": at, "end": position(0, 0) }),
            ] {
                change(&client, &path, version, json!([{ "range": range, "text": "x" }]));
                version += 1;
            }
        }
        client.document_request("textDocument/hover", &path, json!({ "position": position(3, 9) }));
        change(&client, &path, version, json!([{ "text": text }]));
        lives(&mut client, &path);
        client.shutdown();
    }
}

#[test]
fn addresses_that_are_none() {
    let root = program();
    let path = root.file("main.cu");
    let mut client = start(root.path(), &Capabilities::default());
    client.open(&path, PROGRAM);
    let long = format!("file:///{}/x.cu", "d/".repeat(20_000));
    let addresses = [
        "file:///",
        "file:///dev/zero",
        "file:///dev/stdin",
        "file:///proc/self/mem",
        "file:///%00.cu",
        "file:///%ff%fe.cu",
        "file://host/share/x.cu",
        "file:///a/../../../../etc/passwd",
        "git:/x.cu?%7B%7D",
        "untitled:",
        "x:",
        "",
        "%",
        long.as_str(),
    ];
    for address in addresses {
        let document = json!({ "uri": address, "languageId": "cuda", "version": 1, "text": PROGRAM });
        client.notify("textDocument/didOpen", json!({ "textDocument": document }));
        let position = json!({ "line": 8, "character": 22 });
        let _ = client.try_request(
            "textDocument/hover",
            json!({ "textDocument": { "uri": address }, "position": position }),
        );
        let _ = client.try_request("textDocument/diagnostic", json!({ "textDocument": { "uri": address } }));
        client.notify(
            "workspace/didChangeWatchedFiles",
            json!({ "changes": [{ "uri": address, "type": 2 }] }),
        );
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": address } }));
    }
    lives(&mut client, &path);
    client.shutdown();
}

fn serve() -> Child {
    Command::new(workspace::gridfuse_bin())
        .arg("lsp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[track_caller]
fn end_of(server: &mut Child) -> ExitStatus {
    wait_for(|| "the server goes on".to_owned(), || server.try_wait().unwrap())
}

fn framed(message: &Value) -> String {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "capabilities": {} } })
}

#[test]
fn half_a_message_and_then_nothing() {
    let whole = framed(&initialize());
    let hover = framed(&json!({ "jsonrpc": "2.0", "id": 2, "method": "textDocument/hover", "params": {} }));
    let both = format!("{whole}{hover}");
    let cuts = [0, 1, 14, 18, whole.len() - 1, whole.len() + 5, both.len() - 1];
    for cut in cuts {
        let mut server = serve();
        let mut input = server.stdin.take().unwrap();
        input.write_all(&both.as_bytes()[..cut]).unwrap();
        drop(input);
        assert_eq!(end_of(&mut server).code(), Some(1), "cut at {cut}");
        let mut said = String::new();
        server.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn headers_that_lie() {
    for header in [
        "Content-Length: 99999999999999999999\r\n\r\n",
        "Content-Length: 4294967296\r\n\r\n",
        "Content-Length: -5\r\n\r\n",
        "Content-Length: 0\r\n\r\n",
        "Content-Length: 3\r\nContent-Length: 2\r\n\r\n{}",
        "\0\0\0\0\r\n\r\n",
        "Content-Type: x\r\n\r\n",
    ] {
        let mut server = serve();
        let mut input = server.stdin.take().unwrap();
        // A server that has given up reads no more.
        let _ = input.write_all(header.as_bytes());
        let _ = input.write_all(framed(&initialize()).as_bytes());
        drop(input);
        assert_eq!(end_of(&mut server).code(), Some(1), "{header:?}");
        let mut said = String::new();
        server.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(!said.contains("panicked"), "{header:?}: {said}");
    }
}

/// The client has closed the pipe that it should read from.
#[test]
fn nobody_reads_the_answers() {
    let mut server = serve();
    drop(server.stdout.take());
    let mut input = server.stdin.take().unwrap();
    let _ = input.write_all(framed(&initialize()).as_bytes());
    for id in 2..200 {
        let hover = json!({ "jsonrpc": "2.0", "id": id, "method": "textDocument/hover", "params": {
            "textDocument": { "uri": "file:///x.cu" }, "position": { "line": 0, "character": 0 } } });
        // It may be gone.
        let _ = input.write_all(framed(&hover).as_bytes());
    }
    drop(input);
    assert!(!end_of(&mut server).success());
    let mut said = String::new();
    server.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(!said.contains("panicked"), "{said}");
}

#[cfg(unix)]
#[test]
fn signals_end_the_server() {
    for signal in ["TERM", "INT", "HUP"] {
        let root = program();
        let mut server = serve();
        let pid = server.id().to_string();
        let mut client = Client::over(server.stdout.take().unwrap(), server.stdin.take().unwrap());
        client.initialize(Some(root.path()), &Capabilities::default());
        client.open(&root.file("main.cu"), PROGRAM);
        lives(&mut client, &root.file("main.cu"));
        if signal == "INT" && gridfuse_tests::processes::ignores(2)
            || signal == "HUP" && gridfuse_tests::processes::ignores(1)
        {
            server.kill().unwrap();
            server.wait().unwrap();
            continue;
        }
        let sent = Command::new("kill").args(["-s", signal, &pid]).status().unwrap();
        assert!(sent.success());
        // Not by the signal: it has come to its end by itself.
        assert_eq!(end_of(&mut server).code(), Some(1), "{signal}");
    }
}
