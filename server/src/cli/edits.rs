//! Where things are after edits.

use gridfuse_analysis::span::TextRange;
use gridfuse_codeactions::edit::TextEdit;

/// Where `range` is after the edits. What is inserted directly before or behind it stays outside; an edit that reaches into
/// it widens it to the inserted text.
pub fn map(range: TextRange, edits: &[TextEdit]) -> TextRange {
    let (mut start, mut end) = (i64::from(range.start), i64::from(range.end));
    let (mut before, mut through) = (0, 0);
    for edit in edits {
        let grows = edit.insert.len() as i64 - i64::from(edit.range.end - edit.range.start);
        if edit.range.end <= range.start {
            before += grows;
            through += grows;
        } else if edit.range.start < range.end {
            start = start.min(i64::from(edit.range.start));
            end = end.max(i64::from(edit.range.end));
            through += grows;
        }
    }
    let clamp = |offset: i64| u32::try_from(offset.max(0)).unwrap_or(u32::MAX);
    TextRange::new(clamp(start + before), clamp(end + through))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn edit(start: u32, end: u32, insert: &str) -> TextEdit {
        TextEdit {
            range: TextRange::new(start, end),
            insert: insert.to_string(),
        }
    }

    fn apply(text: &str, edits: &[TextEdit]) -> String {
        gridfuse_codeactions::edit::apply_to_text(Path::new("a.cu"), text, edits).unwrap_or_default()
    }

    #[test]
    fn maps_through_edits() {
        let text = "int a; launch(); int b;";
        let launch = TextRange::new(7, 15);
        let edits = [edit(0, 3, "long"), edit(7, 7, "if (x) "), edit(16, 16, " // y")];
        let new = apply(text, &edits);
        assert_eq!(map(launch, &edits).text(&new), "launch()");
        let edits = [edit(5, 8, "; { l"), edit(14, 16, ", z); }")];
        let new = apply(text, &edits);
        assert_eq!(map(launch, &edits).text(&new), "; { launch(, z); }");
    }
}
