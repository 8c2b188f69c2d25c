//! The child's text with replacements, statement by statement, with the comments that belong to each.

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::{Body, StmtId};

use super::directives::conditionals;
use crate::edit::lex;
use crate::edit::style;
use crate::facts::child::Child;

/// Replacements of spans of the child.
pub struct Text<'a, 'db> {
    child: &'a Child<'db>,
    edits: Vec<(Span, String)>,
}

impl<'a, 'db> Text<'a, 'db> {
    /// The text as it is.
    pub fn new(child: &'a Child<'db>) -> Self {
        Text {
            child,
            edits: Vec::new(),
        }
    }

    /// Replaces a span. Replacements inside of it don't count any more.
    pub fn replace(&mut self, span: Span, by: String) {
        if span.start < span.end {
            self.edits.retain(|(old, _)| !span.contains(*old));
        }
        self.edits.push((span, by));
        self.edits.sort_by_key(|(span, _)| (span.start, span.end));
    }

    /// A span with its replacements, with `\n` for newlines.
    pub fn render(&self, span: Span) -> String {
        let mut out = String::new();
        let mut at = span.start;
        for (edit, by) in &self.edits {
            if !span.contains(*edit) || edit.start < at {
                continue;
            }
            out.push_str(self.child.source(Span::new(at, edit.start)));
            out.push_str(by);
            at = edit.end;
        }
        out.push_str(self.child.source(Span::new(at, span.end)));
        out.replace("\r\n", "\n")
    }

    /// The same, its lines as they read when the line of the code at `at` is indented by `to`.
    pub fn indented(&self, span: Span, at: u32, to: &str) -> String {
        let at = (at + self.child.start) as usize;
        let from = style::indent_at(&self.child.text, at).to_owned();
        style::reindent(&self.render(span), &from, to)
    }
}

/// A statement with the comments that belong to it.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// The statement.
    pub stmt: StmtId,
    /// The comments in front of it, the statement, and what stands behind it on its line.
    pub span: Span,
    /// The statement alone.
    pub own: Span,
    /// An empty line stands in front.
    pub blank_before: bool,
    /// It begins on the line on which the one before it ends.
    pub same_line: bool,
}

/// Splits the text of statements in a row that fill `within`; what comments follow the last one belong to it.
pub fn slices(child: &Child<'_>, stmts: &[StmtId], within: Span) -> Vec<Slice> {
    let body: &Body = &child.body;
    let mut found: Vec<Slice> = Vec::new();
    let mut at = within.start;
    for (index, stmt) in stmts.iter().enumerate() {
        let own = body.stmt(*stmt).span;
        let own = Span::new(own.start, own.start + child.source(own).trim_end().len() as u32);
        let next = stmts.get(index + 1).map_or(within.end, |s| body.stmt(*s).span.start);
        let gap = child.source(Span::new(at, own.start.max(at)));
        // Comments, and pragmas, which are no statements.
        let lead = at + (gap.len() - gap.trim_start().len()) as u32;
        let space = child.source(Span::new(at, lead));
        let behind = child.source(Span::new(own.end, next.max(own.end)));
        let mut end = own.end;
        for comment in lex::comments(behind) {
            let between = behind.get((end - own.end) as usize..comment.start).unwrap_or("");
            let last = index + 1 == stmts.len();
            if between.contains('\n') && !last {
                break;
            }
            end = own.end + comment.end as u32;
        }
        found.push(Slice {
            stmt: *stmt,
            span: Span::new(lead.min(own.start), end),
            own,
            blank_before: index > 0 && space.matches('\n').count() > 1,
            same_line: index > 0 && !space.contains('\n'),
        });
        at = end;
    }
    // An `#if` ends with the last statement in it.
    for around in conditionals(child, within) {
        let inside = |s: &Slice| around.start < s.own.end && s.own.start < around.end && !s.own.contains(around);
        if let Some(last) = found.iter().rposition(inside) {
            found[last].span.end = found[last].span.end.max(around.end);
            if let Some(next) = found.get_mut(last + 1) {
                let after = child.source(Span::new(around.end, next.own.start.max(around.end)));
                let lead = around.end + (after.len() - after.trim_start().len()) as u32;
                next.span.start = next.span.start.max(lead.min(next.own.start));
            }
        }
    }
    found
}

/// The comments of a span, one below the other.
pub fn comments_only(child: &Child<'_>, span: Span) -> Vec<String> {
    let text = child.source(span).replace("\r\n", "\n");
    lex::comments(&text).iter().map(|c| c.text(&text).to_owned()).collect()
}
