//! Variables that code needs at compile time, or names where nothing is lowered: their declaration has to be in sight there, as it is.

use std::collections::BTreeSet;

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::library::library;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::plain_types::is_plain_type;
use gridfuse_analysis::hir::resolve::functions_in;
use gridfuse_analysis::hir::walk::{all_in_expr, all_stmts};
use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, StmtId, StmtKind, Storage};

use super::structure::{Branch, Item};
use crate::edit::lex;
use crate::edit::names::words_with_macros;
use crate::facts::child::Child;
use crate::facts::uses::{named, variables};

/// Of the variables that are named where nothing is lowered (`unlowered`), those that are named outside of the regions: in the heads of loops,
/// in the sizes of shared memory, by statements that run once.
pub fn named_outside(body: &Body, items: &[Item], unlowered: &[(BindingId, Span)]) -> Vec<(BindingId, Span)> {
    let mut regions = Vec::new();
    stmts_of_regions(items, &mut regions);
    let spans: Vec<Span> = regions.iter().map(|stmt| body.stmt(*stmt).span).collect();
    let inside = |at: Span| spans.iter().any(|span| span.start <= at.start && at.end <= span.end);
    let mut found = unlowered.to_vec();
    found.retain(|(_, at)| !inside(*at));
    found
}

fn stmts_of_regions(items: &[Item], found: &mut Vec<StmtId>) {
    for item in items {
        match item {
            Item::Region(stmts) => found.extend(stmts),
            Item::Control { bodies, .. } => {
                for Branch { items, .. } in bodies {
                    stmts_of_regions(items, found);
                }
            }
            Item::Barrier(_) | Item::Shared(_) | Item::Once(_) => {}
        }
    }
}

/// What is declared around the loops over the threads, as it was: shared memory.
pub fn is_around(body: &Body, binding: BindingId) -> bool {
    matches!(body.binding(binding).storage, Storage::Shared | Storage::ExternShared)
}

/// The variables whose values the compiler has to know: in `case` labels, in the conditions of `if constexpr`, as sizes of arrays, and for
/// the constants that are made of them.
pub fn needed_by_compiler(child: &Child<'_>) -> BTreeSet<BindingId> {
    let body: &Body = &child.body;
    let mut exprs: Vec<ExprId> = { body.bindings.iter() }
        .flat_map(|binding| binding.ty.array.iter().flatten().copied())
        .collect();
    for stmt in body.root.map(|root| all_stmts(body, root)).unwrap_or_default() {
        match &body.stmt(stmt).kind {
            StmtKind::Case { value, .. } => exprs.extend(value),
            StmtKind::If {
                cond, constexpr: true, ..
            } => exprs.extend(cond),
            StmtKind::Decl(decls) if is_constexpr(child, stmt) => exprs.extend(decls.iter().filter_map(|d| d.init)),
            _ => {}
        }
    }
    let mut needed = BTreeSet::new();
    while let Some(expr) = exprs.pop() {
        for variable in variables(body, &all_in_expr(body, expr)) {
            if needed.insert(variable) {
                exprs.extend(body.initialiser(variable));
            }
        }
    }
    needed
}

/// A declaration says `constexpr`, or a macro in it does.
fn is_constexpr(child: &Child<'_>, declaration: StmtId) -> bool {
    let code = child.source(child.body.stmt(declaration).span);
    let words = words_with_macros(child.db, child.file, code);
    ["constexpr", "constinit"].iter().any(|word| words.contains(*word))
}

/// Somebody who is called may see that a variable is `const`: a template, or one of several functions. Elements of an array aren't.
pub fn shows_const(child: &Child<'_>, binding: BindingId) -> bool {
    let body: &Body = &child.body;
    let ty = &body.binding(binding).ty;
    if !(ty.const_pointer || ty.const_base && ty.pointers == 0) {
        return false;
    }
    let is_it = |arg: &ExprId| {
        let arg = body.strip_parens(*arg);
        let place = match body.expr(arg).kind {
            ExprKind::AddrOf(place) => body.strip_parens(place),
            _ => arg,
        };
        named(body, place) == Some(binding)
    };
    body.exprs.iter().any(|expr| {
        let ExprKind::Call { name, args, .. } = &expr.kind else {
            return false;
        };
        let Some(name) = name else {
            return args.iter().any(is_it);
        };
        let functions = functions_in(child.db, child.item, name);
        let alone = match functions.as_slice() {
            [] => library(name).is_some(),
            [function] => function.signature(child.db).template_params.is_none(),
            _ => false,
        };
        !alone && args.iter().any(is_it)
    })
}

/// What stands in front of the alignment that a declaration asks for.
const ALIGNING: [&str; 6] = [
    "alignas",
    "_Alignas",
    "__align__",
    "aligned",
    "__aligned__",
    "__declspec",
];

/// The statement that declares a variable asks for an alignment, which an array's elements don't have.
pub fn is_aligned(child: &Child<'_>, binding: BindingId) -> bool {
    let words = words_with_macros(child.db, child.file, &declaration(child, binding));
    ALIGNING.iter().any(|word| words.contains(*word))
}

/// The statement that declares a variable, with the attributes in front of it.
fn declaration(child: &Child<'_>, binding: BindingId) -> String {
    let body: &Body = &child.body;
    let span = match body.declaration(binding) {
        Some((stmt, _)) => body.stmt(stmt).span,
        None => body.binding(binding).decl_span,
    };
    let before = child.text.get(..(span.start + child.start) as usize).unwrap_or("");
    let begin = before.rfind([';', '{', '}']).map_or(0, |at| at + 1);
    format!("{} {}", &before[begin..], child.source(span))
}

/// A name that stands for a variable's type says more than which type it is, so that an array of it is none of variables that are assigned
/// to: `typedef const int I`, an alignment, an array. The name.
pub fn qualified_by_alias(child: &Child<'_>, binding: BindingId) -> Option<String> {
    let ty = &child.body.binding(binding).ty;
    let qualifiers = |word: &str| matches!(word, "const" | "volatile" | "constexpr" | "[") || ALIGNING.contains(&word);
    let mut todo = vec![unqualified(&ty.base).to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(name) = todo.pop() {
        if is_plain_type(&name) || !seen.insert(name.clone()) || seen.len() > MOST_NAMES {
            continue;
        }
        let said = said_of(child, &name);
        if said.iter().any(|word| qualifiers(word)) {
            return Some(ty.base.clone());
        }
        todo.extend(said);
    }
    // A macro may stand for the type.
    let macros = words_with_macros(child.db, child.file, &ty.base);
    (!ty.base.contains('<') && macros.iter().any(|word| qualifiers(word))).then(|| ty.base.clone())
}

/// Names up to which types are followed.
const MOST_NAMES: usize = 64;

/// The words of the aliases of this name that a child's file sees, from `typedef` or `using` to the `;`.
fn said_of(child: &Child<'_>, name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in included_files(child.db, child.file) {
        let text = file.text(child.db);
        if !text.contains(name) {
            continue;
        }
        let tokens = lex::code_tokens_of(child.db, *file);
        let word = |at: usize| tokens.get(at).map_or("", |t| t.text(&text));
        for at in (0..tokens.len()).filter(|at| word(*at) == name) {
            let begin = (0..at)
                .rev()
                .find(|at| matches!(word(*at), ";" | "{" | "}"))
                .map_or(0, |at| at + 1);
            let end = (at..tokens.len())
                .find(|at| matches!(word(*at), ";" | "{" | "}"))
                .unwrap_or(tokens.len());
            // It is what is declared, not what it is declared to be.
            let by_typedef = || {
                let ends = matches!(word(at + 1), ";" | "," | "[" | "(" | "__attribute__" | "__declspec");
                ends && (begin..at).any(|at| word(at) == "typedef")
            };
            let alias = at > begin && word(at - 1) == "using" || by_typedef();
            if alias {
                found.extend((begin..end).map(|at| word(at).to_owned()));
            }
        }
    }
    found.retain(|word| word == "[" || word.starts_with(|c: char| c == '_' || c.is_alphabetic()));
    found
}
