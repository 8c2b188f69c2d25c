//! The language server as an editor meets it: real messages to the real binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::cell::RefCell;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use gridfuse_tests::cli::{Directory, directory, files_of, gridfuse};
use gridfuse_tests::hostile::measure::cost;
use gridfuse_tests::lsp_client::{Capabilities, Client, PositionEncoding, ResponseError, apply_workspace_edit, uri};
use gridfuse_tests::nvcc::Nvcc;
use gridfuse_tests::patience::{wait_for, wait_until};
use gridfuse_tests::workspace;
use serde_json::{Value, json};

const LAUNCH: &str = "expand<<<(count + 127) / 128, 128>>>(col, dist, deepest, level, begin, count)";

/// A small program whose launch is serialized.
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

const SMALL_LAUNCH: &str = "child<<<(count + 127) / 128, 128>>>(out + row[v], count)";

fn utf8() -> Capabilities {
    Capabilities::default()
}

fn utf16() -> Capabilities {
    Capabilities {
        position_encodings: vec![PositionEncoding::Utf16],
        ..Capabilities::default()
    }
}

fn start(root: &Path, capabilities: &Capabilities) -> Client {
    let mut client = Client::spawn(workspace::gridfuse_bin(), &["lsp"]);
    client.initialize(Some(root), capabilities);
    client
}

fn corpus() -> Directory {
    Directory::copy_of(&workspace::root().join("tests/corpus"))
}

/// The text that a diagnostic marks.
fn marked<'a>(client: &Client, text: &'a str, diagnostic: &Value) -> &'a str {
    &text[client
        .encoding()
        .bytes(text, &diagnostic["range"])
        .expect("a range of the text")]
}

fn hover_text(client: &mut Client, path: &Path, needle: &str) -> String {
    let offset = client.find(path, needle) + 1;
    client.hover(path, offset)["contents"]["value"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Asks until the hover fulfils the condition: what lies on disk is read a little later.
#[track_caller]
fn eventually_hover(client: &mut Client, path: &Path, needle: &str, condition: impl Fn(&str) -> bool) -> String {
    let last = RefCell::new(String::new());
    wait_for(
        || format!("the hover stays\n{}", last.borrow()),
        || {
            let text = hover_text(client, path, needle);
            last.replace(text.clone());
            condition(&text).then_some(text)
        },
    )
}

/// The seconds of processor time that the server has taken.
fn taken(client: &Client) -> f64 {
    cost(client.process_id().expect("a process")).expect("a server").cpu
}

/// The actions for the launch `needle`.
fn actions_at(client: &mut Client, path: &Path, needle: &str) -> Vec<Value> {
    let at = client.find(path, needle) + 1;
    client.code_actions(path, at..at, &[], &[])
}

#[track_caller]
fn titled<'a>(actions: &'a [Value], title: &str) -> &'a Value {
    let found = actions
        .iter()
        .find(|a| a["title"].as_str().is_some_and(|t| t.starts_with(title)));
    found.unwrap_or_else(|| panic!("no action `{title}` in {actions:#?}"))
}

#[test]
fn encodings_are_negotiated() {
    let root = Directory::new();
    for (offered, agreed) in [
        (vec![PositionEncoding::Utf8, PositionEncoding::Utf16], "utf-8"),
        (vec![PositionEncoding::Utf16, PositionEncoding::Utf8], "utf-16"),
        (vec![PositionEncoding::Utf16], "utf-16"),
        (vec![], "utf-16"),
    ] {
        let mut client = Client::spawn(workspace::gridfuse_bin(), &["lsp", "--stdio"]);
        let capabilities = Capabilities {
            position_encodings: offered.clone(),
            ..Capabilities::default()
        };
        let result = client.initialize(Some(root.path()), &capabilities);
        let chosen = result["capabilities"]["positionEncoding"]
            .as_str()
            .unwrap_or("utf-16")
            .to_owned();
        // Either order is the server's choice, as long as it was offered.
        assert!(
            offered.iter().any(|o| o.as_str() == chosen) || chosen == "utf-16",
            "{offered:?}: {chosen}"
        );
        if offered.len() == 1 || offered.is_empty() {
            assert_eq!(chosen, agreed);
        }
        assert_eq!(result["serverInfo"]["name"], "gridfuse");
        client.shutdown();
    }
}

#[test]
fn diagnostics_and_hover_of_the_corpus() {
    for capabilities in [utf8(), utf16()] {
        let root = corpus();
        let mut client = start(root.path(), &capabilities);
        let path = root.file("bfs.cu");
        client.open(&path, &root.read("bfs.cu"));
        let found = client.diagnostics(&path);
        let codes: Vec<&Value> = found.iter().map(|diagnostic| &diagnostic["code"]).collect();
        assert_eq!(codes, ["serialized-launches", "host-iteration"], "{found:#?}");
        assert_eq!(found[0]["source"], "gridfuse");
        assert_eq!(found[0]["severity"], 2);
        assert_eq!(marked(&client, client.text(&path), &found[0]), LAUNCH);
        let published = client.published(&path);
        assert_eq!(published.last().expect("a publication").version, Some(1));

        let hover = hover_text(&mut client, &path, LAUNCH);
        for part in [
            "launch of `expand`",
            "in `bfs_level`: each thread that gets here launches it",
            "`count > 0`",
            "| `begin` |",
            "Collect launches per block",
        ] {
            assert!(hover.contains(part), "{part}: {hover}");
        }
        let kernel = hover_text(&mut client, &path, "bfs_level(const");
        assert!(
            kernel.contains("kernel `bfs_level`") && kernel.contains("Launched from"),
            "{kernel}"
        );
        let nothing = client.find(&path, "#include");
        assert_eq!(client.hover(&path, nothing), Value::Null);

        // A newer version is answered with its number.
        client.replace(&path, "if (count > 0)", "if (count >  0)");
        assert_eq!(client.diagnostics(&path).len(), 2);
        assert_eq!(client.published(&path).last().expect("a publication").version, Some(2));
        client.replace(&path, LAUNCH, "dist[0] = 1");
        // Without the launch, the loop of the host is what is left to say.
        let left = client.diagnostics(&path);
        assert_eq!(
            left.iter().map(|found| &found["code"]).collect::<Vec<_>>(),
            ["host-iteration"]
        );
        client.shutdown();
    }
}

#[test]
fn diagnostics_are_pulled() {
    let root = corpus();
    let capabilities = Capabilities {
        pull_diagnostics: true,
        ..utf8()
    };
    let mut client = start(root.path(), &capabilities);
    assert!(client.server_capabilities()["diagnosticProvider"].is_object());
    let path = root.file("sssp.cu");
    client.open(&path, &root.read("sssp.cu"));
    let report = client.pull_diagnostics(&path, None);
    assert_eq!(report["kind"], "full");
    assert_eq!(report["items"][0]["code"], "serialized-launches");
    let id = report["resultId"].as_str().expect("a result id").to_owned();
    let again = client.pull_diagnostics(&path, Some(&id));
    assert_eq!((&again["kind"], &again["resultId"]), (&json!("unchanged"), &json!(id)));
    client.change(&path, &[(0..0, "\n")]);
    let moved = client.pull_diagnostics(&path, Some(&id));
    assert_eq!(moved["kind"], "full");
    let line = |report: &Value| report["items"][0]["range"]["start"]["line"].as_u64().expect("a line");
    assert_eq!(line(&moved), line(&report) + 1);
    assert!(
        client.published(&path).is_empty(),
        "nothing is pushed to a client that pulls"
    );
    client.shutdown();
}

#[test]
fn the_action_and_the_command_line_agree() {
    for (capabilities, file, launch) in [(utf8(), "bfs.cu", LAUNCH), (utf16(), "sssp.cu", "relax<<<")] {
        // `threshold` alone leaves the grids that it doesn't run in line, and their finding with them.
        for (id, title, kind) in [
            ("aggregate-grid", "Collect launches per grid", "quickfix"),
            ("aggregate-block", "Collect launches per block", "quickfix"),
            ("threshold", "Run small grids as a loop", "refactor.rewrite.threshold"),
            ("fire-and-forget", "Launch into the fire-and-forget stream", "quickfix"),
        ] {
            let edited = corpus();
            let mut client = start(edited.path(), &capabilities);
            let path = edited.file(file);
            client.open(&path, &edited.read(file));
            let actions = actions_at(&mut client, &path, launch);
            let listed = gridfuse(edited.path(), &["list", "--format", "json"]).json();
            let listed = listed["rewrites"]
                .as_array()
                .unwrap()
                .iter()
                .find(|r| r["id"] == id)
                .unwrap()
                .clone();
            let title = listed["title"].as_str().unwrap_or(title).to_owned();
            let action = titled(&actions, &title);
            assert!(action["edit"].is_null(), "the edit is made when it is asked for");
            assert!(action["title"].as_str().unwrap().contains(" assumption"), "{action:#}");
            assert_eq!(action["kind"], kind);
            let edit = client.resolve(action)["edit"].clone();
            let touched = apply_workspace_edit(edited.path(), &edit, client.encoding()).expect("an edit that fits");
            assert!(touched.contains(&path));
            client.shutdown();

            let rewritten = corpus();
            let line = rewritten
                .read(file)
                .lines()
                .position(|line| line.contains(launch))
                .expect("the launch")
                + 1;
            let arguments = ["rewrite", file, "--at", &line.to_string(), "--apply", id, "--in-place"];
            gridfuse(rewritten.path(), &arguments).expect_code(0);
            assert!(
                files_of(edited.path()) == files_of(rewritten.path()),
                "{file}: {id} differs"
            );
            if id == "aggregate-block" {
                Nvcc::get()
                    .check_compiles_with(&path, &["-Xcicc", "-O0"])
                    .unwrap_or_else(|failure| panic!("{failure}"));
            }
        }
    }
}

#[test]
fn actions_suit_the_client() {
    let text = PROGRAM.replace(
        "    if (i < count)",
        "    if (i < 9) __syncthreads();\n    if (i < count)",
    );
    let root = directory(&[("main.cu", text.as_bytes())]);
    let path = root.file("main.cu");

    let mut client = start(root.path(), &utf8());
    client.open(&path, &text);
    let actions = actions_at(&mut client, &path, SMALL_LAUNCH);
    let refused = titled(&actions, "Run small grids as a loop");
    let reason = refused["disabled"]["reason"].as_str().expect("a reason");
    assert!(reason.contains("waits at a barrier"), "{reason}");
    assert!(refused["edit"].is_null());
    let usable: Vec<bool> = actions.iter().map(|action| action["disabled"].is_null()).collect();
    assert!(
        usable.is_sorted_by(|a, b| a >= b),
        "refused ones come last: {actions:#?}"
    );
    // Other kinds, other places.
    let at = client.find(&path, SMALL_LAUNCH);
    let none = client.code_actions(&path, at..at, &["source"], &[]);
    assert_eq!(none, [] as [Value; 0]);
    let all = client.code_actions(&path, 0..text.len(), &["quickfix", "refactor"], &[]);
    assert_eq!(all.len(), actions.len());
    assert_eq!(actions_at(&mut client, &path, "parent<<<"), [] as [Value; 0]);
    client.shutdown();

    let capabilities = Capabilities {
        code_action_disabled: false,
        ..utf8()
    };
    let mut client = start(root.path(), &capabilities);
    client.open(&path, &text);
    let actions = actions_at(&mut client, &path, SMALL_LAUNCH);
    assert!(
        actions.iter().all(|action| action["disabled"].is_null()),
        "{actions:#?}"
    );
    assert!(
        !actions
            .iter()
            .any(|action| action["title"].as_str().unwrap().starts_with("Run small"))
    );
    client.shutdown();

    // Without lazy resolving the edit is there at once; without creating files it is a plain list of changes.
    let mut capabilities = Capabilities::minimal();
    capabilities.code_action_resolve = false;
    let mut client = start(root.path(), &capabilities);
    assert_eq!(client.encoding(), PositionEncoding::Utf16);
    client.open(&path, &text);
    let actions = actions_at(&mut client, &path, SMALL_LAUNCH);
    let action = titled(&actions, "Collect launches per warp");
    assert!(action["edit"]["changes"][uri(&path)].is_array(), "{action:#}");
    assert!(action["edit"]["documentChanges"].is_null());
    client.shutdown();
}

#[test]
fn incremental_edits_keep_positions() {
    let variants = [
        PROGRAM.to_owned(),
        PROGRAM.replace('\n', "\r\n"),
        PROGRAM.replace("    ", "\t"),
        PROGRAM.replace("if (count > 0) ", "/* Größe 😀 */ if (count > 0) /* é */ "),
    ];
    for capabilities in [utf8(), utf16()] {
        for text in &variants {
            let root = directory(&[]);
            let path = root.file("main.cu");
            let mut client = start(root.path(), &capabilities);
            client.open(&path, text);
            let check = |client: &mut Client, what: &str| {
                let found = client.diagnostics(&path);
                let [found] = found.as_slice() else {
                    panic!("{what}: {found:#?}")
                };
                assert_eq!(marked(client, client.text(&path), found), SMALL_LAUNCH, "{what}");
                let at = client.find(&path, SMALL_LAUNCH) + 3;
                let hover = client.hover(&path, at);
                assert_eq!(marked(client, client.text(&path), &hover), SMALL_LAUNCH, "{what}");
            };
            check(&mut client, "opened");
            let at = client.find(&path, SMALL_LAUNCH);
            client.change(&path, &[(at..at, "/* 😀ß */ ")]);
            check(&mut client, "text in front of the launch");
            client.change(&path, &[(0..0, "// ä\r\n")]);
            check(&mut client, "a line at the top");
            let (smile, body) = (client.find(&path, "😀ß"), client.find(&path, "out[i] = i"));
            // Each range speaks of the text that the one before it left.
            let both = [
                (smile.max(body)..smile.max(body) + 1, "/* 💥 */\n"),
                (smile.min(body)..smile.min(body), " "),
            ];
            let both = if smile < body {
                [both[1].clone(), both[0].clone()]
            } else {
                both
            };
            let text = client.text(&path).to_owned();
            let fits = both
                .iter()
                .all(|(range, _)| text.is_char_boundary(range.start) && text.is_char_boundary(range.end));
            if fits {
                client.change(&path, &both[..1]);
            }
            client.change(&path, &[(0..0, "\n\n"), (0..1, "\t// ☃\n")]);
            if client.text(&path).contains(SMALL_LAUNCH) {
                check(&mut client, "two changes at once");
            }
            let whole = client
                .text(&path)
                .replace("if (v >= n) return;", "if (v >= n) { return; } // π");
            client.change_full(&path, &whole);
            check(&mut client, "the whole text");
            // What a fresh server says of the same text.
            let here = client.diagnostics(&path);
            client.shutdown();
            let mut fresh = start(root.path(), &capabilities);
            fresh.open(&path, &whole);
            assert_eq!(fresh.diagnostics(&path), here);
            fresh.shutdown();
        }
    }
}

#[test]
fn requests_can_be_cancelled() {
    let root = directory(&[]);
    let path = root.file("big.cu");
    let mut text = String::new();
    for index in 0..1500 {
        text.push_str(
            &PROGRAM
                .replace("child", &format!("child{index}"))
                .replace("parent", &format!("parent{index}"))
                .replace("main", &format!("main{index}")),
        );
    }
    let mut client = start(
        root.path(),
        &Capabilities {
            pull_diagnostics: true,
            ..utf8()
        },
    );
    client.open(&path, &text);
    let params = json!({ "textDocument": { "uri": uri(&path) } });
    let before = taken(&client);
    let id = client.send_request("textDocument/diagnostic", params);
    client.cancel(id);
    let error = client.wait_response(id).expect_err("cancelled");
    assert_eq!(error.code, ResponseError::REQUEST_CANCELLED, "{error}");
    assert!(taken(&client) - before < 20.0, "it's worked out to the end");
    // An edit in between is no cancellation by the client.
    let params = json!({ "textDocument": { "uri": uri(&path) } });
    let id = client.send_request("textDocument/diagnostic", params);
    client.change(&path, &[(0..0, "\n")]);
    if let Err(error) = client.wait_response(id) {
        assert!(
            [ResponseError::CONTENT_MODIFIED, -32802].contains(&error.code),
            "{error}"
        );
    }
    client.change_full(&path, PROGRAM);
    assert_eq!(
        client.pull_diagnostics(&path, None)["items"].as_array().map(Vec::len),
        Some(1)
    );
    client.shutdown();
}

#[test]
fn a_stale_action_is_refused() {
    let root = corpus();
    let mut client = start(root.path(), &utf8());
    let path = root.file("bfs.cu");
    client.open(&path, &root.read("bfs.cu"));
    let actions = actions_at(&mut client, &path, LAUNCH);
    let action = titled(&actions, "Collect launches per block").clone();
    client.change(&path, &[(0..0, "// new\n")]);
    let error = client.try_request("codeAction/resolve", action).expect_err("stale");
    assert_eq!(error.code, ResponseError::CONTENT_MODIFIED, "{error}");
    let actions = actions_at(&mut client, &path, LAUNCH);
    assert!(client.resolve(titled(&actions, "Collect launches per block"))["edit"].is_object());
    client.shutdown();
}

/// A kernel in a header outside of the workspace.
fn child_and_parent() -> (String, String) {
    let (child, parent) = PROGRAM.split_at(PROGRAM.find("__global__ void parent").expect("the parent"));
    (child.to_owned(), format!("#include \"child.cuh\"\n{parent}"))
}

#[test]
fn configuration_changes_what_is_found() {
    let (child, parent) = child_and_parent();
    let root = directory(&[("inc/child.cuh", child.as_bytes()), ("src/main.cu", parent.as_bytes())]);
    let path = root.file("src/main.cu");
    let mut client = start(&root.file("src"), &utf8());
    client.open(&path, &parent);
    let text = hover_text(&mut client, &path, SMALL_LAUNCH);
    assert!(text.contains("no definition found"), "{text}");
    // A client that is asked,
    client.set_configuration("gridfuse", json!({ "includeDirs": [root.file("inc")] }));
    client.notify("workspace/didChangeConfiguration", json!({ "settings": null }));
    let text = eventually_hover(&mut client, &path, SMALL_LAUNCH, |text| {
        !text.contains("no definition found")
    });
    assert!(text.contains("child.cuh"), "{text}");
    // Wrong settings are told to the user.
    client.notify(
        "workspace/didChangeConfiguration",
        json!({ "settings": { "gridfuse": { "includeDirs": 7 } } }),
    );
    let message = client.wait_notification("window/showMessage", |_| true);
    assert!(
        message["message"].as_str().unwrap().contains("settings are wrong"),
        "{message}"
    );
    client.shutdown();
}

#[test]
fn the_manifest_is_read() {
    let (child, parent) = child_and_parent();
    let root = directory(&[
        (
            "gridfuse.toml",
            b"include-dirs = ['inc']\n[severity]\nserialized-launches = 'error'\n",
        ),
        ("inc/child.cuh", child.as_bytes()),
        ("src/main.cu", parent.as_bytes()),
    ]);
    let (path, manifest) = (root.file("src/main.cu"), root.file("gridfuse.toml"));
    let mut client = start(root.path(), &utf8());
    client.open(&path, &parent);
    let severity = |diagnostics: &[Value]| {
        let found = diagnostics.iter().find(|d| d["code"] == "serialized-launches");
        found.map(|d| d["severity"].as_u64().unwrap_or_default())
    };
    client.wait_published(&path, |published| severity(&published.diagnostics) == Some(1));
    eventually_hover(&mut client, &path, SMALL_LAUNCH, |text| text.contains("child.cuh"));
    let rewrite = |client: &Client, text: &str| {
        fs::write(&manifest, text).unwrap();
        let change = json!({ "changes": [{ "uri": uri(&manifest), "type": 2 }] });
        client.notify("workspace/didChangeWatchedFiles", change);
    };
    rewrite(&client, "[severity]\nserialized-launches = 'loud'\n");
    let wrong = client.wait_published(&manifest, |published| !published.diagnostics.is_empty());
    let start = &wrong.diagnostics[0]["range"]["start"];
    assert_eq!(
        (&start["line"], &start["character"]),
        (&json!(1), &json!(22)),
        "{wrong:?}"
    );
    rewrite(&client, "[severity]\nserialized-launches = 'off'\n");
    client.wait_published(&path, |published| severity(&published.diagnostics).is_none());
    client.wait_published(&manifest, |published| published.diagnostics.is_empty());
    client.shutdown();
}

#[test]
fn each_folder_has_its_manifest() {
    let root = directory(&[
        ("one/gridfuse.toml", b"[severity]\nserialized-launches = 'error'\n"),
        ("one/a.cu", PROGRAM.as_bytes()),
        ("one/sub/b.cu", PROGRAM.as_bytes()),
        ("two/c.cu", PROGRAM.as_bytes()),
        ("two/gridfuse.toml", b"[severity]\nserialized-launches = 'info'\n"),
    ]);
    let mut client = start(&root.file("one"), &utf8());
    let severity = |diagnostics: &[Value]| {
        let found = diagnostics.iter().find(|d| d["code"] == "serialized-launches");
        found.map(|d| d["severity"].as_u64().unwrap_or_default())
    };
    let (outer, inner, other) = (root.file("one/a.cu"), root.file("one/sub/b.cu"), root.file("two/c.cu"));
    for path in [&outer, &inner] {
        client.open(path, PROGRAM);
        client.wait_published(path, |published| severity(&published.diagnostics) == Some(1));
    }
    // A new one, nearer than the other.
    let manifest = root.file("one/sub/gridfuse.toml");
    let rewrite = |client: &Client, text: &str, kind: u32| {
        fs::write(&manifest, text).unwrap();
        let change = json!({ "changes": [{ "uri": uri(&manifest), "type": kind }] });
        client.notify("workspace/didChangeWatchedFiles", change);
    };
    rewrite(&client, "[severity]\nserialized-launches = 'warning'\n", 1);
    client.wait_published(&inner, |published| severity(&published.diagnostics) == Some(2));
    rewrite(&client, "\narch = 90\n", 2);
    let wrong = client.wait_published(&manifest, |published| !published.diagnostics.is_empty());
    assert_eq!(
        wrong.diagnostics[0]["range"]["start"],
        json!({ "line": 1, "character": 7 }),
        "{wrong:?}"
    );
    rewrite(&client, "[severity]\nserialized-launches = 'off'\n", 2);
    client.wait_published(&inner, |published| severity(&published.diagnostics).is_none());
    client.wait_published(&manifest, |published| published.diagnostics.is_empty());
    // A folder that is opened later.
    let folder = json!({ "uri": uri(&root.file("two")), "name": "two" });
    let change = json!({ "event": { "added": [folder], "removed": [] } });
    client.notify("workspace/didChangeWorkspaceFolders", change);
    client.open(&other, PROGRAM);
    client.wait_published(&other, |published| severity(&published.diagnostics) == Some(3));
    client.shutdown();
}

#[test]
fn compile_commands_are_followed() {
    let (child, parent) = child_and_parent();
    let entry = |flags: &str| {
        format!(
            r#"[{{"directory": "..", "file": "src/main.cu", "command": "nvcc -rdc=true -Iinc {flags} -c src/main.cu"}}]"#
        )
    };
    let root = directory(&[
        ("build/compile_commands.json", entry("").as_bytes()),
        ("inc/child.cuh", child.as_bytes()),
        ("src/main.cu", parent.as_bytes()),
    ]);
    let (path, commands) = (root.file("src/main.cu"), root.file("build/compile_commands.json"));
    let mut client = start(root.path(), &utf8());
    client.open(&path, &parent);
    let serialized = |diagnostics: &[Value]| diagnostics.iter().any(|d| d["code"] == "serialized-launches");
    client.wait_published(&path, |published| serialized(&published.diagnostics));
    eventually_hover(&mut client, &path, SMALL_LAUNCH, |text| text.contains("child.cuh"));
    let rewrite = |client: &Client, text: &str| {
        fs::write(&commands, text).unwrap();
        let change = json!({ "changes": [{ "uri": uri(&commands), "type": 2 }] });
        client.notify("workspace/didChangeWatchedFiles", change);
    };
    rewrite(&client, &entry("--default-stream per-thread"));
    client.wait_published(&path, |published| !serialized(&published.diagnostics));
    rewrite(&client, "[\n  {\"file\": 3}]");
    let wrong = client.wait_published(&commands, |published| !published.diagnostics.is_empty());
    assert_eq!(wrong.diagnostics[0]["range"]["start"]["line"], json!(1), "{wrong:?}");
    client.wait_published(&path, |published| serialized(&published.diagnostics));
    rewrite(&client, &entry(""));
    client.wait_published(&commands, |published| published.diagnostics.is_empty());
    client.shutdown();
}

#[test]
fn watched_files_are_followed() {
    let (child, parent) = child_and_parent();
    let root = directory(&[("main.cu", parent.as_bytes())]);
    let (path, header) = (root.file("main.cu"), root.file("child.cuh"));
    let mut client = start(root.path(), &utf8());
    client.wait_server_request("client/registerCapability", |params| {
        params.to_string().contains("didChangeWatchedFiles")
    });
    client.open(&path, &parent);
    let told = |client: &Client, kind: u32| {
        client.notify(
            "workspace/didChangeWatchedFiles",
            json!({ "changes": [{ "uri": uri(&header), "type": kind }] }),
        );
    };
    let unknown = |text: &str| text.contains("no definition found");
    assert!(unknown(&hover_text(&mut client, &path, SMALL_LAUNCH)));
    fs::write(&header, &child).unwrap();
    told(&client, 1);
    let text = eventually_hover(&mut client, &path, SMALL_LAUNCH, |text| !unknown(text));
    assert!(text.contains("child.cuh:1"), "{text}");
    fs::write(&header, format!("\n\n{child}")).unwrap();
    told(&client, 2);
    eventually_hover(&mut client, &path, SMALL_LAUNCH, |text| text.contains("child.cuh:3"));
    fs::remove_file(&header).unwrap();
    told(&client, 3);
    eventually_hover(&mut client, &path, SMALL_LAUNCH, unknown);
    client.shutdown();
}

#[test]
fn unsaved_text_counts_across_files() {
    let (child, parent) = child_and_parent();
    let root = directory(&[("main.cu", parent.as_bytes()), ("child.cuh", child.as_bytes())]);
    let (path, header) = (root.file("main.cu"), root.file("child.cuh"));
    let mut client = start(root.path(), &utf8());
    client.open(&path, &parent);
    eventually_hover(&mut client, &path, SMALL_LAUNCH, |text| text.contains("child.cuh"));
    let threshold = |client: &mut Client| {
        let actions = actions_at(client, &path, SMALL_LAUNCH);
        titled(&actions, "Run small grids as a loop")["disabled"]["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(threshold(&mut client), "");
    client.open(&header, &child);
    client.replace(&header, "    if (i", "    if (i < 9) __syncthreads();\n    if (i");
    assert!(threshold(&mut client).contains("barrier"));
    // The disk says otherwise all the time, and counts again after closing without saving.
    client.notify(
        "workspace/didChangeWatchedFiles",
        json!({ "changes": [{ "uri": uri(&header), "type": 2 }] }),
    );
    assert!(threshold(&mut client).contains("barrier"));
    client.close(&header);
    wait_until("the closed text counts no more", || threshold(&mut client).is_empty());
    // The edit of an action reaches the header, in the version that is open.
    client.open(&header, &child);
    client.change(&header, &[(0..0, "// Kopf: ä\n")]);
    let actions = actions_at(&mut client, &path, SMALL_LAUNCH);
    let edit = client.resolve(titled(&actions, "Collect launches per block"))["edit"].clone();
    let documents: Vec<(&str, &Value)> = edit["documentChanges"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|change| {
            Some((
                change["textDocument"]["uri"].as_str()?,
                &change["textDocument"]["version"],
            ))
        })
        .collect();
    for open in [&header, &path] {
        let version = json!(client.version(open));
        assert!(documents.contains(&(uri(open).as_str(), &version)), "{documents:?}");
    }
    client.save(&header);
    apply_workspace_edit(root.path(), &edit, client.encoding()).expect("an edit that fits");
    Nvcc::get()
        .check_compiles(&path)
        .unwrap_or_else(|failure| panic!("{failure}"));
    client.shutdown();
}

#[test]
fn odd_documents_are_survived() {
    let root = directory(&[]);
    let mut client = start(root.path(), &utf8());
    let big = format!(
        "{}{}",
        PROGRAM,
        "// padding of a line that is quite long, as comments go\n".repeat(95_000)
    );
    assert!(big.len() > 5 << 20);
    let odd = [
        ("empty.cu", String::new()),
        (
            "broken.cu",
            "__global__ void k( {{{ <<< }}} ) k<<<,>>>(((\n#if\n\"\n/*".to_owned(),
        ),
        ("half.cu", PROGRAM[..PROGRAM.len() / 2].to_owned()),
        ("binary.cu", "\u{7f}ELF\0\0\u{fffd}\u{1}\0<<<>>>\0".repeat(50)),
        ("deep.cu", format!("__global__ void k() {{ {} }}", "(".repeat(5_000))),
        ("newlines.cu", "\r\r\n\n\r".repeat(100)),
        ("big.cu", big),
    ];
    for (name, text) in &odd {
        let path = root.file(name);
        client.open(&path, text);
        client.diagnostics(&path);
        client.hover(&path, 0);
        client.code_actions(&path, 0..text.len(), &[], &[]);
        client.change(&path, &[(0..0, "__global__ void extra() { extra<<<1, 1>>>(); }\n")]);
        client.diagnostics(&path);
    }
    // Syntax errors elsewhere don't hide a launch.
    let path = root.file("mended.cu");
    client.open(&path, PROGRAM);
    for broken in [
        "int x = ;",
        "void f(int a {\n a = 1;\n}",
        "void f() { foo( }",
        "void f() {\n if (a) {\n",
        "struct S { int a",
    ] {
        client.change_full(&path, &format!("{broken}\n{PROGRAM}"));
        let found = client.diagnostics(&path);
        assert!(
            found.iter().any(|d| d["code"] == "serialized-launches"),
            "{broken}: {found:#?}"
        );
    }
    let path = root.file("big.cu");
    let found = client.diagnostics(&path);
    assert!(found.iter().any(|d| d["code"] == "serialized-launches"));
    let errors: Vec<_> = client
        .notifications()
        .into_iter()
        .filter(|(_, params)| params.to_string().contains("internal error"))
        .collect();
    assert!(errors.is_empty(), "{errors:?}\n{}", client.stderr());
    assert!(!client.stderr().contains("panicked"), "{}", client.stderr());
    client.shutdown();
}

#[test]
fn a_file_deleted_under_the_server() {
    let root = directory(&[("main.cu", PROGRAM.as_bytes())]);
    let path = root.file("main.cu");
    let mut client = start(root.path(), &utf8());
    client.open(&path, PROGRAM);
    assert_eq!(client.diagnostics(&path).len(), 1);
    fs::remove_file(&path).unwrap();
    client.notify(
        "workspace/didChangeWatchedFiles",
        json!({ "changes": [{ "uri": uri(&path), "type": 3 }] }),
    );
    // The editor still has it.
    assert!(hover_text(&mut client, &path, SMALL_LAUNCH).contains("launch of `child`"));
    client.replace(&path, "count > 0", "count > 1");
    assert_eq!(client.diagnostics(&path).len(), 1);
    let action = titled(&actions_at(&mut client, &path, SMALL_LAUNCH), "Collect").clone();
    assert!(client.resolve(&action)["edit"].is_object());
    client.close(&path);
    client.wait_published(&path, |published| published.diagnostics.is_empty());
    let hover = client.try_request(
        "textDocument/hover",
        json!({ "textDocument": { "uri": uri(&path) }, "position": { "line": 8, "character": 20 } }),
    );
    let mut hover = hover.expect("no error");
    wait_until("a file that is gone has no hover", || {
        let gone = hover.is_null();
        hover = client.request(
            "textDocument/hover",
            json!({ "textDocument": { "uri": uri(&path) }, "position": { "line": 8, "character": 20 } }),
        );
        gone
    });
    fs::remove_dir_all(root.path()).unwrap();
    client.shutdown();
}

#[test]
fn exit_codes() {
    let root = directory(&[]);
    start(root.path(), &utf8()).shutdown();
    assert_eq!(start(root.path(), &utf8()).exit(), Some(1));
    let mut client = start(root.path(), &utf8());
    client.request("shutdown", Value::Null);
    let error = client.try_request(
        "textDocument/hover",
        json!({ "textDocument": { "uri": "file:///x.cu" }, "position": { "line": 0, "character": 0 } }),
    );
    assert!(error.is_err(), "after shutdown nothing is answered: {error:?}");
    assert_eq!(client.exit(), Some(0));
    // An editor that crashed.
    assert_eq!(start(root.path(), &utf8()).hang_up(), Some(1));
}

/// Sends all messages at once, closes the connection where asked to, and returns what was answered and the exit code.
fn pipelined(messages: &[Value], close: bool) -> (String, Option<i32>) {
    let mut server = Command::new(workspace::gridfuse_bin())
        .arg("lsp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut all = String::new();
    for message in messages {
        let body = message.to_string();
        all += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    }
    input.write_all(all.as_bytes()).unwrap();
    let open = (!close).then_some(input);
    let status = wait_for(|| "the server goes on".to_owned(), || server.try_wait().unwrap());
    drop(open);
    let mut answers = String::new();
    server.stdout.unwrap().read_to_string(&mut answers).unwrap();
    (answers, status.code())
}

#[test]
fn a_client_need_not_wait() {
    let request = |id: u32, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let initialize = request(1, "initialize", json!({ "capabilities": {} }));
    let initialized = json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} });
    let shutdown = json!({ "jsonrpc": "2.0", "id": 2, "method": "shutdown" });
    let exit = json!({ "jsonrpc": "2.0", "method": "exit" });
    for _ in 0..5 {
        for messages in [
            vec![initialize.clone(), shutdown.clone(), exit.clone()],
            vec![initialize.clone(), initialized.clone(), shutdown.clone(), exit.clone()],
        ] {
            for close in [false, true] {
                let (answers, code) = pipelined(&messages, close);
                assert_eq!(code, Some(0), "{answers}");
                assert!(answers.contains(r#""id":2"#) && !answers.contains("error"), "{answers}");
            }
        }
    }
    assert_eq!(pipelined(&[initialize.clone(), exit.clone()], false).1, Some(1));
    assert_eq!(pipelined(&[initialize, initialized], true).1, Some(1));
    assert_eq!(pipelined(&[exit], false).1, Some(1));
}

#[test]
fn garbage_is_survived() {
    let root = corpus();
    let mut client = Client::spawn(workspace::gridfuse_bin(), &["lsp"]);
    let early = client.try_request(
        "textDocument/hover",
        json!({ "textDocument": { "uri": "file:///x.cu" }, "position": { "line": 0, "character": 0 } }),
    );
    assert_eq!(
        early.expect_err("too early").code,
        ResponseError::SERVER_NOT_INITIALIZED
    );
    client.initialize(Some(root.path()), &utf8());
    let path = root.file("bfs.cu");
    client.open(&path, &root.read("bfs.cu"));

    let code = |result: Result<Value, ResponseError>| result.map_err(|error| error.code);
    assert_eq!(
        code(client.try_request("gridfuse/nothing", json!({}))),
        Err(ResponseError::METHOD_NOT_FOUND)
    );
    const INVALID: i64 = -32602;
    assert_eq!(
        code(client.try_request("textDocument/hover", json!({ "textDocument": 7 }))),
        Err(INVALID)
    );
    assert_eq!(code(client.try_request("textDocument/hover", json!([]))), Err(INVALID));
    assert_eq!(
        code(client.try_request("codeAction/resolve", json!({ "title": "x" }))),
        Err(INVALID)
    );
    assert_eq!(
        code(client.try_request("codeAction/resolve", json!({ "title": "x", "data": { "rewrite": 1 } }))),
        Err(INVALID)
    );
    let data = json!({ "uri": uri(&path), "version": 1, "offset": 3, "rewrite": "no-such" });
    assert_eq!(
        code(client.try_request("codeAction/resolve", json!({ "title": "x", "data": data }))),
        Err(INVALID)
    );
    let far = json!({ "line": 4_000_000_000u32, "character": 4_000_000_000u32 });
    for address in ["file:///nowhere/x.cu", "untitled:Untitled-1", "http://example.com/a.cu"] {
        let hover = client.try_request(
            "textDocument/hover",
            json!({ "textDocument": { "uri": address }, "position": far }),
        );
        assert_eq!(code(hover), Ok(Value::Null), "{address}");
        client.notify(
            "textDocument/didChange",
            json!({ "textDocument": { "uri": address, "version": 3 }, "contentChanges": [{ "text": "x" }] }),
        );
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": address } }));
    }
    assert_eq!(
        client.document_request("textDocument/hover", &path, json!({ "position": far })),
        Value::Null
    );
    let backwards = json!({ "start": far, "end": { "line": 0, "character": 0 } });
    client.document_request(
        "textDocument/codeAction",
        &path,
        json!({ "range": backwards, "context": { "diagnostics": [] } }),
    );
    client.notify("textDocument/didChange", json!({ "nonsense": true }));
    client.notify("no/such/notification", json!({ "a": [1, 2] }));
    client.notify("$/cancelRequest", json!({ "id": 123_456 }));
    client.notify(
        "textDocument/didOpen",
        json!({ "textDocument": { "uri": "not a uri", "languageId": "cuda", "version": 1, "text": "" } }),
    );

    // Documents that are no CUDA sources are none of the server's business.
    client.open_as(&root.file("notes.md"), "markdown", "# child<<<1, 1>>>()");
    assert!(hover_text(&mut client, &path, LAUNCH).contains("launch of `expand`"));
    assert_eq!(client.diagnostics(&path).len(), 2);
    assert!(!client.stderr().contains("panicked"), "{}", client.stderr());
    client.shutdown();
}

#[test]
fn bytes_that_are_no_messages() {
    for garbage in ["{]}", "[]", "\"text\"", "{\"jsonrpc\":\"2.0\",\"id\":\"a\"}", ""] {
        let mut server = Command::new(workspace::gridfuse_bin())
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = server.stdin.take().unwrap();
        write!(input, "Content-Length: {}\r\n\r\n{garbage}", garbage.len()).unwrap();
        let root = corpus();
        let path = root.file("bfs.cu");
        let mut client = Client::over(server.stdout.take().unwrap(), input);
        client.initialize(Some(root.path()), &utf8());
        client.open(&path, &root.read("bfs.cu"));
        assert_eq!(client.diagnostics(&path).len(), 2, "after {garbage:?}");
        client.shutdown();
        assert_eq!(server.wait().unwrap().code(), Some(0), "after {garbage:?}");
    }
}

#[test]
fn untitled_documents_work() {
    let root = directory(&[]);
    let mut client = start(root.path(), &utf8());
    let address = "untitled:Untitled-1";
    client.notify(
        "textDocument/didOpen",
        json!({ "textDocument": { "uri": address, "languageId": "cuda-cpp", "version": 1, "text": PROGRAM } }),
    );
    let published = client.wait_notification("textDocument/publishDiagnostics", |params| params["uri"] == address);
    assert_eq!(
        published["diagnostics"].as_array().map(Vec::len),
        Some(1),
        "{published:#}"
    );
    let at = PositionEncoding::Utf8.position(PROGRAM, PROGRAM.find(SMALL_LAUNCH).unwrap() + 1);
    let hover = client.request(
        "textDocument/hover",
        json!({ "textDocument": { "uri": address }, "position": at }),
    );
    assert!(
        hover["contents"]["value"]
            .as_str()
            .unwrap()
            .contains("launch of `child`")
    );
    client.shutdown();
}
