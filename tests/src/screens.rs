//! The page of `docs/` that shows what gridfuse prints and what an editor shows, taken from real runs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::{Command, Stdio};

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
    client.shutdown();
    page
}

fn run(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new(workspace::gridfuse_bin())
        .current_dir(directory)
        .args(arguments)
        .env("COLUMNS", "110")
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
