//! Launches that stand in a function of the host's and may be made by device code all the same: there is no memory to be had for them.

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::ExprKind;
use gridfuse_analysis::hir::resolve::runs_on_device;

use crate::edit::lex::{self, TokenKind};
use crate::facts::site::Site;

/// Whether device code may make a launch: its function may run there, or it stands in a lambda with a specifier, or with a macro that may
/// stand for one.
pub fn is_made_by_device(site: &Site<'_>) -> bool {
    runs_on_device(site.db, site.parent) || stands_in_device_lambda(site)
}

fn stands_in_device_lambda(site: &Site<'_>) -> bool {
    let body = &site.body;
    let around = |span: Span| span.start <= site.facts.span.start && site.facts.span.end <= span.end;
    body.exprs.iter().any(|expr| match &expr.kind {
        ExprKind::Lambda { body: inside, .. } if around(expr.span) => {
            // Without a body that is understood, its head is all of it.
            let end = inside.map_or(site.facts.span.start, |stmt| body.stmt(stmt).span.start);
            has_specifier(site.source(Span::new(expr.span.start, end)))
        }
        _ => false,
    })
}

/// Between a lambda's captures and its parameters stands a word that isn't in brackets: `[=] __device__ (int i)`, `[=] GPU_LAMBDA`.
fn has_specifier(head: &str) -> bool {
    let tokens = lex::code_tokens(head);
    let mut depth = 0i32;
    for token in &tokens {
        match token.text(head) {
            "[" | "<" => depth += 1,
            "]" | ">" => depth -= 1,
            "(" | "{" if depth == 0 => return false,
            _ if depth == 0 && token.kind == TokenKind::Word => return true,
            _ => {}
        }
    }
    // What follows the parameters tells nothing of it.
    false
}

#[cfg(test)]
mod tests {
    use super::has_specifier;

    #[test]
    fn heads_of_lambdas() {
        for head in [
            "[=] __device__ (int i) ",
            "[=, this] __host__ __device__ (int i)",
            "[] GPU ",
            "[&a] /* c */ HD(int i)",
        ] {
            assert!(has_specifier(head), "{head}");
        }
        for head in [
            "[=] (int i) ",
            "[] ",
            "[a = f(b[0])] (int i) mutable ",
            "[=] <class T> (T i) -> int ",
            "[] /* __device__ */ (int i)",
        ] {
            assert!(!has_specifier(head), "{head}");
        }
    }
}
