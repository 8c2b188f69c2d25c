//! What the language server shows of the launches in a program, over the real protocol.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::{Path, PathBuf};

use gridfuse_tests::cli::{Directory, gridfuse};
use gridfuse_tests::lsp_client::{Capabilities, Client, ResponseError, apply_workspace_edit, path_of, uri};
use gridfuse_tests::patience::wait_until;
use gridfuse_tests::workspace;
use serde_json::{Value, json};

fn start(root: &Path, capabilities: &Capabilities) -> Client {
    let mut client = Client::spawn(workspace::gridfuse_bin(), &["lsp"]);
    client.initialize(Some(root), capabilities);
    client
}

fn corpus() -> Directory {
    Directory::copy_of(&workspace::root().join("tests/corpus"))
}

/// A server with `bfs.cu` open.
fn bfs() -> (Directory, Client, PathBuf) {
    let root = corpus();
    let mut client = start(root.path(), &Capabilities::default());
    let path = root.file("bfs.cu");
    client.open(&path, &root.read("bfs.cu"));
    (root, client, path)
}

/// The hover `skip` bytes behind the first `needle`, and the text that it is about.
fn hover(client: &mut Client, path: &Path, needle: &str, skip: usize) -> (String, String) {
    let offset = client.find(path, needle) + skip;
    let hover = client.hover(path, offset);
    let text = client.text(path).to_owned();
    let about = match &hover["range"] {
        Value::Null => String::new(),
        range => text[client.encoding().bytes(&text, range).expect("a range of the text")].to_owned(),
    };
    let told = hover["contents"]["value"].as_str().unwrap_or_default().to_owned();
    // A rule right below text makes a heading of it.
    let lines: Vec<&str> = told.lines().collect();
    let is_heading = |pair: &[&str]| pair[1] == "---" && !pair[0].is_empty();
    assert!(!lines.windows(2).any(is_heading), "{told}");
    (told, about)
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

const LAUNCH: &str = "expand<<<(count + 127) / 128, 128>>>(col, dist, deepest, level, begin, count)";

/// A launch that isn't part of a recursion can't be flattened, and where nothing is allocated nothing can be allocated together: that goes
/// without saying.
#[test]
fn rewrites_for_another_sort_of_launch_are_not_listed() {
    let of_recursion = [
        ("flatten-recursion", "Flatten the recursion"),
        ("promote", "Turn the launch chain into one grid"),
    ];
    let of_allocation = [("aggregate-malloc", "Allocate once for several threads")];
    let root = corpus();
    for (name, launch, listed) in [
        ("bfs.cu", LAUNCH, &[][..]),
        ("sc.cu", "compact<<<1, kThreads>>>(in", &of_recursion[..]),
        ("bt_malloc.cu", "place<<<", &of_allocation[..]),
    ] {
        let mut client = start(root.path(), &Capabilities::default());
        let path = root.file(name);
        let text = root.read(name);
        client.open(&path, &text);
        let (hover, _) = hover(&mut client, &path, launch, 1);
        let at = client.find(&path, launch) + 1;
        let actions = client.code_actions(&path, at..at, &["quickfix", "refactor"], &[]);
        let place = format!("{name}:{}", text[..at].lines().count());
        let printed = gridfuse(root.path(), &["explain", &place]).expect_code(0).stdout;
        let json = gridfuse(root.path(), &["explain", &place, "--format", "json"])
            .expect_code(0)
            .json();
        for rewrite in of_recursion.iter().chain(&of_allocation) {
            let (id, title) = *rewrite;
            let wanted = listed.contains(rewrite);
            let offered = actions
                .iter()
                .any(|action| action["title"].as_str().unwrap().starts_with(title));
            assert_eq!(hover.contains(title), wanted, "{name}: {title}\n{hover}");
            assert_eq!(offered, wanted, "{name}: {title}\n{actions:#?}");
            assert_eq!(printed.contains(&format!("│ {id} ")), wanted, "{name}: {id}\n{printed}");
            // Programs get all verdicts.
            let verdicts = json["launches"][0]["rewrites"].as_array().unwrap();
            assert!(verdicts.iter().any(|verdict| verdict["rewrite"] == id), "{name}: {id}");
        }
        client.shutdown();
    }
}

#[test]
fn hover_on_a_launch_and_its_operands() {
    let (_root, mut client, path) = bfs();
    let (text, about) = hover(&mut client, &path, LAUNCH, 1);
    assert_eq!(about, LAUNCH);
    contains(
        &text,
        &[
            "**launch of `expand`**",
            "in `bfs_level`: each thread that gets here launches it",
            "| *reached* | varying: only threads with `count > 0` get here",
            "| *launches* | `0 or 1` per thread, `up to blockDim.x` per block,",
            "| *stream* | NULL: ",
            "| `level` | `level` | grid-uniform | depends on the parameter `level`",
            "| ✓ fits, if | (1) (2) |",
            "\n(1) grids of `expand`",
        ],
    );
    // The answer first: what this launch is, what can be done, what that takes for granted. An editor shows eight lines.
    let first: Vec<&str> = text.lines().take(8).collect();
    assert!(first[0].starts_with("**launch of `expand`**"), "{text}");
    assert!(
        first[2].contains(" rewrites fit; best: store only changes, run children in the parent's threads"),
        "{text}"
    );
    assert!(
        first[4].starts_with("Takes for granted: grids of `expand` are independent of each other"),
        "{text}"
    );
    assert_eq!(first[6], "---", "{text}");
    // One page for each rewrite, which is there.
    let (_, link) = text.split_once("[Collect launches per block](").expect("a link");
    let page = path_of(link.split(')').next().unwrap()).expect("the path of a page");
    assert!(
        std::fs::read_to_string(page)
            .unwrap()
            .starts_with("# aggregate-block: ")
    );

    let (text, about) = hover(&mut client, &path, LAUNCH, LAUNCH.find("begin").unwrap() + 2);
    assert_eq!(about, "begin");
    contains(
        &text,
        &[
            "**argument for `begin`** of `expand`: `begin`",
            "**varying**: each thread may have a value of its own.",
            "read from `row`",
            "```cuda\n",
            "store it for each launch",
        ],
    );
    // What it is, the answer, why: an editor shows eight lines.
    let first: Vec<&str> = text.lines().take(8).collect();
    assert!(
        first[2].starts_with("**varying**") && first[4].starts_with("read from `row`"),
        "{text}"
    );
    let (text, about) = hover(&mut client, &path, LAUNCH, LAUNCH.find("level").unwrap());
    assert_eq!(about, "level");
    contains(
        &text,
        &[
            "**grid-uniform**: all threads of a grid have the same value.",
            "store it once, at every granularity",
            "int level, int n) {",
        ],
    );
    let (text, about) = hover(&mut client, &path, LAUNCH, LAUNCH.find("127").unwrap());
    assert_eq!(about, "(count + 127) / 128");
    contains(
        &text,
        &[
            "**grid size** of the launch of `expand`",
            "**varying**: each thread may have",
        ],
    );
    assert!(!text.contains("carry"), "{text}");
    let (text, about) = hover(&mut client, &path, LAUNCH, LAUNCH.find(", 128").unwrap() + 3);
    assert_eq!(about, "128");
    contains(&text, &["**block size**", "**constant**: the same whenever"]);
    client.shutdown();
}

#[test]
fn hover_on_a_kernel() {
    let (_root, mut client, path) = bfs();
    let (text, about) = hover(&mut client, &path, "bfs_level(const", 2);
    assert_eq!(about, "bfs_level");
    contains(
        &text,
        &[
            "**kernel `bfs_level`**",
            "| Launches | ",
            "| `expand` | ",
            " rewrites fit; best: ",
            "| Launched from | ",
            "| host code | ",
        ],
    );
    let first: Vec<&str> = text.lines().take(8).collect();
    assert!(first[0].starts_with("**kernel `bfs_level`**"), "{text}");
    assert!(first[2].starts_with("Launch of `expand` ([line"), "{text}");
    assert!(first[2].contains(" rewrites fit; best: "), "{text}");
    assert!(!text.contains("__global__"), "clangd shows the head: {text}");
    let (text, _) = hover(&mut client, &path, "expand(const", 2);
    contains(
        &text,
        &[
            "**kernel `expand`**",
            "| `bfs_level` | ",
            "`up to blockDim.x * gridDim.x` |",
        ],
    );
    client.replace(
        &path,
        LAUNCH,
        "bfs_level<<<1, 1>>>(row, col, dist, deepest, level + 1, n)",
    );
    let (text, _) = hover(&mut client, &path, "bfs_level(const", 2);
    contains(&text, &["Recursion: "]);
    client.shutdown();
}

#[test]
fn hover_on_what_rewrites_made() {
    let root = corpus();
    let line = root.read("bfs.cu").lines().position(|l| l.contains(LAUNCH)).unwrap() + 1;
    let arguments = [
        "rewrite",
        "bfs.cu",
        "--at",
        &line.to_string(),
        "--apply",
        "threshold,aggregate-block",
        "--in-place",
    ];
    gridfuse(root.path(), &arguments).expect_code(0);
    let mut client = start(root.path(), &Capabilities::default());
    let path = root.file("bfs.cu");
    client.open(&path, &root.read("bfs.cu"));
    for (needle, skip, parts) in [
        (
            "gridfuse::Arena arena",
            12,
            &["**`gridfuse::Arena`**", "made by arena_for", "bytes_per_thread"][..],
        ),
        ("gridfuse::Arena arena", 2, &["**`gridfuse::Arena`**"]),
        (
            "gridfuse::PerBlock",
            12,
            &["one block of the parent kernel", "The granularity is this one word"],
        ),
        (
            "expands.launch(",
            9,
            &[
                "collects launches of `expand`",
                "gridfuse::Aggregator<gridfuse::PerBlock, expand_aggregated> expands",
            ],
        ),
        ("expands.launch(", 2, &["collects launches"]),
        (
            "expand_aggregated(",
            2,
            &["**kernel `expand_aggregated`**", "The aggregated form of a kernel"],
        ),
        (
            "expand_body(",
            2,
            &["The body of a kernel as a function", "Used by `expand`"],
        ),
        ("expand_serial(", 2, &["as a loop in the calling thread"]),
        (
            "expand_args {",
            2,
            &["the arguments that differ", "`expand_aggregated` runs together"],
        ),
        (
            "kExpandThreshold =",
            2,
            &[
                "**`kExpandThreshold`** = 64",
                "run in the launching thread.",
                "A number to tune",
                "[line ",
            ],
        ),
    ] {
        if !client.text(&path).contains(needle) {
            // The body is shared with the threads of the serial form.
            assert_eq!(needle, "expand_body(");
            continue;
        }
        let (text, _) = hover(&mut client, &path, needle, skip);
        contains(&text, parts);
    }
    client.shutdown();
    // The same names in a program without the runtime are the program's own.
    let own = Directory::new();
    let program = "struct expand_args { int n; };\nconstexpr int kThreshold = 3;\n__device__ void expand_body(uint3 blockIdx, dim3 gridDim) {}\n";
    let path = own.write("own.cu", program.as_bytes());
    let mut client = start(own.path(), &Capabilities::default());
    client.open(&path, program);
    for needle in ["expand_args", "kThreshold", "expand_body"] {
        assert_eq!(hover(&mut client, &path, needle, 2).0, "", "{needle}");
    }
    // What other rewrites take from the header.
    let program = r#"__device__ void count(int* place) {
    gridfuse::warp_aggregated::atomicAdd(place, 1);
}
constexpr unsigned often = gridfuse::kNotKnown;
"#;
    let path = own.write("other.cu", program.as_bytes());
    client.open(&path, program);
    for (needle, part) in [
        ("atomicAdd(", "with the same place one does it for all"),
        ("warp_aggregated::", "with the same place one does it for all"),
        ("kNotKnown", "how often a thread launches isn't known"),
    ] {
        let (text, _) = hover(&mut client, &path, needle, 2);
        contains(&text, &[part]);
    }
    client.shutdown();
}

/// A kernel that launches twice, by a name in another file, and a host that launches it.
const PARENT: &str = "\
#include \"child.cuh\"
__device__ void helper(int* out) { child<<<1, 32>>>(out, 1); }
__global__ void parent(int* out, const int* row, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    int count = row[v];
    if (count > 0) child<<<(count + 31) / 32, n>>>(out + blockIdx.x, count);
    if (n > 1) child<<<1, 32>>>(out, n);
}
int main() { parent<<<1, 32>>>(nullptr, nullptr, 3); child<<<1, 1>>>(nullptr, 0); }
";
const CHILD: &str = "__global__ void child(int* out, int count) { out[threadIdx.x] = count; }\n";

fn two_files(capabilities: &Capabilities) -> (Directory, Client, PathBuf) {
    let root = Directory::new();
    root.write("child.cuh", CHILD.as_bytes());
    let path = root.write("parent.cu", PARENT.as_bytes());
    let mut client = start(root.path(), capabilities);
    client.open(&root.file("child.cuh"), CHILD);
    client.open(&path, PARENT);
    (root, client, path)
}

/// A kernel that launches by a device function, which another one calls.
const BY_HELPERS: &str = "\
__global__ void child(int *a, int n) { if (threadIdx.x < n) a[threadIdx.x] += 1; }
__device__ void inner(int *a, int n) { child<<<1, 64>>>(a, n); }
__device__ void visit(int *a, int n) {
    if (n > 4) inner(a, n);
}
__device__ int twice(int n) { return 2 * n; }
__global__ void parent(int *a, const int *row, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) visit(a + row[i], twice(row[i + 1]));
}
__global__ void both(int *a, int n) {
    child<<<1, 32>>>(a, n);
    inner(a, n);
}
int main() { parent<<<4, 32>>>(nullptr, nullptr, 3); both<<<1, 1>>>(nullptr, 3); }
";

#[test]
fn launches_in_called_functions_are_told_of_the_kernel() {
    let root = Directory::new();
    root.write("x.cu", BY_HELPERS.as_bytes());
    let path = root.file("x.cu");
    let capabilities = Capabilities {
        extra: json!({ "experimental": { "commands": { "commands": ["gridfuse.showLaunches", "gridfuse.showRewrites"] } } }),
        ..Capabilities::default()
    };
    let mut client = start(root.path(), &capabilities);
    client.open(&path, BY_HELPERS);
    for (name, callee, call) in [
        ("parent(int", "inner", 9),
        ("visit(int", "inner", 4),
        ("both(int", "inner", 13),
    ] {
        let (text, _) = hover(&mut client, &path, name, 1);
        contains(
            &text,
            &[
                &format!("Launch of `child` in `{callee}` ([line 2]"),
                "| Launches |  | in | called in |",
                &format!("| `{callee}` | [line {call}]"),
            ],
        );
        assert!(!text.contains("No launch of it"), "{text}");
    }
    // What launches nothing, C++ servers tell of.
    assert_eq!(hover(&mut client, &path, "twice(int", 1).0, "");
    let lenses = client.code_lenses(&path);
    let mut titles = Vec::new();
    for lens in lenses {
        let line = lens["range"]["start"]["line"].as_u64().unwrap() + 1;
        let lens = client.request("codeLens/resolve", lens);
        let title = lens["command"]["title"].as_str().unwrap().to_owned();
        if lens["command"]["command"] == "gridfuse.showLaunches" {
            let places = lens["command"]["arguments"][2].as_array().unwrap();
            let lines = places
                .iter()
                .map(|place| place["range"]["start"]["line"].as_u64().unwrap() + 1);
            titles.push((line, title, lines.collect::<Vec<_>>()));
        }
    }
    let expected = [
        (2, "1 launch", vec![2]),
        (3, "1 launch in `inner`", vec![2]),
        (7, "1 launch in `inner`", vec![2]),
        (11, "1 launch, 1 launch in `inner`", vec![12, 2]),
    ];
    let expected = expected.map(|(line, title, lines)| (line, title.to_owned(), lines));
    assert_eq!(titles, expected);
    client.shutdown();
    // The same on the command line: the head of the kernel, a line that calls, and any other one.
    for (place, told) in [
        ("x.cu:7", "these are those of `parent`"),
        ("x.cu:9", "what is called there launches"),
        ("x.cu:8", "these are those of `parent`"),
    ] {
        let run = gridfuse(root.path(), &["explain", "x.cu", "--at", place]).expect_code(0);
        contains(&run.stderr, &[&format!("no kernel launch at {place} itself; {told}")]);
        assert!(run.stdout.starts_with("x.cu:2:40: child"), "{}", run.stdout);
    }
    let none = gridfuse(root.path(), &["explain", "x.cu:6"]).expect_code(2);
    contains(
        &none.stderr,
        &["no kernel launch at x.cu:6; there are launches at x.cu:2:40,"],
    );
}

#[test]
fn lenses_count_when_they_are_resolved() {
    let (_root, mut client, path) = two_files(&Capabilities::default());
    assert_eq!(
        client.server_capabilities()["codeLensProvider"]["resolveProvider"],
        true
    );
    let lenses = client.code_lenses(&path);
    let at = |name: &str| {
        let start = PARENT.find(name).unwrap();
        client.range(&path, start..start + name.trim_end_matches('(').len())
    };
    let ranges: Vec<&Value> = lenses.iter().map(|lens| &lens["range"]).collect();
    assert_eq!(ranges, [&at("helper("), &at("parent(")]);
    assert!(lenses.iter().all(|lens| lens["command"].is_null()), "{lenses:#?}");
    let resolved = client.request("codeLens/resolve", lenses[1].clone());
    let title = resolved["command"]["title"].as_str().unwrap();
    assert!(
        title.starts_with("2 launches · ") && title.ends_with(" rewrites"),
        "{title}"
    );
    // A client that knows no command of its own lets the server execute it, as it said it can.
    let command = &resolved["command"];
    assert_eq!(command["command"], "gridfuse.explain");
    let provided = &client.server_capabilities()["executeCommandProvider"]["commands"];
    assert!(provided.as_array().unwrap().contains(&command["command"]));
    let execute = json!({ "command": command["command"], "arguments": command["arguments"] });
    let told = client.request("workspace/executeCommand", execute);
    contains(
        told.as_str().unwrap(),
        &["**kernel `parent`**", "**launch of `child`**", "grid-uniform"],
    );
    let message = client.wait_notification("window/showMessage", |params| params["type"] == 3);
    assert_eq!(message["message"], told);
    // A position is enough; nothing is shown then.
    let position = client.position(&path, PARENT.find("n>>>").unwrap());
    let argument = json!({ "uri": uri(&path), "position": position });
    let execute = json!({ "command": "gridfuse.explain", "arguments": [argument] });
    let told = client.request("workspace/executeCommand", execute);
    contains(told.as_str().unwrap(), &["**block size** of the launch of `child`"]);
    let wrong = json!({ "command": "gridfuse.explain", "arguments": [] });
    assert_eq!(
        client.try_request("workspace/executeCommand", wrong).unwrap_err().code,
        -32602
    );
    let unknown = json!({ "command": "gridfuse.nonsense", "arguments": [] });
    assert_eq!(
        client
            .try_request("workspace/executeCommand", unknown)
            .unwrap_err()
            .code,
        -32602
    );
    // The text has changed since.
    client.change(&path, &[(0..0, "\n")]);
    let stale = client.try_request("codeLens/resolve", lenses[1].clone()).unwrap_err();
    assert_eq!(stale.code, ResponseError::CONTENT_MODIFIED);
    client.shutdown();
}

#[test]
fn lenses_use_the_commands_of_the_client() {
    let capabilities = Capabilities {
        extra: json!({
            "experimental": { "commands": { "commands": ["gridfuse.showLaunches"] } },
            "window": { "showDocument": { "support": true } },
        }),
        ..Capabilities::default()
    };
    let (_root, mut client, path) = two_files(&capabilities);
    let lenses = client.code_lenses(&path);
    let resolved = client.request("codeLens/resolve", lenses[1].clone());
    assert_eq!(resolved["command"]["command"], "gridfuse.showLaunches");
    let arguments = resolved["command"]["arguments"].as_array().unwrap();
    assert_eq!(arguments[0], uri(&path));
    assert_eq!(arguments[1], lenses[1]["range"]["start"]);
    let places = arguments[2].as_array().unwrap();
    let texts: Vec<&str> = places
        .iter()
        .map(|place| &PARENT[client.encoding().bytes(PARENT, &place["range"]).unwrap()])
        .collect();
    assert_eq!(
        texts,
        [
            "child<<<(count + 31) / 32, n>>>(out + blockIdx.x, count)",
            "child<<<1, 32>>>(out, n)"
        ]
    );
    // An explanation that the client is to show comes as a document.
    let argument = json!({ "uri": uri(&path), "position": lenses[1]["range"]["start"], "show": true });
    let execute = json!({ "command": "gridfuse.explain", "arguments": [argument] });
    let told = client.request("workspace/executeCommand", execute);
    let shown = client.wait_server_request("window/showDocument", |_| true);
    let document = path_of(shown["uri"].as_str().unwrap()).unwrap();
    assert_eq!(std::fs::read_to_string(document).unwrap(), told.as_str().unwrap());
    client.shutdown();
}

/// Label and text before each hint of a document.
fn hints(client: &mut Client, path: &Path) -> Vec<(String, String)> {
    let hints = client.inlay_hints(path);
    let text = client.text(path);
    let shown = |hint: &Value| {
        let at = client.encoding().offset(text, &hint["position"]).unwrap();
        let line = text[..at].rfind(['<', ',', '(']).map_or(0, |start| start + 1);
        (
            hint["label"].as_str().unwrap().to_owned(),
            text[line..at].trim().to_owned(),
        )
    };
    hints.iter().map(shown).collect()
}

/// A client that shows no Markdown gets text that reads well without.
#[test]
fn hovers_as_plain_text() {
    let root = corpus();
    let capabilities = Capabilities {
        extra: json!({ "textDocument": { "hover": { "contentFormat": ["plaintext"] } } }),
        ..Capabilities::default()
    };
    let mut client = start(root.path(), &capabilities);
    let path = root.file("bfs.cu");
    client.open(&path, &root.read("bfs.cu"));
    let at = LAUNCH.split('(').next().unwrap();
    for (what, within) in [(at, 1), (at, "expand<<<(cou".len()), ("bfs_level(const", 1)] {
        let at = client.find(&path, what) + within;
        let position = client.position(&path, at);
        let found = client.document_request("textDocument/hover", &path, json!({ "position": position }));
        assert_eq!(found["contents"]["kind"], "plaintext", "{found}");
        let told = found["contents"]["value"].as_str().unwrap();
        for mark in ["**", "```", "](", "|---", "| ", "\n---\n", "\n\n\n"] {
            assert!(!told.contains(mark), "{mark:?}: {told}");
        }
    }
    let (told, _) = hover(&mut client, &path, at, 1);
    contains(
        &told,
        &[
            "launch of `expand` (line ",
            " rewrites fit; best: ",
            "\nreached     varying: only threads with count > 0 get here (line ",
            "\ngrid     (count + 127) / 128  varying ",
        ],
    );
    client.shutdown();
}

/// What nobody has touched becomes what it was: nothing is taken for granted.
#[test]
fn an_untouched_rewrite_is_taken_back_without_a_doubt() {
    let root = Directory::new();
    let program = std::fs::read(workspace::root().join("tests/corpus/bfs.cu")).unwrap();
    let path = root.write("bfs.cu", &program);
    let mut client = start(root.path(), &Capabilities::default());
    client.open(&path, &root.read("bfs.cu"));
    let at = client.find(&path, LAUNCH) + 1;
    let actions = client.code_actions(&path, at..at, &[], &[]);
    let is_block = |action: &&Value| {
        let title = action["title"].as_str();
        title.is_some_and(|title| title.starts_with("Collect launches per block"))
    };
    let action = actions.iter().find(is_block).expect("it fits");
    let edit = client.resolve(action)["edit"].clone();
    apply_workspace_edit(root.path(), &edit, client.encoding()).expect("an edit that fits");
    let rewritten = root.read("bfs.cu");
    client.change_full(&path, &rewritten);
    let created = json!({ "changes": [{ "uri": uri(&root.file("gridfuse.cuh")), "type": 1 }] });
    client.notify("workspace/didChangeWatchedFiles", created);
    let titles = |client: &mut Client| -> Vec<String> {
        let at = client.find(&path, "expands.launch(") + 1;
        let actions = client.code_actions(&path, at..at, &[], &[]);
        let titles = actions.iter().filter_map(|action| action["title"].as_str());
        titles
            .filter(|title| title.starts_with("Go back"))
            .map(str::to_owned)
            .collect()
    };
    eventually(|| titles(&mut client) == ["Go back to plain launches"]);
    let (told, _) = hover(&mut client, &path, "expands.launch(", 1);
    contains(&told, &["Go back to plain launches](", "✓ fits |"]);
    client.change_full(&path, &rewritten.replace("dist[v] != level", "dist[v] < level"));
    eventually(|| titles(&mut client) == ["Go back to plain launches — 2 assumptions"]);
    client.shutdown();
}

/// What the rewritten code doesn't tell is taken back while nobody has edited it, at the lines that have changed.
#[test]
fn what_the_code_does_not_tell_is_taken_back_in_the_session() {
    let root = Directory::new();
    let program = std::fs::read(workspace::root().join("tests/corpus/bt_malloc.cu")).unwrap();
    let path = root.write("bt_malloc.cu", &program);
    let before = root.read("bt_malloc.cu");
    let mut client = start(root.path(), &Capabilities::default());
    client.open(&path, &before);
    let titled = |client: &mut Client, at: &str, title: &str| -> Option<Value> {
        let at = client.find(&path, at) + 1;
        let actions = client.code_actions(&path, at..at, &[], &[]);
        let found = |action: &&Value| action["title"].as_str().is_some_and(|own| own.starts_with(title));
        actions.iter().find(found).cloned()
    };
    const BACK: &str = "Go back to plain launches";
    let apply = |client: &mut Client, edit: &Value| {
        apply_workspace_edit(root.path(), edit, client.encoding()).expect("an edit that fits");
        client.change_full(&path, &root.read("bt_malloc.cu"));
    };
    assert_eq!(titled(&mut client, "place<<<", BACK), None);
    let action = titled(&mut client, "place<<<", "Allocate once").expect("it fits");
    let edit = client.resolve(&action)["edit"].clone();
    // It has only been offered.
    assert_eq!(titled(&mut client, "place<<<", BACK), None);
    apply(&mut client, &edit);
    let rewritten = root.read("bt_malloc.cu");
    assert_ne!(rewritten, before);
    // Whatever else is offered meanwhile.
    let other = titled(&mut client, "place<<<", "Collect launches per block").expect("it fits");
    client.resolve(&other);
    const CHANGED: &str = "gridfuse::malloc_together";
    eventually(|| titled(&mut client, CHANGED, BACK).is_some());
    assert_ne!(titled(&mut client, "place<<<", BACK), None);
    client.change_full(&path, &rewritten.replacen("int i = ", "int i  = ", 1));
    assert_eq!(titled(&mut client, CHANGED, BACK), None, "somebody has edited it");
    client.change_full(&path, &rewritten);
    let back = titled(&mut client, CHANGED, BACK).expect("it can be taken back");
    apply(&mut client, &back["edit"]);
    assert_eq!(root.read("bt_malloc.cu"), before);
    client.shutdown();
}

/// Where the client can delete files, the runtime header goes with the last rewrite.
#[test]
fn the_header_goes_with_the_last_rewrite() {
    let root = corpus();
    let before = root.read("bfs.cu");
    let at = LAUNCH.split('(').next().unwrap();
    let line = before.lines().position(|line| line.contains(at)).unwrap() + 1;
    let line = line.to_string();
    let words = [
        "rewrite",
        "bfs.cu",
        "--at",
        &line,
        "--apply",
        "aggregate-block",
        "--in-place",
    ];
    gridfuse(root.path(), &words).expect_code(0);
    assert!(root.file("gridfuse.cuh").is_file());
    let edit = |client: &mut Client| {
        let path = root.file("bfs.cu");
        let at = client.find(&path, "expands.launch(") + 1;
        let actions = client.code_actions(&path, at..at, &[], &[]);
        let revert = actions.iter().find(|action| {
            let title = action["title"].as_str();
            title.is_some_and(|title| title.starts_with("Go back to plain launches"))
        });
        revert.expect("it can be taken back")["edit"].clone()
    };
    let deletes = |edit: &Value| edit.to_string().contains("\"delete\"");
    let started = |capabilities: &Capabilities| {
        let mut client = start(root.path(), capabilities);
        client.open(&root.file("bfs.cu"), &root.read("bfs.cu"));
        client.wait_notification("window/logMessage", |message| {
            message["message"]
                .as_str()
                .is_some_and(|text| text.starts_with("scanned "))
        });
        client
    };
    let blind = Capabilities {
        watched_files: false,
        ..Capabilities::default()
    };
    let mut client = started(&blind);
    assert!(!deletes(&edit(&mut client)));
    client.shutdown();
    let mut client = started(&Capabilities::default());
    eventually(|| deletes(&edit(&mut client)));
    let edit = edit(&mut client);
    apply_workspace_edit(root.path(), &edit, client.encoding()).expect("an edit that fits");
    client.shutdown();
    assert_eq!(root.read("bfs.cu"), before);
    assert!(!root.file("gridfuse.cuh").exists());
}

/// A launch that a rewrite has collected is shown as one still.
#[test]
fn collected_launches_are_shown_as_launches() {
    let root = corpus();
    root.write("gridfuse.toml", b"[inlay-hints]\narguments = true\n");
    let at = LAUNCH.split('(').next().unwrap();
    let line = root.read("bfs.cu").lines().position(|line| line.contains(at)).unwrap() + 1;
    let line = line.to_string();
    let words = [
        "rewrite",
        "bfs.cu",
        "--at",
        &line,
        "--apply",
        "aggregate-grid-stream",
        "--in-place",
    ];
    gridfuse(root.path(), &words).expect_code(0);
    let mut client = start(root.path(), &Capabilities::default());
    let path = root.file("bfs.cu");
    client.open(&path, &root.read("bfs.cu"));
    let lenses = client.code_lenses(&path);
    let own = client.find(&path, "bfs_level(const");
    let own = client.position(&path, own);
    let lens = lenses
        .iter()
        .find(|lens| lens["range"]["start"] == own)
        .expect("a lens");
    let resolved = client.request("codeLens/resolve", lens.clone());
    let title = resolved["command"]["title"].as_str().unwrap();
    contains(title, &["1 collected launch · ", " rewrites"]);
    let hints = hints(&mut client, &path);
    for hint in [
        ("grid: varies", "(count + kExpandBlock - 1) / kExpandBlock"),
        ("varies", "count"),
    ] {
        let has = hints
            .iter()
            .any(|(label, text)| label == hint.0 && hint.1.ends_with(text));
        assert!(has, "{hint:?}: {hints:?}");
    }
    let (told, _) = hover(&mut client, &path, "expands.launch(", "expands.l".len());
    contains(
        &told,
        &[
            "**launch of `expand`** (",
            " in `bfs_level`, collected per grid, run after the parent: each thread that gets here launches it\n",
            // What collects fewer launches is offered, but isn't the best.
            " rewrites fit; none is likely to be faster",
            "\n---\n",
            "one grid, which follows the parent in its stream, runs all grids of `expand` that a grid launches here",
            "| *reached* | varying",
            "| *grid* | `(count + kExpandBlock - 1) / kExpandBlock` | varying |",
            "| *block* | `kExpandBlock` | constant |",
            "| `count` | `count` | varying |",
            "Go back to plain launches",
        ],
    );
    // The answer first, as for a launch.
    let found = ["6 rewrites fit; ", "\n---\n", "| *runs* |", "| *grid* |", "✓ fits"].map(|part| told.find(part));
    assert!(
        found.is_sorted() && found.iter().all(Option::is_some),
        "{found:?}: {told}"
    );
    let (told, _) = hover(&mut client, &path, "launch((count + k", "launch((cou".len());
    contains(
        &told,
        &[
            "**grid size** of the launch of `expand`: `(count + kExpandBlock - 1) / kExpandBlock`",
            "each thread may have a value of its own",
        ],
    );
    let (told, _) = hover(&mut client, &path, "bfs_level(const", 1);
    contains(
        &told,
        &["Launch of `expand`", " rewrites fit; none is likely to be faster"],
    );
    let (told, _) = hover(&mut client, &path, "kExpandBlock", 1);
    contains(
        &told,
        &["**`kExpandBlock`** = 128", "share it, so that they change together"],
    );
}

#[test]
fn hints_follow_settings_and_range() {
    let root = Directory::new();
    root.write("child.cuh", CHILD.as_bytes());
    let path = root.write("parent.cu", PARENT.as_bytes());
    let mut client = Client::spawn(workspace::gridfuse_bin(), &["lsp"]);
    client.initialize(Some(root.path()), &Capabilities::default());
    client.open(&root.file("child.cuh"), CHILD);
    client.open(&path, PARENT);
    let of = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    };
    let config = [("grid: varies", "count + 31) / 32"), ("block: uniform", "n")];
    assert_eq!(hints(&mut client, &path), of(&config));
    let all = client.inlay_hints(&path);
    contains(
        all[0]["tooltip"]["value"].as_str().unwrap(),
        &["**grid size**", "may have a value of its own"],
    );
    // The manifest asks for arguments, too; then the client wants nothing but them.
    root.write("gridfuse.toml", b"[inlay-hints]\narguments = true\n");
    let changed = json!({ "changes": [{ "uri": uri(&root.file("gridfuse.toml")), "type": 1 }] });
    client.notify("workspace/didChangeWatchedFiles", changed);
    client.wait_server_request("workspace/inlayHint/refresh", |_| true);
    let arguments = [
        ("varies", "out"),
        ("uniform per block", "out + blockIdx.x"),
        ("varies", "count"),
        ("uniform", "out"),
        ("uniform", "n"),
    ];
    eventually(|| {
        let found = hints(&mut client, &path);
        arguments
            .iter()
            .chain(&config)
            .all(|(label, text)| found.contains(&((*label).to_owned(), (*text).to_owned())))
    });
    let settings = json!({ "settings": { "gridfuse": { "inlayHints": { "config": false } } } });
    client.notify("workspace/didChangeConfiguration", settings);
    eventually(|| hints(&mut client, &path) == of(&arguments));
    // Only what is in sight.
    let line = PARENT.lines().position(|line| line.contains("if (n > 1)")).unwrap();
    let range = json!({ "start": { "line": line, "character": 0 }, "end": { "line": line + 1, "character": 0 } });
    let seen = client.document_request("textDocument/inlayHint", &path, json!({ "range": range }));
    assert_eq!(seen.as_array().unwrap().len(), 2, "{seen:#}");
    client.shutdown();
}

#[track_caller]
fn eventually(condition: impl FnMut() -> bool) {
    wait_until("it comes true", condition);
}

#[test]
fn the_call_hierarchy_is_the_launch_graph() {
    let (root, mut client, path) = two_files(&Capabilities::default());
    let prepare = |client: &mut Client, path: &Path, offset: usize| {
        let position = client.position(path, offset);
        client.document_request(
            "textDocument/prepareCallHierarchy",
            path,
            json!({ "position": position }),
        )
    };
    // From the definition, and from a launch.
    let child = root.file("child.cuh");
    let defined = prepare(&mut client, &child, CHILD.find("child").unwrap() + 1);
    let launched = prepare(&mut client, &path, PARENT.find("child<<<1, 1>>>").unwrap() + 1);
    assert_eq!(defined, launched);
    let item = defined[0].clone();
    assert_eq!(
        (&item["name"], &item["detail"], &item["uri"]),
        (&json!("child"), &json!("kernel"), &json!(uri(&child)))
    );
    let calls = client.request("callHierarchy/incomingCalls", json!({ "item": item }));
    let from: Vec<(&str, &str, usize)> = calls
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            let name = call["from"]["name"].as_str().unwrap();
            (
                name,
                call["from"]["detail"].as_str().unwrap(),
                call["fromRanges"].as_array().unwrap().len(),
            )
        })
        .collect();
    let expected = [
        ("helper", "device function", 1),
        ("parent", "kernel", 2),
        ("main", "host function", 1),
    ];
    assert_eq!(from, expected);
    let calls = client.request("callHierarchy/outgoingCalls", json!({ "item": item }));
    assert_eq!(calls, json!([]));
    let host = prepare(&mut client, &path, PARENT.find("main").unwrap());
    let calls = client.request("callHierarchy/outgoingCalls", json!({ "item": host[0] }));
    let to: Vec<&str> = calls
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["to"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(to, ["parent", "child"]);
    // Nothing to do with launches.
    assert_eq!(
        prepare(&mut client, &path, PARENT.find("blockIdx").unwrap()),
        Value::Null
    );
    client.shutdown();
}

#[test]
fn titles_are_short_and_the_edit_says_what_it_assumes() {
    let root = corpus();
    let capabilities = Capabilities {
        change_annotations: true,
        ..Capabilities::default()
    };
    let mut client = start(root.path(), &capabilities);
    let path = root.file("bfs.cu");
    client.open(&path, &root.read("bfs.cu"));
    let at = client.find(&path, LAUNCH) + 1;
    let actions = client.code_actions(&path, at..at, &[], &[]);
    let title = "Collect launches per block — 1 assumption";
    let action = actions.iter().find(|action| action["title"] == title);
    let action = action.unwrap_or_else(|| panic!("no {title:?} in {actions:#?}"));
    let edit = client.resolve(action)["edit"].clone();
    let annotation = &edit["changeAnnotations"]["assumptions"];
    assert_eq!(annotation["label"], "Collect launches per block");
    let description = annotation["description"].as_str().unwrap();
    contains(
        description,
        &["assumes grids of `expand`", "different threads of a block launch"],
    );
    apply_workspace_edit(root.path(), &edit, client.encoding()).expect("an edit that fits");
    assert!(root.read("bfs.cu").contains("gridfuse::PerBlock"));
    client.shutdown();
}

#[test]
fn a_suppression_that_is_not_needed_can_be_removed() {
    let program = format!("// gridfuse: allow(device-sync)\n{CHILD}");
    let root = Directory::new();
    let path = root.write("a.cu", program.as_bytes());
    let mut client = start(root.path(), &Capabilities::default());
    client.open(&path, &program);
    let found = client.diagnostics(&path);
    assert_eq!(found[0]["code"], "unused-suppression", "{found:#?}");
    let at = client.find(&path, "device-sync") + 1;
    let actions = client.code_actions(&path, at..at, &["quickfix"], &[]);
    assert_eq!(actions[0]["title"], "Remove this suppression");
    assert_eq!(actions[0]["isPreferred"], true);
    apply_workspace_edit(root.path(), &actions[0]["edit"], client.encoding()).expect("an edit that fits");
    assert_eq!(root.read("a.cu"), CHILD);
    client.shutdown();
}

#[test]
fn files_of_include_directories_are_forgotten_with_them() {
    let elsewhere = Directory::new();
    elsewhere.write("child.cuh", CHILD.as_bytes());
    let root = Directory::new();
    let path = root.write("parent.cu", PARENT.as_bytes());
    let mut client = start(root.path(), &Capabilities::default());
    client.open(&path, PARENT);
    let configure = |client: &mut Client, directories: Value| {
        let settings = json!({ "settings": { "gridfuse": { "includeDirs": directories } } });
        client.notify("workspace/didChangeConfiguration", settings);
    };
    let known = |client: &mut Client, wanted: bool| {
        eventually(|| {
            hover(client, &path, "child<<<1, 32>>>(out, n)", 1)
                .0
                .contains("no definition found")
                != wanted
        });
    };
    known(&mut client, false);
    for _ in 0..2 {
        configure(&mut client, json!([elsewhere.path()]));
        known(&mut client, true);
        configure(&mut client, json!([]));
        known(&mut client, false);
    }
    client.shutdown();
}

#[test]
fn the_best_rewrite_is_the_first_in_the_menu() {
    let (root, mut client, path) = bfs();
    let at = client.find(&path, LAUNCH) + 1;
    let actions = client.code_actions(&path, at..at, &["quickfix", "refactor"], &[]);
    let titles = titles(&actions);
    assert!(titles[0].starts_with("Best: "), "{titles:#?}");
    assert_eq!(actions[0]["kind"], "quickfix", "{titles:#?}");
    assert_eq!(actions[0]["isPreferred"], true, "{titles:#?}");
    let listed = gridfuse(root.path(), &["check", "bfs.cu"]).expect_code(0);
    let first = listed.stdout.lines().find(|line| line.starts_with("help: "));
    assert!(
        first.is_some_and(|line| line.starts_with("help: Best: ")),
        "{}",
        listed.stdout
    );
    client.shutdown();
}

fn titles(actions: &[Value]) -> Vec<&str> {
    actions.iter().filter_map(|action| action["title"].as_str()).collect()
}

/// An editor shows some 60 characters of a title; what it assumes is said where there is room.
#[test]
fn titles_are_read_at_a_glance() {
    let root = corpus();
    let mut client = start(root.path(), &Capabilities::default());
    for (name, launch) in [
        ("bfs.cu", LAUNCH),
        ("sc.cu", "compact<<<1, kThreads>>>(in"),
        ("bt_malloc.cu", "place<<<"),
    ] {
        let path = root.file(name);
        client.open(&path, &root.read(name));
        let at = client.find(&path, launch) + 1;
        let actions = client.code_actions(&path, at..at, &[], &[]);
        assert!(actions.len() > 5, "{name}: {actions:#?}");
        for title in titles(&actions) {
            assert!(title.chars().count() <= 60, "{name}: {title}");
            let Some((_, assumed)) = title.split_once(" — ") else {
                continue;
            };
            let (number, word) = assumed.split_once(' ').expect("a number and a word");
            let word_wanted = if number == "1" { "assumption" } else { "assumptions" };
            assert!(
                number.parse::<u8>().is_ok_and(|number| number > 0) && word == word_wanted,
                "{title}"
            );
        }
    }
    client.shutdown();
}

/// A key may be bound to a sort of rewrites: whoever asks for one gets those of it, and who asks for rewrites gets all.
#[test]
fn the_kind_of_an_action_says_what_sort_of_rewrite_it_is() {
    let (_root, mut client, path) = bfs();
    let kinds = client.server_capabilities()["codeActionProvider"]["codeActionKinds"].clone();
    let kinds: Vec<&str> = kinds.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let at = client.find(&path, LAUNCH) + 1;
    let mut ask = |only: &str| client.code_actions(&path, at..at, &[only], &[]);
    let all = ask("refactor.rewrite");
    for action in &all {
        let kind = action["kind"].as_str().unwrap();
        assert!(kind.starts_with("refactor.rewrite."), "{action:#}");
        assert!(kinds.contains(&kind), "{kind} is none of {kinds:?}");
    }
    assert!(
        kinds.contains(&"quickfix") && kinds.contains(&"refactor.rewrite"),
        "{kinds:?}"
    );
    let page = std::fs::read_to_string(workspace::root().join("editors/README.md")).unwrap();
    for sort in kinds.iter().filter_map(|kind| kind.strip_prefix("refactor.rewrite.")) {
        assert!(
            page.contains(&format!("`{sort}`")),
            "editors/README.md doesn't name `{sort}`"
        );
    }
    assert_eq!(ask("refactor").len(), all.len());
    for title in ["Best: ", "Collect launches per block", "Run small grids as a loop"] {
        assert!(titles(&all).iter().any(|t| t.starts_with(title)), "{title}: {all:#?}");
    }
    let collecting = ask("refactor.rewrite.aggregate");
    assert!(collecting.len() >= 6, "{collecting:#?}");
    assert!(
        titles(&collecting).iter().all(|title| title.starts_with("Collect ")),
        "{collecting:#?}"
    );
    let looping = ask("refactor.rewrite.threshold");
    assert!(
        titles(&looping).len() == 3
            && titles(&looping)
                .iter()
                .all(|title| title.contains("as a loop") || title.contains("in the parent's threads")),
        "{looping:#?}"
    );
    assert_eq!(ask("refactor.rewrite.thresh"), [] as [Value; 0]);
    // As quick fixes they stand with what they mend.
    assert!(ask("quickfix").iter().all(|action| action["kind"] == "quickfix"));
    client.shutdown();
}

/// What optimizes may do what another one does: a menu has it once, with all that it mends. Who asks for the other one by its kind gets it.
#[test]
fn an_edit_stands_once_in_a_menu() {
    // Without a store that many threads make, `optimize` does what this one does.
    let root = corpus();
    let mut client = start(root.path(), &Capabilities::default());
    let path = root.file("bfs.cu");
    client.open(
        &path,
        &root
            .read("bfs.cu")
            .replace("*deepest = level + 1;", "dist[v] = level + 1;"),
    );
    let at = client.find(&path, LAUNCH) + 1;
    let actions = client.code_actions(&path, at..at, &[], &[]);
    let twin = "Run child grids in the parent's threads";
    let is_twin = |action: &Value| action["title"].as_str().unwrap().starts_with(twin);
    assert!(!actions.iter().any(is_twin), "{actions:#?}");
    let mut edits: Vec<Value> = Vec::new();
    for action in actions.iter().filter(|action| action["disabled"].is_null()) {
        let edit = client.resolve(action)["edit"].clone();
        assert!(!edits.contains(&edit), "{action:#}");
        edits.push(edit);
    }
    let running = client.code_actions(&path, at..at, &["refactor.rewrite.threshold"], &[]);
    let other = running.iter().find(|action| is_twin(action)).expect("the other one");
    assert_eq!(client.resolve(other)["edit"], client.resolve(&actions[0])["edit"]);
    client.shutdown();
}

/// Each of two launches of a kernel would collect both.
#[test]
fn launches_that_are_rewritten_together_are_offered_once() {
    let twice = "    if (n > 9) child<<<1, 32>>>(out, n);\n    if (n > 5) child<<<1, 32>>>(out, n);\n";
    let program = format!(
        r#"__global__ void child(int* out, int n) {{ out[threadIdx.x] = n; }}
__global__ void parent(int* out, int n) {{
{twice}}}
void run(int* out, int n) {{ parent<<<n, 64>>>(out, n); }}
"#
    );
    let root = Directory::new();
    let path = root.write("a.cu", program.as_bytes());
    let mut client = start(root.path(), &Capabilities::default());
    client.open(&path, &program);
    let from = client.find(&path, twice);
    let both = client.code_actions(&path, from..from + twice.len(), &["refactor.rewrite"], &[]);
    let titled = |title: &str| titles(&both).iter().filter(|t| t.starts_with(title)).count();
    assert_eq!(titled("Collect launches per block"), 1, "{both:#?}");
    assert_eq!(titled("Launch into the fire-and-forget stream"), 2, "{both:#?}");
    client.shutdown();
}

#[test]
fn a_hint_says_once_what_it_assumes() {
    let root = Directory::new();
    let program = r#"
__global__ void child(int* out, int n) { out[n] = n; }
__global__ void parent(int* out) {
    int both = threadIdx.x / 32 + 7 * (threadIdx.x / 32);
    child<<<both + 1, 32>>>(out, both);
}
void run(int* out) { parent<<<2, 64>>>(out); }
"#;
    let path = root.write("a.cu", program.as_bytes());
    let settings = json!({ "inlayHints": { "arguments": true } });
    let mut client = Client::spawn(workspace::gridfuse_bin(), &["lsp"]);
    client.initialize_with(Some(root.path()), &Capabilities::default(), settings);
    client.open(&path, program);
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 9, "character": 0 } });
    let params = json!({ "textDocument": { "uri": uri(&path) }, "range": whole });
    let hints = client.request("textDocument/inlayHint", params);
    let told: Vec<&str> = hints
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|hint| hint["tooltip"]["value"].as_str())
        .filter(|text| text.contains("assumes"))
        .collect();
    assert!(!told.is_empty(), "{hints:#}");
    for text in told {
        assert_eq!(text.matches("blocks are one-dimensional").count(), 1, "{text}");
    }
    client.shutdown();
}

#[test]
fn a_wait_for_children_says_what_it_is_and_what_replaces_it() {
    let root = Directory::new();
    let program = r#"
__global__ void square(int* values) { values[threadIdx.x] *= values[threadIdx.x]; }
__global__ void sums(int* values, int* out) {
    int i = threadIdx.x;
    if (i == 0) {
        square<<<1, 32>>>(values);
        cudaDeviceSynchronize();
    }
    __syncthreads();
    out[i] = values[i] + values[(i + 1) % 32];
}
__device__ int helper(int* values) {
    ::cudaDeviceSynchronize();
    return values[0];
}
void run(int* values, int* out) {
    sums<<<1, 32>>>(values, out);
    cudaDeviceSynchronize();
}
"#;
    let path = root.write("a.cu", program.as_bytes());
    let mut client = start(root.path(), &Capabilities::default());
    client.open(&path, program);
    let (text, about) = hover(&mut client, &path, "cudaDeviceSynchronize();\n    }", 3);
    assert_eq!(about, "cudaDeviceSynchronize()");
    for part in [
        "in device code",
        "CUDA 12",
        "Replace the wait for child grids",
        "fits here",
        "cudaStreamTailLaunch",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (text, _) = hover(&mut client, &path, "::cudaDeviceSynchronize", 4);
    assert!(text.contains("doesn't fit here") && text.contains("By hand"), "{text}");
    let host = client.find(&path, "cudaDeviceSynchronize();\n}\n");
    let at_host = program.rfind("cudaDeviceSynchronize").unwrap();
    assert!(host <= at_host);
    assert_eq!(client.hover(&path, at_host + 2), Value::Null, "the host may wait");
    client.shutdown();
}

#[test]
fn what_cannot_be_done_comes_last_in_the_menu() {
    let root = corpus();
    let capabilities = Capabilities {
        extra: json!({ "experimental": { "commands": { "commands": ["gridfuse.measure"] } } }),
        ..Capabilities::default()
    };
    // It seems to have a compiler and a GPU.
    let cuda = Directory::new();
    let tools: &[&str] = if cfg!(windows) {
        &["nvcc.exe", "nvidia-smi.exe"]
    } else {
        &["nvcc", "nvidia-smi"]
    };
    for tool in tools {
        cuda.write(tool, b"");
    }
    let mut command = std::process::Command::new(workspace::gridfuse_bin());
    command.arg("lsp").env("PATH", cuda.path());
    let mut client = Client::spawn_command(command);
    client.initialize(Some(root.path()), &capabilities);
    let path = root.file("bfs.cu");
    client.open(&path, &root.read("bfs.cu"));
    let at = client.find(&path, LAUNCH) + 1;
    let actions = client.code_actions(&path, at..at, &[], &[]);
    let place = actions.iter().position(|action| action["title"] == "Run on GPU");
    let disabled = actions.iter().position(|action| !action["disabled"].is_null());
    assert!(
        place.is_some() && disabled.is_some() && place < disabled,
        "{actions:#?}"
    );
    let last = &actions[disabled.unwrap()..];
    assert!(
        last.iter().all(|action| action["disabled"]["reason"].is_string()),
        "{last:#?}"
    );
    client.shutdown();
}
