//! The comment above a generated function: what it is for, and that it can be taken back.

use crate::edit::style::Style;

/// What the comment of a function ends with that a rewrite has made and `revert` takes back.
pub const TAKEN_BACK: &str = "`gridfuse revert` takes it back.";

/// A comment in lines that begin at a column, as wide as the file's where its words allow that.
pub fn lines(text: &str, style: &Style, column: usize) -> String {
    let mut lines = vec!["//".to_owned()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line == "//" || column + line.chars().count() + 1 + word.chars().count() <= style.width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("// {word}")),
        }
    }
    lines.join("\n")
}

/// The comment of a function that `revert` takes back, with the newline that ends it. It begins at a column, and is one line where that is
/// wide enough.
pub fn taken_back(what: &str, style: &Style, column: usize) -> String {
    let line = format!("// {what}; {TAKEN_BACK}\n");
    if column + line.trim_end().chars().count() <= style.width {
        line
    } else {
        format!("{}\n// {TAKEN_BACK}\n", lines(&format!("{what};"), style, column))
    }
}

/// Whether a comment is the first line of the description of a function that a kernel's body has moved to.
pub fn begins_body(comment: &str) -> bool {
    comment.starts_with("// The body of ")
}

/// Whether a comment is the second line of such a description.
pub fn is_second_line(comment: &str) -> bool {
    comment.strip_prefix("// ") == Some(TAKEN_BACK)
}

/// Whether a comment is the last line, or the only one, of such a description.
pub fn is_taken_back(comment: &str) -> bool {
    comment.starts_with("//") && comment.ends_with(TAKEN_BACK)
}
