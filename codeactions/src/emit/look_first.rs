//! Stores in front of which a thread looks whether they change anything: what `skip-silent-stores` writes, and `revert` reads.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::{ExprId, body};

use crate::edit::lex;
use crate::edit::one_line::flat;
use crate::edit::style;
use crate::facts::silent_stores::Store;

/// What the comment says behind such a store: it tells it from one that somebody has written.
const WHY: &str = "only what changes";

/// What stands in front of the store.
pub fn look(db: &dyn Db, function: FunctionItem<'_>, store: &Store) -> String {
    let body = body(db, function);
    let text = function.file(db).text(db);
    let source = |expr: ExprId| flat(body.expr(expr).span.shift(function.start(db)).text(&text));
    let value = source(store.value);
    // A sum or a product, which binds closer than a comparison.
    format!("if ({} != {value}) ", source(store.place))
}

/// The comment behind it, which ends at `end`.
pub fn comment(text: &str, end: usize) -> String {
    let rest = text.get(end..style::line_end(text, end)).unwrap_or("");
    // A line that goes on, or that a comment ends, gets one within.
    if rest.trim().is_empty() {
        format!("  // {WHY}")
    } else {
        format!(" /* {WHY} */")
    }
}

/// How long that comment is, with what stands in front of it; `None`: there is none.
pub fn comment_length(text: &str, end: usize) -> Option<usize> {
    let rest = text.get(end..)?;
    let line = format!("  // {WHY}");
    let within = format!(" /* {WHY} */");
    let ends = |found: &String| {
        rest.get(found.len()..)
            .is_some_and(|r| lex::is_blank(r.split('\n').next().unwrap_or("")))
    };
    if rest.starts_with(&line) && ends(&line) {
        Some(line.len())
    } else {
        rest.starts_with(&within).then_some(within.len())
    }
}
