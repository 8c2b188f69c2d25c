//! Lowers `try`, where every handler leaves the function: what follows is done only when the body is through.

use tree_sitter::Node;

use super::lower::{Lowering, Source};
use super::types::{StmtId, StmtKind};

/// Functions that don't come back, by names that nobody else gives to his own.
const ENDS: [&str; 5] = [
    "std::exit",
    "std::_Exit",
    "std::quick_exit",
    "std::abort",
    "std::terminate",
];

impl Lowering<'_> {
    /// A `try` is its body, if all handlers leave the function, by no other way than their end and `return`, and neither launch nor call
    /// CUDA before that. What an exception has cut off is seen by such a handler alone. `None`: another `try`.
    pub(super) fn try_statement(&mut self, node: Node<'_>, source: Source<'_>) -> Option<StmtId> {
        let mut cursor = node.walk();
        let handlers: Vec<Node<'_>> = node
            .named_children(&mut cursor)
            .filter(|child| child.kind() == "catch_clause")
            .collect();
        let body = node.child_by_field_name("body")?;
        let leave = |handler: &Node<'_>| {
            let code = source.of(*handler);
            let block = handler.child_by_field_name("body");
            let goes_elsewhere = code
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|word| matches!(word, "break" | "continue" | "goto"));
            !code.contains("<<<")
                && !code.contains("cuda")
                && !goes_elsewhere
                && block.is_some_and(|block| leaves(block, source))
        };
        (!handlers.is_empty() && handlers.iter().all(leave)).then(|| self.stmt(body, source))
    }

    /// What a `throw` does: it computes a value and leaves the function, as a handler in the function does.
    pub(super) fn throw(&mut self, node: Node<'_>, source: Source<'_>) -> StmtId {
        let span = source.span(node);
        let mut stmts = Vec::new();
        if let Some(value) = node.named_child(0).filter(|child| child.kind() != "comment") {
            let value = self.expr(value, source);
            stmts.push(self.add_stmt(StmtKind::Expr(value), span));
        }
        stmts.push(self.add_stmt(StmtKind::Return(None), span));
        self.add_stmt(StmtKind::Block(stmts), span)
    }
}

/// Whether a block ends by leaving the function, or the program.
fn leaves(block: Node<'_>, source: Source<'_>) -> bool {
    let mut cursor = block.walk();
    let last = block
        .named_children(&mut cursor)
        .filter(|child| child.kind() != "comment")
        .last();
    last.is_some_and(|last| match last.kind() {
        "return_statement" | "throw_statement" => true,
        "compound_statement" => leaves(last, source),
        "expression_statement" => last.named_child(0).is_some_and(|call| {
            let function = call.child_by_field_name("function").map(|function| source.of(function));
            call.kind() == "call_expression"
                && function.is_some_and(|name| ENDS.contains(&name.trim_start_matches("::")))
        }),
        _ => false,
    })
}
