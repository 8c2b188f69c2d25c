//! Variables that code needs at compile time, or names where nothing is lowered: their declaration has to be in sight there, as it is.

use std::collections::BTreeSet;

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::library::library;
use gridfuse_analysis::hir::resolve::functions_in;
use gridfuse_analysis::hir::walk::{all_in_expr, all_stmts};
use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, StmtId, StmtKind, Storage};

use super::structure::{Branch, Item};
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

/// The variables whose values the compiler has to know: in `case` labels, in the conditions of `if constexpr`, and as sizes of arrays.
pub fn needed_by_compiler(body: &Body) -> BTreeSet<BindingId> {
    let mut exprs: Vec<ExprId> = { body.bindings.iter() }
        .flat_map(|binding| binding.ty.array.iter().flatten().copied())
        .collect();
    for stmt in body.root.map(|root| all_stmts(body, root)).unwrap_or_default() {
        match &body.stmt(stmt).kind {
            StmtKind::Case { value, .. } => exprs.extend(value),
            StmtKind::If {
                cond, constexpr: true, ..
            } => exprs.extend(cond),
            _ => {}
        }
    }
    let all: Vec<ExprId> = exprs.into_iter().flat_map(|e| all_in_expr(body, e)).collect();
    variables(body, &all)
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
    let body: &Body = &child.body;
    let span = match body.declaration(binding) {
        Some((stmt, _)) => body.stmt(stmt).span,
        None => body.binding(binding).decl_span,
    };
    // Attributes may stand in front of the statement.
    let before = child.text.get(..(span.start + child.start) as usize).unwrap_or("");
    let begin = before.rfind([';', '{', '}']).map_or(0, |at| at + 1);
    let code = format!("{} {}", &before[begin..], child.source(span));
    let words = words_with_macros(child.db, child.file, &code);
    ALIGNING.iter().any(|word| words.contains(*word))
}
