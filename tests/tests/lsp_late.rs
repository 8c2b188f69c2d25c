//! What takes longer than a user waits: the client shows that the server works, and requests are answered with what is known.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::PathBuf;
use std::process::Command;

use gridfuse_tests::cli::{Directory, directory};
use gridfuse_tests::lsp_client::{ANSWER_WITHIN, Capabilities, Client, is_working};
use gridfuse_tests::patience::wait_until;
use gridfuse_tests::workspace::gridfuse_bin;
use serde_json::Value;

const PARENT: &str = "__global__ void child(int* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = i;
}
__global__ void parent(int* out, const int* row, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int count = row[v + 1] - row[v];
    if (count > 0) child<<<(count + 127) / 128, 128>>>(out + row[v], count);
}
";

/// A server whose users wait for so many milliseconds.
fn open(text: &str, milliseconds: &str) -> (Directory, PathBuf, Client) {
    let root = directory(&[("late.cu", text.as_bytes())]);
    let mut command = Command::new(gridfuse_bin());
    command.arg("lsp").env(ANSWER_WITHIN, milliseconds);
    let mut client = Client::spawn_command(command);
    client.initialize(Some(root.path()), &Capabilities::default());
    let path = root.file("late.cu");
    client.open(&path, text);
    (root, path, client)
}

fn text_of(hover: &Value) -> &str {
    hover["contents"]["value"].as_str().unwrap_or_default()
}

#[test]
fn nobody_waits_for_verdicts() {
    // Nobody waits at all: every answer is late.
    let (_root, path, mut client) = open(PARENT, "0");
    let at = client.find(&path, "child<<<") + 1;
    let hover = client.hover(&path, at);
    let text = text_of(&hover);
    assert!(
        text.contains("still being worked out") || text.contains("still reading this code"),
        "{text}"
    );
    assert!(!text.contains("aggregate-block"), "{text}");
    let actions = client.code_actions(&path, at..at, &[], &[]);
    let [action] = actions.as_slice() else {
        panic!("{actions:#?}");
    };
    assert_eq!(action["title"], "gridfuse is still reading this code");
    assert_eq!(action["disabled"]["reason"], "Open the menu again in a moment.");
    // Lenses are asked for again when they are worked out.
    let lens = client.code_lenses(&path).into_iter().next().unwrap();
    let resolved = client.request("codeLens/resolve", lens);
    let title = resolved["command"]["title"].as_str().unwrap();
    assert!(title == "1 launch · …" || title.contains("still reading"), "{title}");
    client.wait_server_request("workspace/codeLens/refresh", |_| true);
    // What comes of such a request is there afterwards, for somebody who waits a little.
    client.shutdown();
}

#[test]
fn what_is_known_is_shown_and_the_rest_follows() {
    let (_root, path, mut client) = open(PARENT, "0");
    let at = client.find(&path, "child<<<") + 1;
    // The file is read soon, whatever else is: then the launch itself is told.
    wait_until("the launch is told without its verdicts", || {
        let hover = client.hover(&path, at);
        let text = text_of(&hover);
        text.contains("launch of `child`") && text.contains("The verdicts of the rewrites are still being worked out")
    });
    client.shutdown();
}

#[test]
fn patient_users_get_everything() {
    let (_root, path, mut client) = open(PARENT, "600000");
    let at = client.find(&path, "child<<<") + 1;
    let hover = client.hover(&path, at);
    assert!(text_of(&hover).contains("aggregate-block"), "{hover:#}");
    client.shutdown();
}

#[test]
fn the_client_shows_that_the_server_works() {
    let kernels: String = (0..400)
        .map(|index| {
            PARENT
                .replace("child", &format!("child{index}"))
                .replace("parent", &format!("parent{index}"))
        })
        .collect();
    let (_root, _path, client) = open(&kernels, "600000");
    let begun = client.wait_notification("$/progress", |progress| {
        is_working(progress) && progress["value"]["kind"] == "begin"
    });
    assert_eq!(begun["value"]["title"], "gridfuse: reading the code");
    let token = begun["token"].clone();
    client.wait_notification("$/progress", |progress| {
        progress["token"] == token && progress["value"]["kind"] == "end"
    });
    let requests = client.server_requests();
    let created =
        |(method, params): &(String, Value)| method == "window/workDoneProgress/create" && params["token"] == token;
    assert!(requests.iter().any(created), "the token wasn't made known");
    client.shutdown();
}
