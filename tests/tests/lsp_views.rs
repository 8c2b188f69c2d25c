//! What the language server shows of the launches in a program, over the real protocol.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::{Path, PathBuf};

use gridfuse_tests::cli::{Directory, gridfuse};
use gridfuse_tests::lsp_client::{Capabilities, Client, path_of};
use gridfuse_tests::workspace;
use serde_json::Value;

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
    (
        hover["contents"]["value"].as_str().unwrap_or_default().to_owned(),
        about,
    )
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

const LAUNCH: &str = "expand<<<(count + 127) / 128, 128>>>(col, dist, deepest, level, begin, count)";

#[test]
fn hover_on_a_launch_and_its_operands() {
    let (_root, mut client, path) = bfs();
    let (text, about) = hover(&mut client, &path, LAUNCH, 1);
    assert_eq!(about, LAUNCH);
    contains(
        &text,
        &[
            "**launch of `expand`**",
            "by many threads of `bfs_level`",
            "| *reached* | varying: only threads with `count > 0` get here",
            "| *launches* | `0 or 1` per thread, `up to blockDim` per block,",
            "| *stream* | NULL: ",
            "| `level` | `level` | grid-uniform | depends on the parameter level",
            "| if it holds that | (1) |",
            "\n(1) grids of `expand`",
        ],
    );
    // One page for each rewrite, which is there.
    let (_, link) = text.split_once("[Aggregate launches per block](").expect("a link");
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
            "| a warp | may differ |",
            "| the grid | may differ |",
            "loaded through row",
            "```cuda\n",
            "carry it one by one",
        ],
    );
    let (text, about) = hover(&mut client, &path, LAUNCH, LAUNCH.find("level").unwrap());
    assert_eq!(about, "level");
    contains(
        &text,
        &[
            "| the grid | one value |",
            "once for all, at every granularity",
            "int level, int n) {",
        ],
    );
    let (text, about) = hover(&mut client, &path, LAUNCH, LAUNCH.find("127").unwrap());
    assert_eq!(about, "(count + 127) / 128");
    contains(
        &text,
        &["**grid size** of the launch of `expand`", "| a block | may differ |"],
    );
    assert!(!text.contains("carry"), "{text}");
    let (text, about) = hover(&mut client, &path, LAUNCH, LAUNCH.find(", 128").unwrap() + 3);
    assert_eq!(about, "128");
    contains(&text, &["**block size**", "a constant"]);
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
            "```cuda\n__global__ void bfs_level(const int* row",
            "| Launches | ",
            "| `expand` | ",
            "aggregate-grid, ",
            "| Launched from | ",
            "| host code | ",
        ],
    );
    let (text, _) = hover(&mut client, &path, "expand(const", 2);
    contains(
        &text,
        &[
            "**kernel `expand`**",
            "| `bfs_level` | ",
            "`up to blockDim * gridDim` |",
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
            &["**`gridfuse::Arena`**", "made\nby arena_for", "bytes_per_thread"][..],
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
                "collects launches of `bfs_level`",
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
        ("expand_serial(", 2, &["one after the other, in the calling thread"]),
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
    client.shutdown();
}
