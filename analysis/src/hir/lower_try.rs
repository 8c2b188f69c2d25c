//! Lowers `try`, where every handler leaves the function, and `throw`.

use tree_sitter::Node;

use super::lower::{Lowering, Source};
use super::types::{ExprKind, StmtId, StmtKind};

/// Functions that don't come back, by names that nobody else gives to his own.
const ENDS: [&str; 5] = [
    "std::exit",
    "std::_Exit",
    "std::quick_exit",
    "std::abort",
    "std::terminate",
];

impl Lowering<'_> {
    /// A `try` whose handlers all leave the function, by no other way than their end and `return`, and neither launch nor call CUDA before
    /// that: its body, and then its handlers, each of which may be done or not. So what handlers read and change is seen, in their
    /// callers, too, and nothing behind the `try` takes for granted that the body was done to its end. `None`: another `try`.
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
        if handlers.is_empty() || !handlers.iter().all(leave) {
            return None;
        }
        let span = source.span(node);
        let mut stmts = vec![self.perhaps(body, body, source)];
        for handler in handlers {
            self.scopes.push(Default::default());
            if let Some(parameters) = handler.child_by_field_name("parameters") {
                let span = source.span(parameters);
                for name in named_in(parameters) {
                    self.declare_opaque(source.of(name), source.span(name), span);
                }
            }
            let block = handler.child_by_field_name("body")?;
            stmts.push(self.perhaps(block, handler, source));
            self.scopes.pop();
        }
        Some(self.add_stmt(StmtKind::Block(stmts), span))
    }

    /// A block of a `try` that is done or not: nothing says when.
    fn perhaps(&mut self, block: Node<'_>, whole: Node<'_>, source: Source<'_>) -> StmtId {
        let decides = block.child(0).unwrap_or(block);
        let nothing = ExprKind::Unknown {
            parts: Vec::new(),
            mentions: Default::default(),
        };
        let cond = self.add_expr(nothing, decides, source);
        let then = self.stmt(block, source);
        let kind = StmtKind::If {
            init: None,
            cond: Some(cond),
            constexpr: false,
            then,
            otherwise: None,
        };
        self.add_stmt(kind, source.span(whole))
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

/// The names in the parameter of a handler.
fn named_in(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    let inner: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
    match node.kind() {
        "identifier" => vec![node],
        _ => inner.into_iter().flat_map(named_in).collect(),
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
