//! Pieces of Markdown: cells of tables, code, links.

use std::path::Path;

use gridfuse_analysis::span::FileRange;

use super::state::Snapshot;
use crate::describe::Describe;
use crate::line_index::line_index;
use crate::schema::{Note, Place};

/// Longer code in a cell is cut.
const MAX_CODE_CHARS: usize = 60;

/// Code in a table's cell.
pub fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let short: String = if text.chars().count() > MAX_CODE_CHARS {
        text.chars().take(MAX_CODE_CHARS - 1).chain(['…']).collect()
    } else {
        text.to_string()
    };
    format!("`{}`", short.replace('`', "'").replace('|', "\\|"))
}

/// Words in a table's cell.
pub fn words(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// `line 7`, or `other.cuh:7` in another file than `home`, as a link where the place has a URI.
pub fn link(place: &Place, home: &str) -> String {
    let line = place.start.line;
    let name = place.path.rsplit('/').next().unwrap_or_default();
    let shown = if place.path == home {
        format!("line {line}")
    } else {
        format!("{name}:{line}")
    };
    if place.path.contains("://") {
        format!("[{shown}]({}#L{line})", place.path)
    } else {
        shown
    }
}

/// A statement with the link to its place.
pub fn note(note: &Note, home: &str) -> String {
    match &note.place {
        Some(place) => format!("{} ({})", words(&note.text), link(place, home)),
        None => words(&note.text),
    }
}

/// A table with these rows; nothing when there are none.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let header: Vec<String> = header.iter().map(|cell| (*cell).to_string()).collect();
    let mut out = line(&header);
    out.push_str(&format!("|{}\n", "---|".repeat(header.len())));
    for row in rows {
        out.push_str(&line(row));
    }
    out
}

/// The line on which a place begins, as a block of code.
pub fn source_line(snapshot: &Snapshot, place: FileRange) -> String {
    let text = place.file.text(&snapshot.db);
    let index = line_index(&snapshot.db, place.file);
    let (line, _) = index.line(place.range.start);
    let content = index
        .content(&text, line)
        .and_then(|(start, end)| text.get(start as usize..end as usize));
    fenced(content.unwrap_or_default().trim())
}

/// A block of CUDA.
pub fn fenced(code: &str) -> String {
    format!("```cuda\n{code}\n```\n")
}

/// Runs `f` with a describer whose paths are URIs, as the client spells them.
pub fn describe<R>(snapshot: &Snapshot, f: impl FnOnce(&Describe<'_>) -> R) -> R {
    let uri = |path: &Path| {
        let uri = snapshot.uri(path);
        uri.map_or_else(|| path.display().to_string(), |uri| uri.as_str().to_string())
    };
    f(&Describe {
        db: &snapshot.db,
        path: &uri,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_keep_the_table_whole() {
        assert_eq!(code("a || b"), "`a \\|\\| b`");
        assert_eq!(words("a | b\nc"), "a \\| b c");
        assert_eq!(code(&"x".repeat(70)).chars().count(), 62);
        assert_eq!(table(&["a", "b"], &[]), "");
        let row = vec!["1".to_string(), "2".to_string()];
        assert_eq!(table(&["a", "b"], &[row]), "| a | b |\n|---|---|\n| 1 | 2 |\n");
    }
}
