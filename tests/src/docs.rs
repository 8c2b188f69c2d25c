//! The pages of `docs/` that are made from what `gridfuse list` says: one for each diagnostic and each rewrite, one for all assumptions, and
//! the index.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use crate::assumptions::Made;

/// The page of the assumptions, under `docs/`.
pub const ASSUMPTIONS: &str = "assumptions.md";

/// The directories in which every file is a generated one.
const DIRECTORIES: [&str; 3] = ["diagnostics", "examples", "rewrites"];

/// What a generated page begins with.
pub const NOTE: &str =
    "<!-- Made by `cargo run -p gridfuse-tests --bin docs` from the source; changes belong there. -->";

fn list<'r>(report: &'r Value, name: &str) -> Result<&'r Vec<Value>, String> {
    let found = report[name].as_array();
    found.ok_or_else(|| format!("the report has no list `{name}`"))
}

fn text(entry: &Value, name: &str) -> Result<String, String> {
    let found = entry[name].as_str().map(str::to_owned);
    found.ok_or_else(|| format!("an entry has no `{name}`: {entry}"))
}

/// The pages for the report of `gridfuse list --format json`: path under `docs/`, and text. `made`: which rewrite makes which assumption.
pub fn pages(report: &Value, made: &Made) -> Result<BTreeMap<String, String>, String> {
    let mut pages = BTreeMap::new();
    let mut index = format!(
        r#"{NOTE}

# gridfuse

What gridfuse finds, and what it can do about it. `gridfuse list` prints the same.

## Diagnostics

| diagnostic | severity | |
|---|---|---|
"#
    );
    for entry in list(report, "diagnostics")? {
        let (id, severity, doc) = (text(entry, "id")?, text(entry, "severity")?, text(entry, "doc")?);
        index.push_str(&format!(
            "| [{id}](diagnostics/{id}.md) | {severity} | {} |\n",
            summary(&doc)
        ));
        let page = format!("{NOTE}\n\n# {id}\n\nSeverity: {severity}.\n\n{}\n", doc.trim());
        pages.insert(format!("diagnostics/{id}.md"), page);
    }
    index.push_str("\n## Rewrites\n\n| rewrite | |\n|---|---|\n");
    for entry in list(report, "rewrites")? {
        let (id, title, doc) = (text(entry, "id")?, text(entry, "title")?, text(entry, "doc")?);
        index.push_str(&format!("| [{id}](rewrites/{id}.md) | {title} |\n"));
        let mut page = format!("{NOTE}\n\n# {id}: {title}\n\n{}\n", doc.trim());
        let options = entry["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !options.is_empty() {
            page.push_str("\n## Options\n\n| option | default | |\n|---|---|---|\n");
        }
        for option in options {
            let (name, default, doc) = (text(option, "name")?, text(option, "default")?, text(option, "doc")?);
            page.push_str(&format!("| `--set {name}=…` | {default} | {doc} |\n"));
        }
        let assumed = list(report, "assumptions")?
            .iter()
            .filter_map(|kind| kind["id"].as_str());
        let assumed = assumed.filter(|kind| made.get(*kind).is_some_and(|by| by.contains(&id)));
        let links: Vec<String> = assumed
            .map(|kind| format!("[{kind}](../{ASSUMPTIONS}#{kind})"))
            .collect();
        if !links.is_empty() {
            page.push_str(&format!(
                "\n## Assumptions\n\nWhere it can't prove them: {}.\n",
                links.join(", ")
            ));
        }
        pages.insert(format!("rewrites/{id}.md"), page);
    }
    pages.insert(ASSUMPTIONS.to_owned(), assumptions(report, made)?);
    index.push_str(
        r#"
## More

- [A tutorial](tutorial.md): a slow BFS gets faster step by step, and each step is measured
- [Questions](faq.md) that CUDA programmers ask about dynamic parallelism
- [Papers](papers/README.md): where the ideas come from, and what they are called here
- [In a pipeline](pipelines.md): only what has changed, only what is new
- [In a browser](playground.md), with nothing to install
- [Installing](installing.md), and [what `gridfuse doctor` says](doctor.md)
- [What a rewrite may assume](assumptions.md), and [what can be relied on](soundness.md)
- [Examples](examples/README.md): programs, rewritten
- [Measurements](measurements.md) on a GPU; what a rewrite costs in [registers and memory](overhead.md) and in [compile time](compile-time.md)
- [How much of real code is rewritten](reach.md), and [how far newcomers' programs are from a faster one](newcomers.md)
- [Measuring](measuring.md) and [tuning](tuning.md)
"#,
    );
    pages.insert("README.md".to_owned(), index);
    Ok(pages)
}

/// The page of the assumptions, each with the rewrites that make it.
fn assumptions(report: &Value, made: &Made) -> Result<String, String> {
    let mut page = format!(
        r#"{NOTE}

# Assumptions

A rewrite that *assumes* something keeps what the program computes if that holds; only you know whether it does. The preview and the hover
say it of your code, before anything changes. This page says for each kind of assumption what goes wrong without it, how you check it, and
how you make it unnecessary. The rewrites are those that make it in the programs of gridfuse's tests. The ids are those of
`gridfuse explain --format json`; `gridfuse list ID` prints a section of this page.
"#
    );
    for kind in list(report, "assumptions")? {
        let (id, title, doc) = (text(kind, "id")?, text(kind, "title")?, text(kind, "doc")?);
        page.push_str(&format!("\n## {id}\n\n**{title}.**\n\n{}\n", doc.trim()));
        let rewrites = list(report, "rewrites")?.iter();
        let by = rewrites.filter_map(|rewrite| rewrite["id"].as_str());
        let by = by.filter(|rewrite| made.get(&id).is_some_and(|by| by.contains(*rewrite)));
        let links: Vec<String> = by
            .map(|rewrite| format!("[{rewrite}](rewrites/{rewrite}.md)"))
            .collect();
        page.push_str(&format!("\nMade by {}.\n", links.join(", ")));
    }
    Ok(page)
}

/// The first sentence, on one line.
fn summary(doc: &str) -> String {
    let paragraph = doc.trim().split("\n\n").next().unwrap_or_default().replace('\n', " ");
    match paragraph.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => paragraph,
    }
}

/// What differs between the pages and the files in `docs`: one line for each file that is missing, stale or left over.
pub fn differences(docs: &Path, pages: &BTreeMap<String, String>) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for (name, page) in pages {
        match fs::read_to_string(docs.join(name)) {
            // A checkout may have changed the line ends.
            Ok(text) if text.replace("\r\n", "\n") == *page => {}
            Ok(_) => found.push(format!("{name} is stale")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => found.push(format!("{name} is missing")),
            Err(error) => return Err(error),
        }
    }
    for name in left_over(docs, pages)? {
        found.push(format!("{name} is left over"));
    }
    Ok(found)
}

fn left_over(docs: &Path, pages: &BTreeMap<String, String>) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for directory in DIRECTORIES {
        let entries = match fs::read_dir(docs.join(directory)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let name = format!("{directory}/{}", entry?.file_name().to_string_lossy());
            if !pages.contains_key(&name) {
                found.push(name);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Makes the files in `docs` what they should be.
pub fn write(docs: &Path, pages: &BTreeMap<String, String>) -> io::Result<()> {
    for directory in DIRECTORIES {
        fs::create_dir_all(docs.join(directory))?;
    }
    for name in left_over(docs, pages)? {
        fs::remove_file(docs.join(name))?;
    }
    for (name, page) in pages {
        fs::write(docs.join(name), page)?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pages_are_written_and_compared() {
        let report = json!({
            "diagnostics": [{ "id": "a", "severity": "warning", "doc": "First\nsentence. Second.\n\n## More\n" }],
            "rewrites": [{ "id": "b", "title": "Does b", "doc": "Text.", "options": [{ "name": "n", "default": "1", "doc": "N." }] }],
            "assumptions": [{ "id": "c", "title": "Nothing fails", "doc": "Check it." }],
        });
        let made = Made::from([("c".to_owned(), ["b".to_owned()].into())]);
        let pages = pages(&report, &made).unwrap();
        assert!(
            pages["README.md"].contains("| [a](diagnostics/a.md) | warning | First sentence. |"),
            "{pages:?}"
        );
        assert!(pages["rewrites/b.md"].contains("| `--set n=…` | 1 | N. |"));
        assert!(pages["rewrites/b.md"].contains("[c](../assumptions.md#c)"));
        let section = "## c\n\n**Nothing fails.**\n\nCheck it.\n\nMade by [b](rewrites/b.md).\n";
        assert!(pages[ASSUMPTIONS].ends_with(section), "{pages:?}");
        let docs = tempfile::tempdir().unwrap();
        assert_eq!(differences(docs.path(), &pages).unwrap().len(), 4);
        write(docs.path(), &pages).unwrap();
        fs::write(docs.path().join("rewrites/old.md"), "").unwrap();
        fs::write(docs.path().join("diagnostics/a.md"), "").unwrap();
        let wanted = ["diagnostics/a.md is stale", "rewrites/old.md is left over"];
        assert_eq!(differences(docs.path(), &pages).unwrap(), wanted);
        write(docs.path(), &pages).unwrap();
        assert!(differences(docs.path(), &pages).unwrap().is_empty());
        assert!(super::pages(&json!({}), &made).is_err());
    }
}
