//! Comments that are addressed to gridfuse: those that keep diagnostics quiet, `// gridfuse: allow(launch-in-loop) only a few iterations`,
//! and those that say what no analysis can find out, `// gridfuse: independent`.

use tree_sitter::Node;

use crate::base::db::{Db, SourceFile};
use crate::base::parse::parse;
use crate::base::span::TextRange;

/// A diagnostic's id in an `allow(…)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Allow {
    /// The id as written; `None`: the comment addresses gridfuse and cannot be understood.
    pub id: Option<String>,
    /// Where the id stands, or the comment.
    pub place: TextRange,
    /// What to delete so that the id isn't allowed any more: it with its comma, or the comment when it is the only one.
    pub removal: TextRange,
    /// The line that it is about: the comment's own, or, when nothing else stands there, the next one with code.
    pub covers: TextRange,
}

impl Allow {
    /// It keeps a diagnostic of this id at `place` quiet: one of the lines of the place is the one that it is about.
    pub fn silences(&self, id: &str, place: TextRange) -> bool {
        self.id.as_deref() == Some(id) && self.covers.start <= place.end && place.start <= self.covers.end
    }
}

/// The name that a comment must begin with.
pub const ADDRESS: &str = "gridfuse:";

const INDEPENDENT: &str = "independent";

/// A comment `// gridfuse: independent` and why: the statement that begins on the line that it is about has nothing to do with what
/// other launches of a chain of launches do to memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Independent {
    /// The comment.
    pub place: TextRange,
    /// What to delete so that nothing is said any more.
    pub removal: TextRange,
    /// The line that it is about: the comment's own, or, when nothing else stands there, the next one with code.
    pub covers: TextRange,
}

/// The comment says how a kernel is run to be measured: `// gridfuse: run <<<…>>>`. It's understood by those who measure.
pub fn is_run_specification(comment: &str) -> bool {
    begins_with(comment, "run")
}

/// What a comment says to gridfuse. Two colons are a name of the runtime, in code that is commented out or about it.
fn addressed(comment: &str) -> Option<&str> {
    let inside = comment.trim_start_matches(['/', '*', '!']).trim_start();
    inside.strip_prefix(ADDRESS).filter(|rest| !rest.starts_with(':'))
}

/// What the comment says to gridfuse begins with this word.
fn begins_with(comment: &str, word: &str) -> bool {
    let rest = addressed(comment).map(str::trim_start);
    let behind = rest.and_then(|rest| rest.strip_prefix(word));
    behind.is_some_and(|behind| !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Everything that a file's comments say to be independent, in order.
#[salsa::tracked]
pub fn independent(db: &dyn Db, file: SourceFile) -> Vec<Independent> {
    let text = file.text(db);
    let comments = comments_if_addressed(db, file);
    let said = comments
        .iter()
        .filter(|comment| begins_with(comment.text(&text), INDEPENDENT));
    said.map(|comment| Independent {
        place: *comment,
        removal: whole_comment(&text, *comment),
        covers: covered_line(&text, *comment, &comments),
    })
    .collect()
}

/// The comments of a file, by place; none, where nothing is addressed to gridfuse.
fn comments_if_addressed(db: &dyn Db, file: SourceFile) -> Vec<TextRange> {
    if !file.text(db).contains(ADDRESS) {
        return Vec::new();
    }
    let parsed = parse(db, file);
    let mut comments = comments(parsed.tree().root_node());
    comments.sort_unstable();
    comments
}

/// Everything that a file's comments allow, in order.
#[salsa::tracked]
pub fn allowed(db: &dyn Db, file: SourceFile) -> Vec<Allow> {
    let text = file.text(db);
    let comments = comments_if_addressed(db, file);
    let mut found = Vec::new();
    for comment in &comments {
        read(&text, *comment, &comments, &mut found);
    }
    found
}

fn comments(root: Node<'_>) -> Vec<TextRange> {
    let mut found = Vec::new();
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        if node.kind() == "comment" {
            found.push(TextRange::new(node.start_byte() as u32, node.end_byte() as u32));
        } else if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

fn read(text: &str, comment: TextRange, comments: &[TextRange], found: &mut Vec<Allow>) {
    let written = comment.text(text);
    let Some(rest) = addressed(written) else {
        return;
    };
    if is_run_specification(written) || begins_with(written, INDEPENDENT) {
        return;
    }
    let covers = covered_line(text, comment, comments);
    let rest = rest.trim_start();
    let ids = rest
        .strip_prefix("allow")
        .and_then(|r| r.trim_start().strip_prefix('('))
        .and_then(|r| r.split_once(')'));
    let Some((ids, _reason)) = ids else {
        found.push(Allow {
            id: None,
            place: comment,
            removal: comment,
            covers,
        });
        return;
    };
    // Both are parts of `text`, so that their distance is where the ids begin.
    let mut at = (ids.as_ptr() as usize - text.as_ptr() as usize) as u32;
    let several = ids.contains(',');
    for (index, id) in ids.split(',').enumerate() {
        let trimmed = id.trim();
        let start = at + (id.len() - id.trim_start().len()) as u32;
        let end = at + id.len() as u32;
        found.push(Allow {
            id: Some(trimmed.to_owned()),
            place: TextRange::new(start, start + trimmed.len() as u32),
            removal: match (several, index) {
                (false, _) => whole_comment(text, comment),
                // The comma behind it, and the blanks before the next.
                (true, 0) => TextRange::new(start, end + 1 + blanks(text, end + 1)),
                (true, _) => TextRange::new(at - 1, end),
            },
            covers,
        });
        at += id.len() as u32 + 1;
    }
}

fn blanks(text: &str, from: u32) -> u32 {
    let rest = text.get(from as usize..).unwrap_or("");
    (rest.len() - rest.trim_start_matches([' ', '\t']).len()) as u32
}

/// A comment with the blanks before it; where nothing else stands on its lines, with these lines.
fn whole_comment(text: &str, comment: TextRange) -> TextRange {
    let (line, _) = line_of(text, comment.start as usize);
    let (_, end) = line_of(text, comment.end as usize);
    let before = text.get(line..comment.start as usize).unwrap_or("");
    let after = text.get(comment.end as usize..end).unwrap_or("");
    let start = line + before.trim_end().len();
    if before.trim().is_empty() && after.trim().is_empty() {
        TextRange::new(line as u32, (end + 1).min(text.len()) as u32)
    } else if after.trim().is_empty() {
        TextRange::new(start as u32, comment.end)
    } else {
        // Between two tokens: what stands before it keeps its distance to what follows.
        comment
    }
}

fn line_of(text: &str, offset: usize) -> (usize, usize) {
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let end = text[offset..].find('\n').map_or(text.len(), |at| offset + at);
    (start, end)
}

fn covered_line(text: &str, comment: TextRange, comments: &[TextRange]) -> TextRange {
    let (start, _) = line_of(text, comment.start as usize);
    let (_, end) = line_of(text, comment.end as usize);
    let blank = |from: usize, to: usize| text.get(from..to).unwrap_or("").trim().is_empty();
    if !blank(start, comment.start as usize) || !blank(comment.end as usize, end) {
        return TextRange::new(start as u32, end as u32);
    }
    let mut at = end + 1;
    while at < text.len() {
        let (start, end) = line_of(text, at);
        let code = start + (text[start..end].len() - text[start..end].trim_start().len());
        let inner = comments
            .iter()
            .find(|c| c.start as usize <= code && code < c.end as usize);
        match inner {
            // Nothing but this comment: further ones may follow.
            Some(comment) if blank(comment.end as usize, line_of(text, comment.end as usize).1) => {
                at = line_of(text, comment.end as usize).1 + 1;
            }
            _ => return TextRange::new(start as u32, end as u32),
        }
    }
    TextRange::empty(text.len() as u32)
}
