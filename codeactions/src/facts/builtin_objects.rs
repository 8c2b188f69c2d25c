//! How the parameters that stand for built-in variables are declared. Built-in variables are constants, `const uint3` and `const dim3`, and
//! where that matters so are the parameters: otherwise `f(uint3&)` is called in place of `f(const uint3&)`, `decltype(blockIdx)` is another
//! type, and a template that deduces `T&` another function. Code that only reads numbers of them, as `blockIdx.x * 2` does, can't tell.

use std::collections::{BTreeSet, HashSet};

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::preprocess::{MacroState, preprocessed};
use gridfuse_analysis::hir::library::library;
use gridfuse_analysis::hir::parameters;
use gridfuse_analysis::hir::resolve::functions_named;

use crate::edit::lex::{self, Token, TokenKind};
use crate::facts::calls::{VECTORS, is_plain_name};
use gridfuse_analysis::facts::effects::BUILTINS;

/// The built-in variables of which code sees that they are constants, or may see it.
pub struct Objects(BTreeSet<&'static str>);

impl Objects {
    /// Those of a piece of code in a file.
    pub fn of(db: &dyn Db, file: SourceFile, code: &str) -> Objects {
        let mut found = BTreeSet::new();
        look_at(db, file, code, &mut found);
        let states = &preprocessed(db, file).states;
        // Each word once: a macro's body may have a million.
        let mut seen: HashSet<&str> = HashSet::new();
        let mut todo: Vec<&str> = lex::identifiers(code).filter(|word| seen.insert(word)).collect();
        while let Some(word) = todo.pop() {
            for (_, state) in states.get(word).into_iter().flatten() {
                if let MacroState::Defined(item) = state {
                    look_at(db, file, &item.body, &mut found);
                    todo.extend(lex::identifiers(&item.body).filter(|word| seen.insert(word)));
                }
            }
        }
        Objects(found)
    }

    /// The parameter that stands for a built-in variable: `uint3 blockIdx`.
    pub fn parameter(&self, builtin: &str) -> String {
        let constant = if self.0.contains(builtin) { "const " } else { "" };
        let ty = match builtin {
            "threadIdx" | "blockIdx" => "uint3",
            _ => "dim3",
        };
        format!("{constant}{ty} {builtin}")
    }

    /// Several of them, as a list.
    pub fn parameters<'a>(&self, builtins: impl IntoIterator<Item = &'a str>) -> String {
        let all: Vec<String> = builtins.into_iter().map(|b| self.parameter(b)).collect();
        all.join(", ")
    }
}

fn look_at(db: &dyn Db, file: SourceFile, code: &str, found: &mut BTreeSet<&'static str>) {
    if !BUILTINS.iter().any(|builtin| code.contains(builtin)) {
        return;
    }
    let tokens = lex::code_tokens(code);
    for (index, token) in tokens.iter().enumerate() {
        if let Some(builtin) = BUILTINS.iter().find(|b| **b == token.text(code))
            && !is_read(db, file, code, &tokens, index)
        {
            found.insert(*builtin);
        }
    }
}

/// The built-in variable at `index` stands there for a number that is read from it.
fn is_read(db: &dyn Db, file: SourceFile, code: &str, tokens: &[Token], index: usize) -> bool {
    let text = |i: usize| tokens.get(i).map_or("", |t| t.text(code));
    let before = |by: usize| index.checked_sub(by).map_or("", text);
    if text(index + 1) != "." {
        return is_configuration(code, tokens, index);
    }
    // A number alone may become a reference; what is computed with it can't.
    let (first, behind) = (before(1), text(index + 3));
    if behind == ":" || matches!(first, "?" | ":") {
        // One of two numbers may become a reference, too, unless a function returns it.
        return (0..index)
            .rev()
            .take_while(|i| !matches!(text(*i), ";" | "{" | "}" | "("))
            .any(|i| text(i) == "return");
    }
    if !matches!(behind, ")" | "," | ";" | "}" | "]" | "") {
        return true;
    }
    match first {
        "=" => before(2) == "=" || before(3) != "&",
        // All that a macro stands for, or an address.
        "" => false,
        "&" => index
            .checked_sub(2)
            .and_then(|i| tokens.get(i))
            .is_some_and(|t| t.kind != TokenKind::Punct || matches!(t.text(code), ")" | "]" | "&")),
        "(" | "," | "{" => !may_be_referred_to(db, file, code, tokens, index),
        _ => true,
    }
}

/// The built-in variable at `index` is the grid or the block of a launch, by itself.
fn is_configuration(code: &str, tokens: &[Token], index: usize) -> bool {
    let text = |i: usize| tokens.get(i).map_or("", |t| t.text(code));
    if !matches!(text(index + 1), "," | ">" | ">>>") {
        return false;
    }
    let chevrons = |i: usize| {
        text(i) == "<<<" || (text(i) == "<" && i.checked_sub(2).is_some_and(|f| text(f) == "<" && text(f + 1) == "<"))
    };
    (0..index)
        .rev()
        .take_while(|i| !matches!(text(*i), ";" | "{" | "}" | "(" | ")"))
        .find(|i| matches!(text(*i), "<" | "<<<"))
        .is_some_and(chevrons)
}

/// What stands around the argument at `index` may take it by a reference.
fn may_be_referred_to(db: &dyn Db, file: SourceFile, code: &str, tokens: &[Token], index: usize) -> bool {
    let text = |i: usize| tokens.get(i).map_or("", |t| t.text(code));
    let (mut depth, mut position, mut at) = (0usize, 0usize, index);
    let open = loop {
        let Some(next) = at.checked_sub(1) else { return true };
        at = next;
        match text(at) {
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" if depth > 0 => depth -= 1,
            "[" => return false,
            "(" | "{" => break at,
            "," if depth == 0 => position += 1,
            ";" if depth == 0 => return false,
            _ => {}
        }
    };
    let Some(callee) = open.checked_sub(1) else { return true };
    let word = text(callee);
    if tokens.get(callee).is_none_or(|t| t.kind != TokenKind::Word) {
        return true;
    }
    let member = matches!(callee.checked_sub(1).map_or("", text), "." | ">" | ":");
    if matches!(word, "if" | "while" | "for" | "switch" | "return") && text(open) == "("
        || !member && (is_plain_name(word) || VECTORS.contains(&word) || word == "dim3")
    {
        return false;
    }
    let functions = functions_named(db, file, word);
    if functions.is_empty() {
        return member || text(open) == "{" || library(word).is_none();
    }
    functions.iter().any(|f| {
        let parameters = parameters(db, *f);
        parameters
            .get(position)
            .is_none_or(|p| p.ty.reference && !p.ty.const_base || p.ty.complex)
    })
}
