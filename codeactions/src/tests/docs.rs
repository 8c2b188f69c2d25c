//! The example of every rewrite's documentation is a test: applying it to "Before" gives exactly "After".

use super::rewrite;
use crate::handlers::REWRITES;

fn example(doc: &str, heading: &str) -> String {
    let section = doc.split(&format!("## {heading}\n```cuda\n")).nth(1).unwrap_or("");
    section.split("```").next().unwrap_or("").to_owned()
}

#[test]
fn examples() {
    for entry in REWRITES {
        let (before, after) = (example(entry.doc, "Before"), example(entry.doc, "After"));
        assert!(!before.is_empty() && !after.is_empty(), "{} has no example", entry.id);
        let result = rewrite(entry.id, &before);
        assert_eq!(result.text(), after, "{}", entry.id);
        assert!(
            entry.doc.contains("## Source") && entry.doc.contains("## Needs"),
            "{}",
            entry.id
        );
    }
}

#[test]
fn ids_are_unique() {
    for entry in REWRITES {
        assert_eq!(REWRITES.iter().filter(|r| r.id == entry.id).count(), 1);
        assert!(!entry.title.ends_with('.'));
    }
}
