//! What the names in a piece of code mean where it stands, and where a rewrite writes it down: macros, parameters, template
//! parameters, and what functions and files declare. Code moves only where all of them mean the same.

use std::collections::HashSet;

use gridfuse_analysis::base::preprocess::MacroState;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::macros::macro_at;
use gridfuse_analysis::hir::mentions::gaps;
use gridfuse_analysis::hir::{Binding, ExprId, ExprKind, Name, Storage};

use crate::edit::lex;
use crate::edit::lex::TokenKind;
use crate::facts::calls;
use crate::facts::cluster::Function;

/// A place in a program's text, by the function that it belongs to.
#[derive(Clone, Copy)]
pub struct Spot<'a, 'db> {
    function: &'a Function<'db>,
    /// Relative to the function.
    at: u32,
    /// Code for this place may also be written here, behind the function: macros have to mean the same at both.
    behind: Option<u32>,
    /// Which of the function's names are seen.
    seen: Seen,
}

#[derive(Clone, Copy, PartialEq)]
enum Seen {
    /// Its parameters and template parameters: its head, and the beginning of its body.
    Parameters,
    /// Also what its body declares.
    All,
}

/// Whose name it is.
#[derive(PartialEq)]
enum Owner<'db> {
    /// A file's, or nobody's.
    File,
    /// A parameter or template parameter.
    Parameter(FunctionItem<'db>),
    /// A declaration in a function's body: it is nowhere else.
    Body,
}

impl<'a, 'db> Spot<'a, 'db> {
    /// In a function's head, where the types of its parameters stand.
    pub fn head(function: &'a Function<'db>) -> Spot<'a, 'db> {
        Spot {
            function,
            at: function.item.signature(function.db).params_span.start,
            behind: None,
            seen: Seen::Parameters,
        }
    }

    /// Where a function's body begins: it may become a function of its own, with what is written here in another one behind it.
    pub fn top(function: &'a Function<'db>) -> Spot<'a, 'db> {
        Spot {
            function,
            at: function.item.body_span(function.db).start,
            behind: Some(function.item.body_span(function.db).end),
            seen: Seen::Parameters,
        }
    }

    /// At a span of a function's body.
    pub fn within(function: &'a Function<'db>, span: Span) -> Spot<'a, 'db> {
        Spot {
            function,
            at: span.start,
            behind: None,
            seen: Seen::All,
        }
    }

    fn offset(&self) -> u32 {
        self.function.start + self.at
    }

    fn macro_state(&self, name: &str) -> Option<&'db MacroState> {
        self.macro_state_at(self.at, name)
    }

    fn macro_state_at(&self, at: u32, name: &str) -> Option<&'db MacroState> {
        let state = macro_at(self.function.db, self.function.item, at, name);
        state.filter(|state| **state != MacroState::Undefined)
    }

    /// Whether a macro of this name is another one behind the function.
    fn changes_behind(&self, name: &str) -> bool {
        self.behind
            .is_some_and(|at| self.macro_state_at(at, name) != self.macro_state(name))
    }

    fn owner(&self, name: &str) -> Owner<'db> {
        let Function { db, item, body, .. } = self.function;
        let signature = item.signature(*db);
        let variable = |b: &Binding| b.name == name && b.storage != Storage::Param;
        let declares = || body.declared.contains(name) || body.bindings.iter().any(variable);
        let has = || body.params.iter().any(|p| body.binding(*p).name == name);
        match self.seen {
            Seen::All if declares() => Owner::Body,
            Seen::All | Seen::Parameters if has() || signature.template_names.iter().any(|n| n == name) => {
                Owner::Parameter(*item)
            }
            _ => Owner::File,
        }
    }
}

/// The first name in an expression of `function` that means something else at another place. What the variables in it are there is the
/// caller's business, where the place is in the same function.
pub fn another_meaning(function: &Function<'_>, expr: ExprId, to: Spot<'_, '_>) -> Option<String> {
    let body = &function.body;
    let span = body.expr(expr).span;
    let mut variables = HashSet::new();
    if to.function.item.start(function.db) == function.start && to.function.file == function.file {
        for inner in body.exprs.iter().filter(|inner| span.contains(inner.span)) {
            if let ExprKind::Name(Name::Local(binding)) = &inner.kind {
                variables.insert(body.binding(*binding).name.as_str());
            }
        }
    }
    first_different(function.source(expr), Spot::within(function, span), to, &variables)
}

/// The first name in `code` that means something else at another place, without the names that are `known` to mean the same.
pub fn different(code: &str, from: Spot<'_, '_>, to: Spot<'_, '_>, known: &[String]) -> Option<String> {
    first_different(code, from, to, &known.iter().map(String::as_str).collect())
}

fn first_different(code: &str, from: Spot<'_, '_>, to: Spot<'_, '_>, known: &HashSet<&str>) -> Option<String> {
    let mut seen: HashSet<(String, bool)> = HashSet::new();
    // Names by themselves, and whether they stand behind `::`, `.` or `->`.
    let names = |code: &str| {
        let tokens = lex::code_tokens(code);
        let mut found: Vec<(String, bool)> = Vec::new();
        for (index, token) in tokens.iter().enumerate().filter(|(_, t)| t.kind == TokenKind::Word) {
            let before = |back: usize| index.checked_sub(back).map_or("", |i| tokens[i].text(code));
            let member = before(1) == "." || matches!((before(2), before(1)), (":", ":") | ("-", ">"));
            found.push((token.text(code).to_owned(), member));
        }
        found
    };
    let mut todo = names(code);
    todo.reverse();
    while let Some((name, member)) = todo.pop() {
        if calls::is_keyword(&name) || !seen.insert((name.clone(), member)) {
            continue;
        }
        if to.changes_behind(&name) {
            return Some(name);
        }
        match (from.macro_state(&name), to.macro_state(&name)) {
            (None, None) => {}
            (Some(MacroState::Defined(here)), Some(MacroState::Defined(there))) if here == there => {
                let params = here.params.as_deref().unwrap_or_default();
                let inner = names(&here.body);
                todo.extend(inner.into_iter().filter(|(name, _)| !params.contains(name)));
                continue;
            }
            // Whatever it is, nothing in between says that it's another one.
            (Some(here), Some(there)) if std::ptr::eq(here, there) => continue,
            _ => return Some(name),
        }
        if member || known.contains(name.as_str()) || crate::facts::calls::is_plain_type(&name) {
            continue;
        }
        let (here, there) = (from.owner(&name), to.owner(&name));
        let file = here == Owner::File;
        if here == Owner::Body || here != there || file && may_be_declared_between(&name, from, to) {
            return Some(name);
        }
    }
    None
}

/// Whether a file may say something of a name at one of the places that it doesn't say at the other one.
fn may_be_declared_between(name: &str, from: Spot<'_, '_>, to: Spot<'_, '_>) -> bool {
    let db = from.function.db;
    // An open namespace lends its names to what stands behind it.
    if from.seen == Seen::All && from.function.body.opens_namespace && !is_builtin(name) {
        return true;
    }
    let file = from.function.file;
    let mentions = |start: u32, end: u32| {
        let mut gaps = gaps(db, file).iter().filter(|gap| gap.start < end && start < gap.end);
        gaps.any(|gap| lex::identifiers(gap.text(&from.function.text)).any(|word| word == name))
    };
    if file == to.function.file {
        let (a, b) = (from.offset(), to.offset());
        return mentions(a.min(b), a.max(b));
    }
    !included_files(db, to.function.file).contains(&file) && mentions(0, u32::MAX)
}

/// A name that is the same in all code of a device.
fn is_builtin(name: &str) -> bool {
    matches!(
        name,
        "threadIdx" | "blockIdx" | "blockDim" | "gridDim" | "warpSize" | "true" | "false" | "nullptr" | "NULL" | "std"
    )
}
