//! What the parser didn't understand of a function.

use crate::base::db::Db;
use crate::base::parse::parse_text;
use crate::base::span::Span;
use crate::hir::items::FunctionItem;

/// The first place in the text of a function that the parser didn't understand, from the beginning of the function.
///
/// The function is parsed by itself, as it is for [`body`](crate::hir::lower::body): what is wrong elsewhere in the file doesn't count, and
/// an edit elsewhere doesn't ask for the tree of the whole file.
#[salsa::tracked(returns(copy))]
pub fn syntax_error<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<Span> {
    let tree = parse_text(&function.text(db), None);
    let mut todo = vec![tree.root_node()];
    while let Some(node) = todo.pop() {
        if !node.has_error() {
            continue;
        }
        if node.is_error() || node.is_missing() {
            return Some(Span::new(node.start_byte() as u32, node.end_byte() as u32));
        }
        let mut cursor = node.walk();
        let children: Vec<_> = node.children(&mut cursor).collect();
        todo.extend(children.into_iter().rev());
    }
    None
}
