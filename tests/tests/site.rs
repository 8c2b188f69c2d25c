//! The documentation as a site: `.ci/package site` builds it, and fails where a reader would get lost.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use gridfuse_tests::cli::{copy, files_of, gridfuse};
use gridfuse_tests::workspace;
use regex::Regex;

/// Builds the site of the checkout in `root`.
fn build(root: &Path, out: &Path) -> Output {
    // One installs what it takes.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(root.join(".ci/package"));
    command.arg("site").arg(out);
    // What it installs stays for the next time.
    command.env("CARGO_TARGET_DIR", workspace::target_dir());
    command.output().expect(".ci/package")
}

fn printed(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(err), String::from_utf8_lossy(out))
}

/// Where a link of the page at `page` (a path in the site) leads: a path in the site.
fn resolved(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    match link.is_empty() || link.ends_with('/') || link.ends_with('.') {
        true if path.is_empty() => "index.html".to_owned(),
        true => format!("{path}/index.html"),
        false => path,
    }
}

/// The addresses in a page's HTML: `href` and `src`, without those that lead out of the site.
fn addresses(html: &str) -> Vec<String> {
    let address = Regex::new(r##"(?:href|src)="([^"#?]*)[^"]*""##).unwrap();
    let found = address.captures_iter(html).map(|found| found[1].to_owned());
    found.filter(|link| !link.contains(':') && !link.is_empty()).collect()
}

/// Where the site has a page of `docs`.
fn place(page: &str) -> String {
    match page.strip_suffix(".md").unwrap() {
        "README" => "contents/index.html".to_owned(),
        page => match page.strip_suffix("/README") {
            Some(directory) => format!("{directory}/index.html"),
            None => format!("{page}/index.html"),
        },
    }
}

#[test]
fn the_site_has_every_page_and_leads_nowhere_else() {
    let directory = tempfile::tempdir().unwrap();
    let output = build(workspace::root(), directory.path());
    assert!(output.status.success(), "{}", printed(&output));
    let site: BTreeMap<String, Vec<u8>> = files_of(directory.path()).into_iter().collect();

    // All pages have the same navigation. In one that it doesn't list, no entry is there as the page itself.
    let unlisted = "repository/LICENSE-MIT/index.html";
    let html = String::from_utf8_lossy(&site[unlisted]).into_owned();
    let entry = Regex::new(r#"<a href="([^"]*)" class="md-nav__link"#).unwrap();
    let entries: Vec<String> = entry
        .captures_iter(&html)
        .map(|found| resolved(unlisted, &found[1]))
        .collect();
    let docs = workspace::root().join("docs");
    let pages: Vec<String> = files_of(&docs)
        .into_iter()
        .map(|(page, _)| page)
        .filter(|page| page.ends_with(".md"))
        .collect();
    assert!(pages.len() > 100, "{pages:?}");
    for page in &pages {
        let times = entries.iter().filter(|entry| **entry == place(page)).count();
        assert_eq!(
            times, 1,
            "docs/{page} is {times} times in the navigation: .ci/site/mkdocs.yml has it"
        );
    }

    // What is linked is there, images as well.
    let mut missing = BTreeSet::new();
    let mut images = 0;
    for (name, content) in site
        .iter()
        .filter(|(name, _)| name.ends_with(".html") && *name != "404.html")
    {
        for link in addresses(&String::from_utf8_lossy(content)) {
            images += usize::from(link.ends_with(".png") || link.ends_with(".svg"));
            if !site.contains_key(&resolved(name, &link)) {
                missing.insert(format!("{name}: {link}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(images > 15, "{images} images");

    // The search finds every diagnostic and every rewrite.
    let index: serde_json::Value = serde_json::from_slice(&site["search/search_index.json"]).unwrap();
    let found: BTreeSet<&str> = index["docs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["location"].as_str().unwrap())
        .collect();
    let report = gridfuse(workspace::root(), &["list", "--format", "json"])
        .expect_code(0)
        .json();
    for what in ["diagnostics", "rewrites"] {
        for entry in report[what].as_array().unwrap() {
            let location = format!("{what}/{}/", entry["id"].as_str().unwrap());
            assert!(found.contains(location.as_str()), "the search doesn't know {location}");
        }
    }

    let sources = "repository/tests/fixtures/";
    assert!(
        !found.iter().any(|location| location.starts_with(sources)),
        "the search finds sources"
    );

    // Nothing comes from elsewhere, and the README is the first page.
    let first = String::from_utf8_lossy(&site["index.html"]).into_owned();
    let elsewhere = Regex::new(r#"<(?:script|img|link)[^>]* (?:src|href)="https?:"#).unwrap();
    assert!(!elsewhere.is_match(&first));
    assert!(first.contains("Before and after"));
    // A line of a source can be linked.
    let screens = String::from_utf8_lossy(&site["screens/index.html"]).into_owned();
    assert!(screens.contains("../repository/tests/fixtures/screens/visit.cu/#__codelineno-0-12"));
}

/// A checkout like this one, with a `docs` of its own.
fn checkout() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("checkout");
    fs::create_dir(&root).unwrap();
    for entry in fs::read_dir(workspace::root()).unwrap() {
        let name = entry.unwrap().file_name();
        let name = name.to_str().unwrap();
        match name {
            "target" | ".git" => {}
            "docs" | ".ci" => copy(&workspace::root().join(name), &root.join(name)),
            _ => symlink(workspace::root().join(name), root.join(name)).unwrap(),
        }
    }
    (directory, root)
}

#[test]
fn a_dead_link_fails_the_build() {
    let (_directory, root) = checkout();
    let page = root.join("docs/security.md");
    let text = fs::read_to_string(&page).unwrap();
    let dead = "\n[a](no-page.md) [b](tuning.md#no-section) [c](#no-part) [d](../no-file.cu) ![e](no-image.png) \
                [f](../tests/fixtures/screens/visit.cu#L4711) [g](/absolute.md)\n\n`[h](only-code.md)`\n";
    fs::write(&page, text + dead).unwrap();
    fs::write(root.join("docs/forgotten.md"), "# Nobody links it\n").unwrap();
    let navigation = root.join(".ci/site/mkdocs.yml");
    let text = fs::read_to_string(&navigation).unwrap();
    fs::write(
        &navigation,
        text.replace("Tuning: tuning.md", "Tuning: tuning.md\n      - Again: tuning.md"),
    )
    .unwrap();

    let out = tempfile::tempdir().unwrap();
    let output = build(&root, out.path());
    let printed = printed(&output);
    assert!(!output.status.success(), "{printed}");
    for wanted in [
        "no-page.md",
        "#no-section",
        "#no-part",
        "no-file.cu",
        "no-image.png",
        "4711",
        "/absolute.md",
        "forgotten.md",
        "'tuning.md' 2 times",
    ] {
        assert!(printed.contains(wanted), "nothing is said of {wanted}: {printed}");
    }
    assert!(!printed.contains("only-code.md"), "{printed}");
}

#[test]
fn addresses_are_resolved_as_a_browser_does_it() {
    for (page, link, wanted) in [
        ("a/b/index.html", "../c/", "a/c/index.html"),
        ("a/b/index.html", "../../", "index.html"),
        ("a/b/index.html", ".", "a/b/index.html"),
        ("index.html", "a/b.png", "a/b.png"),
        ("a/index.html", "..", "index.html"),
    ] {
        assert_eq!(resolved(page, link), wanted, "{page} {link}");
    }
    assert_eq!(
        addresses(r##"<a href="x/#y"> <img src="z.png"> <a href="https://a.b/c"> <a href="#d">"##),
        ["x/", "z.png"]
    );
    assert_eq!(place("papers/README.md"), "papers/index.html");
}
