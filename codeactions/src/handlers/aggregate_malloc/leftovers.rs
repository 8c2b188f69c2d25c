//! Words that may allocate or free device memory where no call is seen that does: in initialisers of fields, default arguments,
//! conversion operators, code that macros make.

use std::collections::{HashMap, HashSet};

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::parse::masked;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::preprocess::{MacroState, preprocessed};
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::body;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::runs_on_device;

use super::{Allocator, calls};
use crate::api::refusal::Refusals;
use crate::edit::lex::{self, Token, TokenKind};
use crate::edit::style;
use crate::facts::allocations::is_placement_at;
use crate::facts::site::function_around;

/// Refuses what stands neither in the body of a device function, where every such word is looked at, nor in a function of the
/// host.
pub(super) fn refuse(db: &dyn Db, files: &[SourceFile], families: &[Allocator], refusals: &mut Refusals) {
    let words: Vec<&str> = families.iter().flat_map(|f| f.words()).copied().collect();
    let macros = Macros::of(db, files);
    let scan = Scan {
        db,
        allocating: macros.that_use(&words),
        on_device: macros.that_use(&["__device__", "__global__"]),
        words,
        macros: &macros,
    };
    for file in files {
        scan.file(*file, refusals);
    }
}

/// Whether `new`, or a function's name, at `index` may mean the language's or CUDA's own: not after `.`, `->` or the name of a
/// class or a namespace, not `new (place) T`, not `= delete`.
pub(super) fn may_be_meant(code: &str, tokens: &[Token], index: usize) -> bool {
    let word = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map_or("", |t| t.text(code));
    let back = |n: usize| word(index.checked_sub(n));
    match word(Some(index)) {
        "new" => !is_placement_at(code, tokens, index),
        "delete" => back(1) != "=",
        _ if back(1) == "." || back(1) == ">" && back(2) == "-" => false,
        _ if back(1) == ":" && back(2) == ":" => {
            let [scope, colon] = [3, 2].map(|n| index.checked_sub(n).and_then(|at| tokens.get(at)));
            let touches = scope.map(|t| t.end) == colon.map(|t| t.start);
            let named = scope.is_some_and(|t| t.kind == TokenKind::Word || t.text(code) == ">");
            !(touches && named) || back(3) == "std" || is_statement(back(3))
        }
        _ => true,
    }
}

/// A word in front of an expression, which is no type in front of a name that is declared.
fn is_statement(word: &str) -> bool {
    matches!(
        word,
        "return"
            | "else"
            | "do"
            | "throw"
            | "case"
            | "and"
            | "or"
            | "not"
            | "co_return"
            | "co_yield"
            | "co_await"
            | "operator"
            | "new"
            | "delete"
    )
}

/// All macros of a program, by name: the words of everything that each may stand for.
struct Macros(HashMap<String, HashSet<String>>);

impl Macros {
    fn of(db: &dyn Db, files: &[SourceFile]) -> Macros {
        let mut found: HashMap<String, HashSet<String>> = HashMap::new();
        for file in files {
            for (name, states) in &preprocessed(db, *file).states {
                for (_, state) in states {
                    if let MacroState::Defined(item) = state {
                        let words = lex::identifiers(&item.body).map(str::to_owned);
                        found.entry(name.clone()).or_default().extend(words);
                    }
                }
            }
        }
        Macros(found)
    }

    /// The macros that use one of these words, or another macro that does.
    fn that_use(&self, words: &[&str]) -> HashSet<&str> {
        let mut found: HashSet<&str> = HashSet::new();
        loop {
            let more: Vec<&str> = self
                .0
                .iter()
                .filter(|(name, uses)| {
                    let hit = |w: &String| words.contains(&w.as_str()) || found.contains(w.as_str());
                    !found.contains(name.as_str()) && uses.iter().any(hit)
                })
                .map(|(name, _)| name.as_str())
                .collect();
            if more.is_empty() {
                return found;
            }
            found.extend(more);
        }
    }
}

/// What is looked for.
struct Scan<'a> {
    db: &'a dyn Db,
    words: Vec<&'a str>,
    macros: &'a Macros,
    /// Macros that use one of the words.
    allocating: HashSet<&'a str>,
    /// Macros that may make device code.
    on_device: HashSet<&'a str>,
}

impl Scan<'_> {
    fn file(&self, file: SourceFile, refusals: &mut Refusals) {
        let db = self.db;
        let text = file.text(db);
        let tokens = without_directives(&text, lex::code_tokens_of(db, file));
        let masked = masked(db, file);
        for (index, token) in tokens.iter().enumerate() {
            let word = token.text(&text);
            let named = self.words.contains(&word) && may_be_meant(&text, &tokens, index);
            if token.kind != TokenKind::Word || !named && !self.allocating.contains(word) {
                continue;
            }
            let range = TextRange::new(token.start as u32, token.end as u32);
            let within = |all: &[TextRange]| all.iter().any(|r| r.contains(range));
            // What is not compiled.
            if within(&masked.inactive) && !within(&masked.cuts) {
                continue;
            }
            let clear = match function_around(db, FileRange { file, range }) {
                Some(function) if is_on_device(db, function) => {
                    let kept = masked.text.get(token.start..token.end) == Some(word);
                    kept && is_looked_at(db, function, range) || named && self.is_declared(&text, &tokens, index)
                }
                Some(function) => self.is_on_host(&text, &tokens, function, index),
                None => named && self.is_declared(&text, &tokens, index),
            };
            if !clear {
                refusals.add(
                    format!("`{word}` may allocate or free device memory in a way that is not understood"),
                    Some(FileRange { file, range }),
                );
            }
        }
    }

    /// Whether a function that says nothing of the device is the host's up to the token at `index`. Where a macro without a
    /// semicolon stands in front of it, its attributes may not have been seen; and a lambda in it may be for the device.
    fn is_on_host(&self, text: &str, tokens: &[Token], function: FunctionItem<'_>, index: usize) -> bool {
        let start = function.start(self.db) as usize;
        let first = tokens.partition_point(|t| t.start < start);
        let before = tokens.get(..first).unwrap_or_default();
        let ends = |t: &Token| matches!(t.text(text), ";" | "}" | "{");
        let from = before.iter().rposition(ends).map_or(0, |at| at + 1);
        let head = tokens.get(from..=index).unwrap_or_default();
        let on_device = |word: &str| matches!(word, "__device__" | "__global__") || self.on_device.contains(word);
        function.signature(self.db).uncertain.is_none() && !head.iter().any(|t| on_device(t.text(text)))
    }

    /// Whether the name of a function or a variable is declared at `index`: a type stands in front of it.
    fn is_declared(&self, text: &str, tokens: &[Token], index: usize) -> bool {
        let mut before = tokens.get(..index).unwrap_or_default();
        while let [rest @ .., star] = before
            && star.text(text) == "*"
        {
            before = rest;
        }
        let name = tokens.get(index).map_or("", |t| t.text(text));
        !matches!(name, "new" | "delete")
            && before.last().is_some_and(|t| {
                let word = t.text(text);
                t.kind == TokenKind::Word && !is_statement(word) && !self.macros.0.contains_key(word)
            })
    }
}

fn is_on_device(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    runs_on_device(db, function)
}

/// Whether a place in a device function is in its body, or in a call that is seen.
fn is_looked_at(db: &dyn Db, function: FunctionItem<'_>, range: TextRange) -> bool {
    let start = function.start(db);
    let lowered = body(db, function);
    function.body_span(db).shift(start).contains(range)
        || calls(db, function)
            .iter()
            .any(|call| lowered.expr(call.expr).span.shift(start).contains(range))
}

/// The tokens that stand outside of preprocessor directives.
fn without_directives(text: &str, tokens: &[Token]) -> Vec<Token> {
    let mut end = 0;
    let mut found = Vec::new();
    for token in tokens {
        let before = text
            .get(style::line_start(text, token.start)..token.start)
            .unwrap_or("");
        if token.start >= end && token.text(text) == "#" && before.trim().is_empty() {
            end = directive_end(text, token.start);
        }
        if token.start >= end {
            found.push(*token);
        }
    }
    found
}

/// Where the directive at `start` ends, which goes on behind a backslash at the end of a line.
fn directive_end(text: &str, start: usize) -> usize {
    let mut end = start;
    for line in text.get(start..).unwrap_or("").split_inclusive('\n') {
        end += line.len();
        if !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
            break;
        }
    }
    end
}
