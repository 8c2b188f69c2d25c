//! Whether all uses of a variable are known, so that it can get another name.

use std::collections::BTreeSet;

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::{BindingId, Body, ExprKind, Name};

use crate::edit::lex;
use crate::facts::calls;
use crate::facts::child::Child;

/// A place where a variable's name stands for something that isn't known to be that variable, so that the name can't be replaced.
pub fn unknown_use(child: &Child<'_>, binding: BindingId) -> Option<Span> {
    let body: &Body = &child.body;
    let variable = body.binding(binding);
    let same_name = body.bindings.iter().filter(|b| b.name == variable.name).count();
    if same_name != 1 {
        return Some(variable.span);
    }
    let mut known = BTreeSet::from([variable.span.start]);
    for expr in &body.exprs {
        if let ExprKind::Name(Name::Local(b)) = expr.kind
            && b == binding
        {
            if expr.from_macro {
                return Some(expr.span);
            }
            known.insert(expr.span.start);
        }
    }
    let whole = child.item.body_span(child.db);
    let text = child.source(whole);
    let tokens = lex::code_tokens(text);
    let names = visible_names(child.db, child.file);
    for (index, token) in tokens.iter().enumerate() {
        let word = token.text(text);
        let span = Span::new(whole.start + token.start as u32, whole.start + token.end as u32);
        let before = |n: usize| {
            index
                .checked_sub(n)
                .and_then(|i| tokens.get(i))
                .map_or("", |t| t.text(text))
        };
        let member = before(1) == "." || before(1) == ">" && before(2) == "-";
        if word == variable.name && !member && !known.contains(&span.start) {
            return Some(span);
        }
        // A macro whose replacement names the variable.
        let mentions = |item: &gridfuse_analysis::base::preprocess::MacroItem| {
            lex::identifiers(&item.body).any(|w| w == variable.name || names.macros.contains_key(w))
        };
        if names.macros.get(word).is_some_and(mentions) && !calls::is_keyword(word) {
            return Some(span);
        }
    }
    None
}
