//! Buffers that change places from one launch of a loop to the next, as in `u = v`: what a grid writes, the next one reads.

use std::collections::BTreeMap;

use gridfuse_analysis::facts::dependence::{Root, own_footprint};
use gridfuse_analysis::facts::launch::Child;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::{BindingId, ExprId, ExprKind, Name, StmtKind};

use crate::facts::site::Site;

/// Two pointers that a launch in a loop is given and that change places in that loop, where the child's grids write through one of them;
/// as a fragment of a sentence.
pub fn swapped(site: &Site<'_>) -> Option<String> {
    let body = &site.body;
    let Child::Kernel(child) = site.facts.child else {
        return None;
    };
    let innermost = body.stmt(site.facts.loops.first()?.stmt).span;
    let variable = |expr: ExprId| match body.expr(body.strip_parens(expr)).kind {
        ExprKind::Name(Name::Local(binding)) if body.binding(binding).ty.pointers > 0 => Some(binding),
        _ => None,
    };
    // The pointers that are given as they are, by the position of the argument.
    let arguments = site.facts.args.iter().enumerate();
    let given: BTreeMap<BindingId, u32> = arguments
        .filter_map(|(index, argument)| Some((variable(argument.expr)?, index as u32)))
        .collect();
    // What a temporary variable has been given: `float* t = u;`
    let mut held: BTreeMap<BindingId, BindingId> = BTreeMap::new();
    for stmt in body.stmts.iter().filter(|stmt| innermost.contains(stmt.span)) {
        let StmtKind::Decl(declared) = &stmt.kind else { continue };
        held.extend(
            declared
                .iter()
                .filter_map(|decl| Some((decl.binding, variable(decl.init?)?))),
        );
    }
    let inside = || body.exprs.iter().filter(|expr| innermost.contains(expr.span));
    let assigned = |expr: &ExprKind| match expr {
        ExprKind::Assign { place, value, .. } => Some((variable(*place)?, variable(*value)?)),
        _ => None,
    };
    for expr in inside() {
        let temporary = assigned(&expr.kind).filter(|(place, _)| !given.contains_key(place));
        held.extend(temporary);
    }
    // A pair of which each gets what the other one had.
    let gets: Vec<(BindingId, BindingId, &str)> = inside()
        .filter_map(|expr| {
            let (to, from) = match &expr.kind {
                ExprKind::Call {
                    name: Some(name), args, ..
                } if unqualified(name) == "swap" => match args.as_slice() {
                    [one, other] => (variable(*one)?, variable(*other)?),
                    _ => return None,
                },
                kind => assigned(kind)?,
            };
            let from = held.get(&from).copied().unwrap_or(from);
            let both = to != from && given.contains_key(&to) && given.contains_key(&from);
            both.then(|| (to, from, site.source(expr.span)))
        })
        .collect();
    let footprint = own_footprint(site.db, child);
    let written = |index: u32| {
        let mut accesses = footprint.accesses.iter();
        accesses.any(|access| access.root == Root::Parameter(index) && !access.kind.reads_only())
    };
    let (to, from, code) = gets.iter().find(|(to, from, _)| {
        [to, from]
            .iter()
            .any(|binding| given.get(*binding).is_some_and(|index| written(*index)))
    })?;
    let name = |binding: &BindingId| &body.binding(*binding).name;
    Some(format!(
        "`{}` and `{}` change places in each iteration (`{code}`), so that a grid works on what the one before it has written",
        name(to),
        name(from)
    ))
}
