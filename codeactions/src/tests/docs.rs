//! The example of every rewrite's documentation is a test: applying it to "Before" gives exactly "After".

use std::path::Path;

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::diagnostics::{KINDS, diagnostics};
use gridfuse_analysis::host::Host;

use super::rewrite;
use crate::api::rewrite::Options;
use crate::api::source_edit::apply;
use crate::handlers::{REWRITES, of_launches, of_places, rewrite_by_id};
use crate::runtime::HEADER;

fn example(doc: &str, heading: &str) -> String {
    let section = doc.split(&format!("## {heading}\n```cuda\n")).nth(1).unwrap_or("");
    section.split("```").next().unwrap_or("").to_owned()
}

/// The example's result is what its page says; `UPDATE_EXPECT=1` writes it there.
#[track_caller]
fn expect_after(id: &str, after: &str, found: &str) {
    let updates = std::env::var_os("UPDATE_EXPECT").is_some_and(|wanted| wanted == "1");
    if after == found || !updates {
        assert_eq!(
            found, after,
            "{id}; run: UPDATE_EXPECT=1 cargo test -p gridfuse-codeactions --lib tests::docs"
        );
        return;
    }
    let handlers = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/handlers");
    for entry in std::fs::read_dir(handlers).expect("the handlers") {
        let path = entry.expect("a file").path();
        let source = std::fs::read_to_string(&path).unwrap_or_default();
        // Several pages may have the same example.
        if source.contains(after) && source.contains(&format!("id: \"{id}\"")) {
            std::fs::write(&path, source.replace(after, found)).expect("the page");
        }
    }
}

#[test]
fn examples() {
    for entry in of_launches() {
        let (before, after) = (example(entry.doc, "Before"), example(entry.doc, "After"));
        assert!(!before.is_empty() && !after.is_empty(), "{} has no example", entry.id);
        let result = rewrite(entry.id, &before);
        expect_after(entry.id, &after, result.text());
        assert!(
            entry.doc.contains("## Source") && entry.doc.contains("## Needs"),
            "{}",
            entry.id
        );
    }
}

/// Where a fix is applied in its example: at the diagnostic that names it, else at the collected launch or the call that it is
/// about.
fn place_of(host: &Host, file: SourceFile, id: &str) -> FileRange {
    let db = host.db();
    let named = diagnostics(db, file).iter().find(|d| d.rewrites.contains(&id));
    let text = file.text(db);
    let at = |what: &str| text.find(what).map(|at| TextRange::empty(at as u32 + 1));
    let else_at = || at("cudaDeviceSetLimit(").or_else(|| at(".launch("));
    match named {
        Some(diagnostic) => diagnostic.place,
        None => FileRange {
            file,
            range: else_at().unwrap_or_default(),
        },
    }
}

#[test]
fn examples_of_fixes() {
    for fix in of_places() {
        let (before, after) = (example(fix.doc, "Before"), example(fix.doc, "After"));
        assert!(!before.is_empty() && !after.is_empty(), "{} has no example", fix.id);
        let mut host = Host::new();
        host.set_file(Path::new("/p/gridfuse.cuh"), HEADER.clone());
        let file = host.set_file(Path::new("/p/a.cu"), before.clone());
        let place = place_of(&host, file, fix.id);
        let edit = fix.apply(host.db(), place, &Options::default());
        let edit = edit.unwrap_or_else(|refusal| panic!("{}: {refusal:?}", fix.id));
        let text = apply(&edit, |path| host.file(path).map(|f| f.text(host.db()).to_string()));
        let text = text.ok().and_then(|mut t| t.remove(Path::new("/p/a.cu")));
        expect_after(fix.id, &after, text.as_deref().unwrap_or(""));
        assert!(!fix.title.ends_with('.'));
        assert!(
            fix.doc.contains("## Source") && fix.doc.contains("## Needs"),
            "{}",
            fix.id
        );
    }
}

#[test]
fn diagnostics_name_what_there_is() {
    for kind in KINDS {
        for id in kind.rewrites {
            assert!(rewrite_by_id(id).is_some(), "{}: {id}", kind.id);
        }
    }
}

#[test]
fn ids_are_unique() {
    for entry in REWRITES {
        assert_eq!(REWRITES.iter().filter(|r| r.id == entry.id).count(), 1);
        assert!(!entry.title.ends_with('.'));
    }
}

/// Behind a title a menu says how many assumptions there are; the whole is to be read at a glance.
#[test]
fn titles_are_short() {
    const LONGEST: &str = " — 9 assumptions";
    for entry in REWRITES {
        let title = entry.title;
        let length = title.chars().count() + LONGEST.chars().count();
        assert!(length <= 60, "{}: {title:?} has {length} characters", entry.id);
        assert!(title.starts_with(|first: char| first.is_ascii_uppercase()), "{title:?}");
        assert!(!title.contains(" — "), "{title:?}");
        assert_eq!(REWRITES.iter().filter(|r| r.title == title).count(), 1, "{title:?}");
    }
}
