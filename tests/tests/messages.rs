//! What users read keeps to the words of docs/contributing/messages.md.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

use gridfuse_tests::workspace;
use regex::Regex;

/// What the page's table has in quotes in its first column.
fn banned() -> Vec<String> {
    let page = fs::read_to_string(workspace::root().join("docs/contributing/messages.md")).expect("the page");
    let row = Regex::new(r#"(?m)^\| "([^"]+)" \|"#).unwrap();
    row.captures_iter(&page).map(|found| found[1].to_owned()).collect()
}

fn patterns() -> Vec<Regex> {
    banned()
        .iter()
        .map(|words| Regex::new(&format!(r"(?i)\b{}\b", regex::escape(words))).unwrap())
        // "one link after the other", too.
        .chain([Regex::new(r"(?i)\bone \w+ after (?:the other|another)\b").unwrap()])
        .collect()
}

/// The files below a directory whose names end so.
fn files_below(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files_below(&path, extension, found);
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            // Tests talk to those who write them.
            if path.file_name().is_some_and(|name| name != "tests") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The strings of a source text with their lines, up to its tests. Documentation of what the command line and the JSON formats print is
/// text for users, too: `documented` adds comments that begin with `///`.
fn strings(text: &str, documented: bool) -> Vec<(usize, String)> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let token = Regex::new(
        r##"(?s)//[^\n]*|/\*.*?\*/|r"(?<r0>[^"]*)"|r#"(?<r1>.*?)"#|"(?<s>(?:\\.|[^"\\])*)"|'(?:\\[^\n]|[^'\\\n])'"##,
    )
    .unwrap();
    let continued = Regex::new(r"\\\n\s*").unwrap();
    let mut found = Vec::new();
    for token in token.captures_iter(text) {
        let whole = token.get(0).unwrap();
        let string = ["r0", "r1", "s"].iter().find_map(|name| token.name(name));
        let comment = || Some(whole.as_str()).filter(|comment| documented && comment.starts_with("///"));
        if let Some(string) = string.map(|string| string.as_str()).or_else(comment) {
            let line = text[..whole.start()].matches('\n').count() + 1;
            found.push((line, continued.replace_all(string, "").into_owned()));
        }
    }
    found
}

/// Names of variables in braces, and code of other languages in the strings, are no words.
fn prose(string: &str) -> String {
    let code = Regex::new(r#"\{[a-z_.0-9:?]*\}|class=\\?"[a-z]+\\?"|\.[a-z]+(?:, \.[a-z]+)* \{|"behind""#).unwrap();
    code.replace_all(string, "")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn the_words_of_the_page_are_read() {
    let banned = banned();
    assert!(
        banned.len() >= 8 && banned.iter().any(|word| word == "behind"),
        "{banned:?}"
    );
    let text = "// behind\nlet a = \"x {behind} \\\n    y\"; let b = r#\"one\n\"after\" the\"#; let c = '\"'; /// told\nfn d() {}\n#[cfg(test)] \"no\"";
    let found = strings(text, false);
    let found: Vec<(usize, String)> = found.into_iter().map(|(line, text)| (line, prose(&text))).collect();
    let expected = [(2, "x y"), (3, "one \"after\" the")].map(|(line, text)| (line, text.to_owned()));
    assert_eq!(found, expected);
    assert_eq!(strings(text, true).len(), 3);
}

#[test]
fn messages_keep_to_the_words_of_the_page() {
    let mut files = Vec::new();
    for krate in ["analysis", "codeactions", "server"] {
        sources(&workspace::root().join(krate).join("src"), &mut files);
    }
    let banned = patterns();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for path in files {
        let text = fs::read_to_string(&path).expect("a source");
        let shown = path.strip_prefix(workspace::root()).unwrap().display().to_string();
        let documented = shown.starts_with("server/src/cli/") || shown == "server/src/schema.rs";
        for (line, string) in strings(&text, documented) {
            seen += 1;
            let prose = prose(&string);
            if let Some(words) = banned.iter().find_map(|words| words.find(&prose)) {
                wrong.push(format!("{shown}:{line}: \"{}\" in {string:?}", words.as_str()));
            }
        }
    }
    assert!(seen > 3000, "{seen} strings");
    assert!(
        wrong.is_empty(),
        "docs/contributing/messages.md says what to say instead:\n{}",
        wrong.join("\n")
    );
}

/// What reads oddly in documentation, too, which is for those who work on the program.
#[test]
fn documentation_says_who_does_what() {
    let mut files = Vec::new();
    for krate in ["analysis", "codeactions", "server"] {
        sources(&workspace::root().join(krate).join("src"), &mut files);
    }
    let odd =
        Regex::new(r"(?i)\b(?:speaks? against|is asked of|behind the parent|mentions itself|waited for by)\b").unwrap();
    let mut wrong = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("a source");
        // Sentences go over several lines.
        let said = text
            .lines()
            .map(str::trim_start)
            .filter(|line| line.starts_with("///") || line.starts_with("//!"));
        let said: Vec<&str> = said.map(|line| line[3..].trim()).collect();
        let said = said.join(" ");
        wrong.extend(
            odd.find_iter(&said)
                .map(|words| format!("{}: \"{}\"", path.display(), words.as_str())),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The runtime header stands in users' projects.
#[test]
fn pages_and_the_runtime_header_keep_to_the_words_of_the_page() {
    let root = workspace::root();
    let (mut pages, mut headers) = (Vec::new(), Vec::new());
    files_below(&root.join("docs"), "md", &mut pages);
    files_below(&root.join("codeactions/runtime"), "cuh", &mut headers);
    assert!(pages.len() > 50 && headers.len() > 20, "{pages:?} {headers:?}");
    // The page itself names the words.
    pages.retain(|page| !page.ends_with("docs/contributing/messages.md"));
    let banned = patterns();
    let mut wrong = Vec::new();
    for path in pages.iter().chain(&headers) {
        let text = fs::read_to_string(path).expect("a text");
        // Of a header only the comments: code may call a variable `behind`. Phrases may go over several lines.
        let prose: Vec<&str> = match path.extension().is_some_and(|end| end == "cuh") {
            true => text
                .lines()
                .filter_map(|line| line.split_once("//"))
                .map(|(_, said)| said.trim_start_matches('/'))
                .collect(),
            false => text.lines().collect(),
        };
        let prose = prose.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(words) = banned.iter().find_map(|words| words.find(&prose)) {
            wrong.push(format!("{}: \"{}\"", path.display(), words.as_str()));
        }
    }
    assert!(
        wrong.is_empty(),
        "docs/contributing/messages.md says what to say instead:\n{}",
        wrong.join("\n")
    );
}
