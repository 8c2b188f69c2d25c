//! What a body does where nothing of it is lowered: in the types of casts and declarations, in template arguments, in `sizeof`, in
//! classes that a function defines for itself, in branches of `#if` that aren't compiled as far as is known, in macros that could not be
//! expanded, in what isn't understood; and in default arguments, which are evaluated where a function is called.
//!
//! Only these words are looked at: what lowering has understood, [`direct`](super::of_body::direct) tells. Words know no control flow and
//! no types, so every answer errs on the safe side.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::named::{BUILTINS, Named};
use super::types::{Step, What};
use crate::base::budget::MACRO_BYTES;
use crate::base::db::Db;
use crate::base::preprocess::{Lexeme, TokenKind, lex};
use crate::base::span::Span;
use crate::base::words::words;
use crate::facts::callee::by_name;
use crate::hir::assembly::assembly_text;
use crate::hir::items::FunctionItem;
use crate::hir::names::unqualified;
use crate::hir::plain_types::is_keyword;
use crate::hir::{Body, ExprKind, Name, StmtKind, Storage, body};

/// Macros in macros that are followed.
const MAX_MACROS: usize = 40;

/// What a function's body does where it isn't lowered.
#[salsa::tracked]
pub(super) fn unlowered<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Step<'db>> {
    let text = function.text(db);
    let span = function.body_span(db);
    let body = body(db, function);
    let mut words = Words::of(db, function, &body);
    words.scan(span.text(&text), span.start, None);
    words.named.found
}

/// What a function's default arguments do, of a definition or of a declaration apart.
#[salsa::tracked]
pub(super) fn default_arguments<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Step<'db>> {
    let text = function.text(db);
    let head = function.signature(db).params_span.text(&text);
    if !head.contains('=') {
        return Vec::new();
    }
    let body = body(db, function);
    let mut words = Words::of(db, function, &body);
    let defaults = body.params.iter().filter_map(|p| body.binding(*p).default);
    for default in defaults {
        words.scan(default.text(&text), default.start, None);
    }
    words.named.found
}

/// Where a word begins that lowering has understood.
fn understood(named: &Named<'_>, body: &Body, text: &str) -> FxHashSet<u32> {
    let mut found: FxHashSet<u32> = body.bindings.iter().map(|b| b.span.start).collect();
    let shared = |storage: Storage| matches!(storage, Storage::Shared | Storage::ExternShared);
    for binding in &body.bindings {
        if shared(binding.storage)
            && let Some(at) = binding.decl_span.text(text).find("__shared__")
        {
            found.insert(binding.decl_span.start + at as u32);
        }
    }
    let mut opaque_macros = Vec::new();
    for expr in &body.exprs {
        let word = match &expr.kind {
            ExprKind::Name(Name::Local(b)) => body.binding(*b).name.as_str(),
            ExprKind::Name(Name::Other(name)) if named.is_unexpanded(name, expr.from_macro) => continue,
            ExprKind::Name(Name::Other(name)) => unqualified(name),
            ExprKind::Name(Name::Builtin(_)) => expr.span.text(text),
            ExprKind::Field { field, .. } => field.as_str(),
            ExprKind::Launch(launch) => {
                found.insert(launch.config_span.start);
                continue;
            }
            ExprKind::Unknown { .. } if expr.from_macro => {
                opaque_macros.push(expr.span.start);
                continue;
            }
            _ => "",
        };
        // What comes out of a macro is at the macro's name.
        if expr.from_macro {
            found.insert(expr.span.start);
        }
        if !word.is_empty()
            && let Some(at) = expr.span.text(text).rfind(word)
        {
            found.insert(expr.span.start + at as u32);
        }
    }
    for stmt in &body.stmts {
        if matches!(
            stmt.kind,
            StmtKind::Asm { .. } | StmtKind::While { .. } | StmtKind::DoWhile { .. }
        ) {
            found.insert(stmt.span.start);
            if let StmtKind::DoWhile { .. } = stmt.kind
                && let Some(at) = stmt.span.text(text).rfind("while")
            {
                found.insert(stmt.span.start + at as u32);
            }
        }
    }
    for start in opaque_macros {
        found.remove(&start);
    }
    // What a class does that a macro defines isn't lowered, though an object of it be.
    found.retain(|start| !defines_a_class(named, text.get(*start as usize..).unwrap_or("")));
    found
}

/// Whether the macro that a text begins with defines a class, itself or by others.
fn defines_a_class(named: &Named<'_>, text: &str) -> bool {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut pending: Vec<&str> = words(text).take(1).collect();
    while let Some(name) = pending.pop() {
        let Some(item) = named.names.macros.get(name) else {
            continue;
        };
        if seen.insert(name) {
            let class = |word: &str| matches!(word, "struct" | "class" | "union");
            if item.body.contains('{') && words(&item.body).any(class) {
                return true;
            }
            pending.extend(words(&item.body));
        }
    }
    false
}

/// The words of a text, one after the other.
struct Words<'a, 'db> {
    named: Named<'db>,
    understood: FxHashSet<u32>,
    /// Local variables: whether calling one is a call of something unknown.
    locals: FxHashMap<&'a str, bool>,
    /// The macros whose texts are looked at, the outermost first.
    macros: Vec<String>,
    /// Bytes of the macros that were followed, each as often as it was.
    replaced: usize,
}

impl<'a, 'db> Words<'a, 'db> {
    fn of(db: &'db dyn Db, function: FunctionItem<'db>, body: &'a Body) -> Words<'a, 'db> {
        let mut locals: FxHashMap<&str, bool> = FxHashMap::default();
        for (index, binding) in body.bindings.iter().enumerate() {
            let opaque = !super::of_body::is_lambda(body, crate::hir::BindingId(index as u32));
            *locals.entry(&binding.name).or_default() |= opaque;
        }
        let named = Named::new(db, function);
        Words {
            understood: understood(&named, body, &function.text(db)),
            named,
            locals,
            macros: Vec::new(),
            replaced: 0,
        }
    }

    /// Looks at a piece of the function (`shift`: where it stands in that), or at a macro's text, which stands for the place `at`.
    fn scan(&mut self, code: &str, shift: u32, at: Option<Span>) {
        let tokens = lex(code, at.is_none());
        let text = |index: usize| tokens.get(index).map_or("", |t| spelled(code, t));
        let before = |index: usize, back: usize| index.checked_sub(back).map_or("", text);
        for (index, token) in tokens.iter().enumerate() {
            let here = Span::new(shift + token.start as u32, shift + token.end as u32);
            let place = at.unwrap_or(here);
            if at.is_none() && self.understood.contains(&here.start) {
                continue;
            }
            let word = spelled(code, token);
            if word == "<<<" {
                self.named.does(What::Launches, "a launch", place, place);
            }
            if token.kind != TokenKind::Word || self.of_language(code, &tokens, index, place) {
                continue;
            }
            if BUILTINS.contains(&word) {
                self.builtin(word, before(index, 1) == "::", place);
                continue;
            }
            let called = is_called(code, &tokens, index);
            if matches!(before(index, 1), "." | "->") {
                if called {
                    self.named.method(word, place, place);
                }
                continue;
            }
            // A name in the middle of a qualified one is looked at with the last part.
            if text(index + 1) == "::" {
                continue;
            }
            let qualified = qualified(code, &tokens, index);
            if let Some(opaque) = self.locals.get(word)
                && qualified == word
            {
                if called && *opaque {
                    self.named.unknown(format!("a call of `{word}`"), place, place);
                }
                continue;
            }
            let template = |name: &String| name == word;
            let signature = self.named.function.signature(self.named.db);
            let mut own = signature.template_names.iter().chain(&signature.template_types);
            if is_keyword(word) || qualified == word && own.any(template) {
                continue;
            }
            self.name(&qualified, called, place);
        }
    }

    /// A word of the language that has an effect of its own; `false` when it is none.
    fn of_language(&mut self, code: &str, tokens: &[Lexeme], index: usize, place: Span) -> bool {
        let Some(token) = tokens.get(index) else { return false };
        match spelled(code, token) {
            "__shared__" => self.named.does(What::Shared, "__shared__ memory", place, place),
            "asm" | "__asm__" | "__asm" => {
                let text = assembly_text(code.get(token.start..).unwrap_or(""));
                self.named.does(What::Asm(text), "asm", place, place);
            }
            "while" => {
                if waits(code, tokens, index) {
                    self.named.does(What::Waits, super::types::WAITING_LOOP, place, place);
                }
            }
            _ => return false,
        }
        true
    }

    /// A built-in variable; `qualified`: written with `::`.
    fn builtin(&mut self, word: &str, qualified: bool, place: Span) {
        if qualified {
            // No parameter stands for that.
            self.named.unknown(format!("`::{word}`"), place, place);
        } else if !self.locals.contains_key(word) {
            // An outlined body has parameters of these names.
            for builtin in BUILTINS.into_iter().filter(|b| *b == word) {
                self.named.does(What::Builtin(builtin), builtin, place, place);
            }
        }
    }

    /// A name that isn't local.
    fn name(&mut self, name: &str, called: bool, place: Span) {
        let last = unqualified(name);
        let hidden = called && crate::hir::scope::hides(self.named.db, self.named.function, name);
        // Within its own text a macro's name is an ordinary one.
        let within = self.macros.iter().any(|within| within == last);
        let followed = !hidden && !within && !self.named.names.ambiguous_macros.contains(last);
        if let Some(item) = self.named.names.macros.get(last).filter(|_| followed) {
            // Each use counts, as launches are counted; so macros that use each other may stand for any number of them.
            self.replaced = self.replaced.saturating_add(item.name.len() + item.body.len());
            if self.macros.len() >= MAX_MACROS || self.replaced > MACRO_BYTES {
                let unknown = |step: &Step<'_>| match step {
                    Step::Does(act) => matches!(act.what, What::Unknown) && act.at == place,
                    Step::Runs { .. } | Step::RunsLambda { .. } => false,
                };
                if !self.named.found.last().is_some_and(unknown) {
                    let what = format!("`{last}`, a macro that is too large to be followed");
                    self.named.unknown(what, place, place);
                }
                return;
            }
            self.macros.push(item.name.clone());
            self.scan(&item.body, 0, Some(place));
            self.macros.pop();
        } else if called {
            let means = by_name(self.named.db, self.named.function, name, &[]);
            self.named.call(name, &means, place, place);
        } else {
            self.named.value(name, place);
        }
    }
}

fn spelled<'a>(code: &'a str, token: &Lexeme) -> &'a str {
    code.get(token.start..token.end).unwrap_or("")
}

/// The word at `index` is followed by an argument list, perhaps behind template arguments.
fn is_called(code: &str, tokens: &[Lexeme], index: usize) -> bool {
    let text = |i: usize| tokens.get(i).map_or("", |t| spelled(code, t));
    if text(index + 1) == "(" {
        return true;
    }
    if text(index + 1) != "<" {
        return false;
    }
    let mut depth = 0usize;
    for next in index + 1..(index + 200).min(tokens.len()) {
        let closed = match text(next) {
            "<" => {
                depth += 1;
                0
            }
            ">" => 1,
            ">>" => 2,
            ">>>" => 3,
            ";" | "{" | "}" | "=" | "|" | "||" | "==" => return false,
            _ => 0,
        };
        depth = depth.saturating_sub(closed);
        if closed > 0 && depth == 0 {
            return text(next + 1) == "(";
        }
    }
    false
}

/// The qualified name that ends at the word `index`.
fn qualified(code: &str, tokens: &[Lexeme], index: usize) -> String {
    let text = |i: usize| tokens.get(i).map_or("", |t| spelled(code, t));
    let mut name = text(index).to_owned();
    let mut at = index;
    while at >= 2 && text(at - 1) == "::" && tokens.get(at - 2).is_some_and(|t| t.kind == TokenKind::Word) {
        at -= 2;
        name = format!("{}::{name}", text(at));
    }
    name
}

/// `while (…)` with an atomic exchange or a volatile load in its condition.
fn waits(code: &str, tokens: &[Lexeme], index: usize) -> bool {
    let mut depth = 0i32;
    for token in tokens.iter().skip(index + 1) {
        match spelled(code, token) {
            "(" => depth += 1,
            ")" => {
                depth -= 1;
                if depth == 0 {
                    return false;
                }
            }
            "atomicCAS" | "atomicExch" | "volatile" | "__ldcv" | "atomicOr" => return true,
            _ => {}
        }
    }
    false
}
