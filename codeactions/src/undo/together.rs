//! Takes `aggregate-atomics` back.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::items::FunctionItem;

use super::in_child;
use super::layer::Peeled;
use super::text::place;
use crate::api::rewrite::Layer;
use crate::edit::lex;
use crate::facts::combinable::NAMESPACE;

/// Takes it off the child of one of the launches that have it, counted from 0; `None` where there are fewer.
pub fn peel<'db>(db: &'db dyn Db, parent: FunctionItem<'db>, nth: usize) -> Option<Option<Peeled>> {
    in_child::peel(db, parent, nth, Layer::Combined, calls)
}

/// A function launches a kernel that has it.
pub fn is_there<'db>(db: &'db dyn Db, parent: FunctionItem<'db>) -> bool {
    in_child::is_there(db, parent, calls)
}

/// Where the namespace stands in front of a call in a function.
fn calls(db: &dyn Db, function: FunctionItem<'_>) -> Vec<FileRange> {
    let FileRange { file, range: own } = place(db, function);
    let text = file.text(db);
    let tokens: Vec<lex::Token> = lex::code_tokens_of(db, file)
        .iter()
        .copied()
        .filter(|t| own.start <= t.start as u32 && t.end as u32 <= own.end)
        .collect();
    let is_one = |token: &&lex::Token| {
        text.get(token.start..).is_some_and(|code| code.starts_with(NAMESPACE)) && token.text(&text) == "gridfuse"
    };
    tokens
        .iter()
        .filter(is_one)
        .map(|token| FileRange {
            file,
            range: TextRange::new(token.start as u32, (token.start + NAMESPACE.len()) as u32),
        })
        .collect()
}
