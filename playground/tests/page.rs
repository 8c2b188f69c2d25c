//! The playground in a real browser: built, opened, used, and compared with what the library says outside of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use gridfuse_playground::session::Session;
use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The target that the page is compiled for.
const TARGET: &str = "wasm32-unknown-unknown";

/// Whether the compiler has the target's standard library, which rustup fetches.
fn has_target() -> bool {
    let there = || {
        let printed = Command::new("rustc")
            .current_dir(root())
            .args(["--print", "target-libdir", "--target", TARGET])
            .output();
        printed.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
    };
    if there() {
        return true;
    }
    let mut terminal = std::io::stderr().lock();
    // Past the harness, which keeps what tests print to itself.
    let _ = writeln!(terminal, "tests: rustup adds the target {TARGET}");
    let added = Command::new("rustup")
        .current_dir(root())
        .args(["target", "add", TARGET])
        .stdin(Stdio::null())
        .status();
    if added.is_ok_and(|status| status.success()) && there() {
        return true;
    }
    let _ = writeln!(
        terminal,
        "tests: {TARGET} can't be had here: the playground is neither built nor opened"
    );
    false
}

/// The directory of the page, built anew.
fn built() -> PathBuf {
    let begin = Instant::now();
    let output = Command::new(root().join(".ci/package"))
        .current_dir(root())
        .args(["playground", "dev"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    println!("built in {:.0} s", begin.elapsed().as_secs_f64());
    let printed = String::from_utf8(output.stdout).unwrap();
    root().join(printed.lines().last().unwrap())
}

fn chromium() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let candidates = names
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |directory| directory.join(name)));
    candidates
        .into_iter()
        .find(|candidate| candidate.is_file())
        .expect("this test needs chromium, chromium-browser or google-chrome; please install it")
}

/// Uses the page in this directory.
fn used(page: &Path) -> Output {
    let directory = tempfile::tempdir().unwrap();
    Command::new("node")
        .arg(root().join("playground/test/page.mjs"))
        .env("GRIDFUSE_TEST_CHROMIUM", chromium())
        .env("GRIDFUSE_TEST_PLAYGROUND", page)
        .env("GRIDFUSE_TEST_DIRECTORY", directory.path())
        .stdin(Stdio::null())
        .output()
        .expect("this test needs Node.js 20 or newer; please install it")
}

/// What the library makes of a program, outside of a browser.
fn ask(session: &mut Session, text: &str, mut question: Value) -> Value {
    question["files"] = json!([{ "name": "bfs.cu", "text": text }]);
    serde_json::from_str(&session.answer(&question.to_string())).unwrap()
}

#[test]
fn the_page_says_what_the_library_says() {
    if !has_target() {
        return;
    }
    let page = built();
    let output = used(&page);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!(
        "bfs.cu is checked in {} ms the first time, and in {} ms later",
        told["first"], told["again"]
    );

    let text = fs::read_to_string(root().join("tests/corpus/bfs.cu")).unwrap();
    let mut session = Session::default();
    let checked = ask(&mut session, &text, json!({ "ask": "check" }));
    let ids = checked["findings"].as_array().unwrap().iter();
    let ids: Vec<&Value> = ids.map(|finding| &finding["id"]).collect();
    assert!(ids.contains(&&json!("serialized-launches")), "{ids:?}");
    assert_eq!(told["findings"], json!(ids));
    assert_eq!(told["findingsAgain"], json!(ids));
    assert_eq!(told["version"], env!("CARGO_PKG_VERSION"));

    let offset = &checked["launches"][0]["place"]["start"]["offset"];
    let explained = ask(&mut session, &text, json!({ "ask": "explain", "offset": offset }));
    let launch = &explained["launch"];
    let menu = launch["menu"].as_array().unwrap().iter();
    let fitting = menu.filter(|entry| ["eligible", "assumes"].contains(&entry["verdict"].as_str().unwrap()));
    let fitting: Vec<&Value> = fitting.map(|entry| &entry["rewrite"]).collect();
    assert_eq!(told["menu"], json!(fitting));
    let shown = told["launch"].as_str().unwrap();
    assert!(shown.contains(launch["sentence"].as_str().unwrap()), "{shown}");

    let rewrite = json!({ "ask": "rewrite", "offset": offset, "rewrite": "aggregate-block" });
    let rewritten = ask(&mut session, &text, rewrite);
    let files = rewritten["files"].as_array().unwrap();
    assert_eq!(files.len(), 2);
    // Nobody reads two whole programs.
    assert!(told["rewritten"] == files[0]["text"], "the page has another program");
    assert_eq!(files[1]["name"], "gridfuse.cuh");
    assert!(told["header"] == files[1]["text"], "the page has another header");
    let shown = told["difference"].as_str().unwrap();
    assert!(shown.contains("+#include \"gridfuse.cuh\""), "{shown}");

    let message = told["panic"]["message"].as_str().unwrap();
    assert!(message.contains("started anew"), "{message}");
    assert!(message.contains("somebody asked for a panic"), "{message}");

    // A page without gridfuse says so; and the test notices.
    let broken = tempfile::tempdir().unwrap();
    for name in ["index.html", "playground.css", "playground.js", "engine.js"] {
        fs::copy(page.join(name), broken.path().join(name)).unwrap();
    }
    fs::create_dir(broken.path().join("examples")).unwrap();
    for name in ["bfs.cu", "list.json"] {
        let name = Path::new("examples").join(name);
        fs::copy(page.join(&name), broken.path().join(&name)).unwrap();
    }
    fs::write(broken.path().join("gridfuse.wasm"), "no WebAssembly").unwrap();
    let output = used(&broken.path().canonicalize().unwrap());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(errors.contains("gridfuse has failed"), "{errors}");
}
