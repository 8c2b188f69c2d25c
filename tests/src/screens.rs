//! The page of `docs/` that shows what gridfuse prints and what an editor shows, taken from real runs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cli::{Directory, state_home};
use crate::docs::NOTE;
use crate::lsp_client::{Capabilities, Client};
use crate::workspace;

/// Name of the page.
pub const NAME: &str = "screens.md";

/// The program, in the fixtures.
const PROGRAM: &str = "visit.cu";

const LAUNCH: &str = "expand<<<";

/// Makes the page.
///
/// # Panics
/// When gridfuse can't be run.
pub fn page() -> String {
    let directory = workspace::root().join("tests/fixtures/screens");
    let mut page = format!(
        "{NOTE}\n\n# Screens\n\nWhat gridfuse prints and shows for [{PROGRAM}](../tests/fixtures/screens/{PROGRAM}), taken from real runs.\n"
    );
    for (arguments, about) in [
        (
            &["check", PROGRAM][..],
            "What is slow or wrong, why, and the commands that mend it.",
        ),
        (
            &["explain", "visit.cu:12"],
            "All that is known about a launch, and what every rewrite says.",
        ),
        (
            &["graph", PROGRAM, "--format", "mermaid"],
            "Who launches what, and how often.",
        ),
        (
            &["rewrite", PROGRAM, "--at", "12", "--apply", "fire-and-forget"],
            "A rewrite as a difference; what it assumes is told on standard error.",
        ),
    ] {
        let command = arguments.join(" ");
        let language = if arguments.contains(&"mermaid") {
            "mermaid"
        } else {
            "text"
        };
        let output = run(&directory, arguments);
        page.push_str(&format!(
            "\n## gridfuse {command}\n\n{about}\n\n```{language}\n{output}```\n"
        ));
    }
    let sarif = run(&directory, &["check", PROGRAM, "--format", "github"]);
    page.push_str(&format!(
        "\n## gridfuse check {PROGRAM} --format github\n\nThe same for a pipeline.\n\n```text\n{sarif}```\n"
    ));
    let path = directory.join(PROGRAM);
    let text = std::fs::read_to_string(&path).expect("the program");
    let mut client = Client::spawn(workspace::gridfuse_bin(), &["lsp"]);
    client.initialize(Some(&directory), &Capabilities::default());
    client.open(&path, &text);
    for (what, needle, skip) in [
        ("a launch", LAUNCH, 1),
        ("an argument", "begin, count);\n}", 1),
        ("a kernel", "visit(const", 1),
    ] {
        let at = client.find(&path, needle) + skip;
        let hover = client.hover(&path, at)["contents"]["value"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        page.push_str(&format!("\n## Hover on {what}\n\n{}\n", relative(hover.trim())));
    }
    let at = client.find(&path, LAUNCH) + 1;
    page.push_str("\n## Menu at the launch\n\nThe best action first, what can't be done last, with the reason.\n\n");
    page.push_str(&menu(&client.code_actions(&path, at..at, &[], &[])));
    client.shutdown();
    page.push_str(&afterwards(&text));
    page
}

/// The actions of a menu, as a table.
fn menu(actions: &[Value]) -> String {
    let mut table = "| action | kind | |\n|---|---|---|\n".to_owned();
    for action in actions {
        let word = |field: &str| action[field].as_str().unwrap_or_default();
        let reason = action["disabled"]["reason"].as_str().unwrap_or_default();
        let told = match action["isPreferred"] == true {
            true => "preferred",
            false => reason,
        };
        table.push_str(&format!(
            "| {} | `{}` | {} |\n",
            word("title"),
            word("kind"),
            told.replace('|', "\\|")
        ));
    }
    table
}

/// What is shown of a copy of the program after the best rewrite, and when that is taken back.
fn afterwards(program: &str) -> String {
    let directory = Directory::new();
    directory.write(PROGRAM, program.as_bytes());
    let at = "12:20";
    let mut page = String::from("\n# After the best rewrite\n");
    let mut capture = |arguments: &[&str], about: &str| {
        let output = run(directory.path(), arguments);
        let command = arguments.join(" ");
        let language = if arguments.contains(&"mermaid") {
            "mermaid"
        } else {
            "text"
        };
        page.push_str(&format!(
            "\n## gridfuse {command}\n\n{about}\n\n```{language}\n{output}```\n"
        ));
    };
    capture(
        &["rewrite", PROGRAM, "--at", at, "--apply", "optimize", "--in-place"],
        "The program and the header beside it are written; what is assumed is told on standard error.",
    );
    capture(
        &["check", PROGRAM],
        "Nothing is left to find, in the runtime's header neither.",
    );
    capture(
        &["graph", PROGRAM, "--format", "mermaid"],
        "The same kernels launch each other, collected.",
    );
    capture(&["explain", PROGRAM], "A collected launch is explained as a launch is.");
    let collected = std::fs::read_to_string(directory.file(PROGRAM)).expect("the program");
    let line = collected
        .lines()
        .position(|line| line.contains(".launch("))
        .expect("a collected launch")
        + 1;
    let place = line.to_string();
    capture(
        &["rewrite", PROGRAM, "--at", &place, "--apply", "revert", "--in-place"],
        "The program is as it was, to the byte.",
    );
    let reverted = std::fs::read_to_string(directory.file(PROGRAM)).expect("the program");
    assert_eq!(reverted, program, "the rewrite isn't taken back");
    page
}

fn run(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new(workspace::gridfuse_bin())
        .current_dir(directory)
        .args(arguments)
        .env("COLUMNS", "80")
        .env("XDG_STATE_HOME", state_home())
        .stdin(Stdio::null())
        .output()
        .expect("gridfuse starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Links to files of this machine become links inside of the repository.
fn relative(markdown: &str) -> String {
    let mut out = String::new();
    let mut rest = markdown;
    while let Some((before, after)) = rest.split_once("](file://") {
        let (url, behind) = after.split_once(')').expect("the end of a link");
        let page = ["/rewrites/", "/diagnostics/"].iter().find_map(|part| url.find(part));
        let target = match (page, url.rsplit_once('/')) {
            (Some(at), _) => url[at + 1..].to_owned(),
            (None, Some((_, name))) => format!("../tests/fixtures/screens/{name}"),
            (None, None) => url.to_owned(),
        };
        out.push_str(&format!("{before}]({target})"));
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::relative;

    #[test]
    fn links_stay_in_the_repository() {
        let text = "[a](file:///x/rewrites/a.md) | [line 3](file:///y/visit.cu#L3)";
        let wanted = "[a](rewrites/a.md) | [line 3](../tests/fixtures/screens/visit.cu#L3)";
        assert_eq!(relative(text), wanted);
    }
}
