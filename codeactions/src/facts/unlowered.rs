//! Local variables that code names where nothing is lowered: in `sizeof` and `decltype`, in template arguments, in the types of casts
//! and declarations, in attributes. Who moves code asks here for what the expressions don't say.

use std::collections::HashSet;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::preprocess::{MacroState, preprocessed};
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::{BindingId, Body, ExprKind, StmtKind, Storage, body};

use crate::edit::lex::{self, Token, TokenKind};

/// The variables of a function that a part of its text names where nothing is lowered, with the places. Of what a macro stands for, all
/// names count.
pub fn named_unlowered(db: &dyn Db, function: FunctionItem<'_>, part: Span) -> Vec<(BindingId, Span)> {
    let all = in_function(db, function).iter();
    all.filter(|(_, place)| part.contains(*place)).copied().collect()
}

/// The same of all of a function: it is asked for each argument of each of its launches.
#[salsa::tracked]
fn in_function<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<(BindingId, Span)> {
    let body = &body(db, function);
    let code: &str = &function.text(db);
    let tokens = lex::code_tokens(code);
    let exprs = body.exprs.iter().filter(|e| matches!(e.kind, ExprKind::Name(_)));
    let names = exprs.map(|e| e.span).chain(body.bindings.iter().map(|b| b.span));
    let lowered: HashSet<(u32, u32)> = names.map(|span| (span.start, span.end)).collect();
    let states = &preprocessed(db, function.file(db)).states;
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let word = token.text(code);
        if token.kind != TokenKind::Word || is_member(code, &tokens, index) {
            continue;
        }
        let at = Span::new(token.start as u32, token.end as u32);
        if !states.contains_key(word) {
            if !lowered.contains(&(at.start, at.end)) {
                found.extend(variable_at(body, word, at.start).map(|binding| (binding, at)));
            }
            continue;
        }
        let mut seen: HashSet<&str> = HashSet::new();
        let mut todo = vec![word];
        while let Some(name) = todo.pop() {
            if !seen.insert(name) {
                continue;
            }
            found.extend(variable_at(body, name, at.start).map(|binding| (binding, at)));
            for (_, state) in states.get(name).into_iter().flatten() {
                if let MacroState::Defined(item) = state {
                    let params = item.params.as_deref().unwrap_or_default();
                    let inner = names_in(&item.body);
                    todo.extend(inner.into_iter().filter(|n| !params.iter().any(|p| p == n)));
                }
            }
        }
    }
    found.extend(in_blanked_attributes(db, function, body));
    found
}

/// Attributes that masking blanks together with their arguments, which may name variables: `__attribute__((aligned(sizeof(v))))`.
const BLANKED: [&str; 3] = ["__attribute__", "__align__", "__declspec"];

/// What such attributes name, as the file has them.
fn in_blanked_attributes(db: &dyn Db, function: FunctionItem<'_>, body: &Body) -> Vec<(BindingId, Span)> {
    let (masked, file) = (function.text(db), function.file(db).text(db));
    let start = function.start(db) as usize;
    let code = file.get(start..start + masked.len()).unwrap_or("");
    if !BLANKED.iter().any(|attribute| code.contains(attribute)) {
        return Vec::new();
    }
    let tokens = lex::code_tokens(code);
    let mut found = Vec::new();
    let mut named: Vec<BindingId> = Vec::new();
    let mut depth = 0u32;
    for (index, token) in tokens.iter().enumerate() {
        let word = token.text(code);
        let at = Span::new(token.start as u32, token.end as u32);
        // An attribute in front of a statement belongs to what follows it.
        if depth == 0 {
            found.extend(named.drain(..).map(|binding| (binding, at)));
        }
        let opens = depth > 0
            || index
                .checked_sub(1)
                .is_some_and(|before| BLANKED.contains(&tokens[before].text(code)));
        match word {
            "(" if opens => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ if depth > 0 && token.kind == TokenKind::Word => {
                if let Some(binding) = variable_at(body, word, at.start) {
                    found.push((binding, at));
                    named.push(binding);
                }
            }
            _ => {}
        }
    }
    found
}

/// The words of a piece of code that stand by themselves.
fn names_in(code: &str) -> Vec<&str> {
    let tokens = lex::code_tokens(code);
    let words = tokens.iter().enumerate().filter(|(_, t)| t.kind == TokenKind::Word);
    words
        .filter(|(index, _)| !is_member(code, &tokens, *index))
        .map(|(_, t)| t.text(code))
        .collect()
}

/// The word stands behind `.`, `->` or `::`.
fn is_member(code: &str, tokens: &[Token], index: usize) -> bool {
    let before = |back: usize| index.checked_sub(back).map_or("", |i| tokens[i].text(code));
    before(1) == "." || matches!((before(2), before(1)), (":", ":") | ("-", ">"))
}

/// The variable that a name means at a place of the body.
fn variable_at(body: &Body, name: &str, at: u32) -> Option<BindingId> {
    let all = (0..body.bindings.len() as u32).map(BindingId);
    let seen = all.filter(|id| {
        let binding = body.binding(*id);
        binding.name == name && binding.span.start < at && (body.params.contains(id) || is_in_scope(body, *id, at))
    });
    seen.max_by_key(|id| body.binding(*id).span.start)
}

/// The innermost statement that ends the variable's life is one around `at`.
fn is_in_scope(body: &Body, id: BindingId, at: u32) -> bool {
    let binding = body.binding(id);
    if binding.storage == Storage::Param {
        return false;
    }
    let ends_a_life = |kind: &StmtKind| {
        matches!(
            kind,
            StmtKind::Block(_)
                | StmtKind::If { .. }
                | StmtKind::While { .. }
                | StmtKind::For { .. }
                | StmtKind::RangeFor { .. }
                | StmtKind::Switch { .. }
        )
    };
    let around = body
        .stmts
        .iter()
        .filter(|s| ends_a_life(&s.kind) && s.span.contains(binding.span));
    let scope = around.map(|s| s.span).min_by_key(|span| span.end - span.start);
    scope.is_some_and(|span| span.start <= at && at < span.end)
}
