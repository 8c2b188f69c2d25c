//! Steps of a computation that gather: each grid reads elements that an index in memory picks, from the array into which it writes
//! others, as in `x[r] = b[r] - val[k] * x[col[k]]` of a triangular solve. What one thread launches in a loop, it launches in the order
//! in which one grid needs what the others have written.

use std::collections::BTreeSet;

use gridfuse_analysis::facts::dependence::{Access, Kind, Root, own_footprint};
use gridfuse_analysis::facts::launch::Child;
use gridfuse_analysis::hir::walk::all_in_expr;
use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtKind, body};

use crate::edit::lex;
use crate::facts::site::Site;
use crate::facts::swapped::Turns;

/// A read of an element that is picked by what is read from memory, and a write of another element of the same array, by the grids that
/// one thread launches in a loop. `None` where each of them is given an array of its own.
pub fn gathered<'db>(site: &Site<'db>) -> Option<(Access<'db>, Access<'db>)> {
    let Child::Kernel(kernel) = site.facts.child else {
        return None;
    };
    let turns = Turns::of(site)?;
    let (code, text) = (body(site.db, kernel), kernel.text(site.db));
    let footprint = own_footprint(site.db, kernel);
    let shared = |access: &&Access<'db>| {
        let Root::Parameter(index) = access.root else {
            return false;
        };
        let arg = site.facts.args.get(index as usize);
        access.function == kernel && arg.is_some_and(|arg| !turns.varies(arg.expr))
    };
    let all = || footprint.accesses.iter().filter(shared);
    let words = |access: &Access<'_>| lex::code_words(access.span.text(&text)).join(" ");
    let changes = |kind: Kind| matches!(kind, Kind::Write(None) | Kind::Update { .. });
    let reads = all().filter(|access| access.kind == Kind::Read && is_picked(&code, access));
    reads
        .flat_map(|read| all().map(move |write| (read, write)))
        .find(|(read, write)| {
            let same_array = read.root == write.root && read.path == write.path;
            same_array && changes(write.kind) && words(read) != words(write)
        })
        .map(|(read, write)| (read.clone(), write.clone()))
}

/// What is read from memory decides which element it is.
fn is_picked(body: &Body, access: &Access<'_>) -> bool {
    let subscripts = body.exprs.iter().filter(|expr| expr.span == access.span);
    subscripts.into_iter().any(|expr| match expr.kind {
        ExprKind::Index { index, .. } => is_loaded(body, index),
        _ => false,
    })
}

/// An expression is computed from what is read from memory, by whatever variables.
fn is_loaded(body: &Body, expr: ExprId) -> bool {
    let (mut todo, mut seen) = (vec![expr], BTreeSet::new());
    while let Some(expr) = todo.pop() {
        for part in all_in_expr(body, expr) {
            match &body.expr(part).kind {
                ExprKind::Index { .. } | ExprKind::Deref(_) => return true,
                ExprKind::Name(Name::Local(binding)) if seen.insert(*binding) => todo.extend(values(body, *binding)),
                _ => {}
            }
        }
    }
    false
}

/// What a variable gets at its declaration and by assignments, but for what counts it up or down.
fn values(body: &Body, variable: BindingId) -> impl Iterator<Item = ExprId> {
    let declared = body.stmts.iter().filter_map(move |stmt| match &stmt.kind {
        StmtKind::Decl(decls) => decls.iter().find(|decl| decl.binding == variable)?.init,
        _ => None,
    });
    let assigned = body.exprs.iter().filter_map(move |expr| match &expr.kind {
        ExprKind::Assign { place, op: None, value } => {
            let is_it = body.expr(body.strip_parens(*place)).kind == ExprKind::Name(Name::Local(variable));
            is_it.then_some(*value)
        }
        _ => None,
    });
    declared.chain(assigned)
}
