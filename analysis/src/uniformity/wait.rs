//! Loops that may wait for another thread.

use std::collections::HashSet;

use super::changes::{Region, parts};
use super::known::Known;
use crate::db::Db;
use crate::flow::operands;
use crate::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtId, StmtKind, body};
use crate::items::FunctionItem;
use crate::span::Span;
use crate::summary::{Callee, callee};

/// Spans of the loops of a function whose end may depend on what another thread does: on an atomic's result, a volatile
/// load, a call or inline assembly of which that can't be excluded, or on memory that the loop reads again and again.
pub(crate) fn waiting_loops(db: &dyn Db, function: FunctionItem<'_>) -> Vec<Span> {
    let body = body(db, function);
    let mut found = Vec::new();
    let suspicious: Vec<bool> = (0..body.exprs.len() as u32)
        .map(|i| others_decide(db, function, &body, ExprId(i), true))
        .collect();
    let asking = asking_assembly(db, function, &body);
    let any = suspicious.iter().any(|s| *s) || !asking.is_empty();
    for (i, stmt) in body.stmts.iter().enumerate() {
        let id = StmtId(i as u32);
        let waits = match &stmt.kind {
            StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::For { .. } => {
                loop_waits(&body, id, &suspicious, &asking)
            }
            StmtKind::Goto(_) => any,
            _ => false,
        };
        if waits {
            found.push(stmt.span);
        }
    }
    found
}

/// What other threads do may decide the value of this expression, its operands aside.
fn others_decide(db: &dyn Db, function: FunctionItem<'_>, body: &Body, e: ExprId, follow: bool) -> bool {
    match &body.expr(e).kind {
        ExprKind::Name(Name::Local(b)) => body.binding(*b).ty.volatile,
        ExprKind::Cast { ty, .. } => ty.contains("volatile"),
        ExprKind::Unknown { .. } => true,
        ExprKind::Call {
            callee: target,
            name,
            args,
            ..
        } => match callee(db, function, body, *target, name.as_deref(), args) {
            Callee::Known(Known::Atomic | Known::VolatileLoad) => true,
            Callee::Known(_) | Callee::Type(_) => false,
            Callee::Unknown => true,
            Callee::Functions(all) => !follow || all.iter().any(|f| asks_others(db, *f)),
        },
        _ => false,
    }
}

/// A body contains something that [`others_decide`]; calls in it count as such.
#[salsa::tracked(returns(copy))]
fn asks_others<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let body = body(db, function);
    (0..body.exprs.len() as u32).any(|i| others_decide(db, function, &body, ExprId(i), false))
        || !asking_assembly(db, function, &body).is_empty()
}

/// Inline assembly that may load what another thread writes, with the variables that occur in it.
fn asking_assembly(db: &dyn Db, function: FunctionItem<'_>, body: &Body) -> Vec<(StmtId, HashSet<BindingId>)> {
    let text = function.text(db);
    let asks = |code: &str| {
        // What comes out of a macro isn't seen.
        !code.contains("asm")
            || code
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|word| matches!(word, "ld" | "nld" | "tld" | "atom" | "natom" | "tatom" | "mbarrier"))
    };
    let stmts = body.stmts.iter().enumerate();
    stmts
        .filter_map(|(i, stmt)| {
            let StmtKind::Asm { mentions, .. } = &stmt.kind else {
                return None;
            };
            let code = text.get(stmt.span.start as usize..stmt.span.end as usize).unwrap_or("");
            asks(code).then(|| (StmtId(i as u32), mentions.iter().copied().collect()))
        })
        .collect()
}

fn loop_waits(body: &Body, id: StmtId, suspicious: &[bool], asking: &[(StmtId, HashSet<BindingId>)]) -> bool {
    let Some(region) = Region::of_loop(body, id) else {
        return false;
    };
    let own = match &body.stmt(id).kind {
        StmtKind::While { cond, .. } | StmtKind::For { cond, .. } => *cond,
        StmtKind::DoWhile { cond, .. } => Some(*cond),
        _ => None,
    };
    let mut deciding: Vec<ExprId> = own.into_iter().collect();
    let guards = guards(body, &region);
    let leaves = |s: &StmtId| {
        matches!(
            body.stmt(*s).kind,
            StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) | StmtKind::Goto(_)
        )
    };
    if region.stmts.iter().any(leaves) {
        for s in region.stmts.iter().skip(1) {
            match &body.stmt(*s).kind {
                StmtKind::If { cond, .. } => deciding.extend(cond),
                StmtKind::Switch { cond, .. } => deciding.push(*cond),
                _ => {}
            }
        }
    }
    // Everything that the deciding values are computed from in the loop.
    let assigned = region.assigned(body);
    let mut variables: HashSet<BindingId> = HashSet::new();
    let mut seen: HashSet<ExprId> = HashSet::new();
    let mut memory = false;
    let mut changes = false;
    let mut stack = deciding;
    while let Some(e) = stack.pop() {
        if !seen.insert(e) {
            continue;
        }
        if suspicious.get(e.0 as usize).copied().unwrap_or(true) {
            return true;
        }
        let kind = &body.expr(e).kind;
        memory |= super::reads_memory(kind) || matches!(kind, ExprKind::Name(Name::Other(_)));
        changes |= matches!(kind, ExprKind::Assign { .. } | ExprKind::IncDec { .. });
        stack.extend(operands(kind));
        let ExprKind::Name(Name::Local(b)) = kind else { continue };
        changes |= assigned.contains(b);
        if !variables.insert(*b) {
            continue;
        }
        let asked =
            |(stmt, mentions): &(StmtId, HashSet<BindingId>)| mentions.contains(b) && region.stmts.contains(stmt);
        if asking.iter().any(asked) {
            return true;
        }
        stack.extend(
            guards
                .iter()
                .filter(|(_, assigned)| assigned.contains(b))
                .map(|(cond, _)| *cond),
        );
        for other in &region.exprs {
            if let ExprKind::Assign { place, value, .. } = &body.expr(*other).kind
                && written_through(body, *place).contains(b)
            {
                stack.push(*value);
            }
        }
        for s in &region.stmts {
            let (_, exprs) = parts(&body.stmt(*s).kind);
            if let StmtKind::Decl(decls) = &body.stmt(*s).kind
                && decls.iter().any(|d| d.binding == *b)
            {
                stack.extend(exprs);
            }
        }
    }
    memory && !changes
}

/// Variables that an assignment may change, or through which it reaches what it changes: not those that only pick an element.
fn written_through(body: &Body, place: ExprId) -> HashSet<BindingId> {
    let mut found = HashSet::new();
    let mut stack = vec![place];
    while let Some(e) = stack.pop() {
        match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b)) => drop(found.insert(*b)),
            ExprKind::Index { base, .. } if is_array_or_pointer(body, *base) => stack.push(*base),
            kind => stack.extend(operands(kind)),
        }
    }
    found
}

/// Certain to be what is indexed: `0[a]` is an element of `a` as well.
fn is_array_or_pointer(body: &Body, e: ExprId) -> bool {
    match &body.expr(body.strip_parens(e)).kind {
        ExprKind::Name(Name::Local(b)) => body.binding(*b).ty.is_pointer_like(),
        _ => false,
    }
}

/// Conditions in a loop with the variables whose assignment depends on them.
fn guards(body: &Body, region: &Region) -> Vec<(ExprId, HashSet<BindingId>)> {
    let mut found = Vec::new();
    let mut add = |cond: ExprId, stmts: Vec<StmtId>, exprs: Vec<ExprId>| {
        let (mut stmts, mut exprs) = (stmts, exprs);
        let mut assigned = HashSet::new();
        while let Some(s) = stmts.pop() {
            let (inner, own) = parts(&body.stmt(s).kind);
            stmts.extend(inner);
            exprs.extend(own);
        }
        while let Some(e) = exprs.pop() {
            if let ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } = &body.expr(e).kind {
                assigned.extend(super::vars::mentions(body, *place));
            }
            exprs.extend(operands(&body.expr(e).kind));
        }
        if !assigned.is_empty() {
            found.push((cond, assigned));
        }
    };
    for s in region.stmts.iter().skip(1) {
        let (stmts, _) = parts(&body.stmt(*s).kind);
        match &body.stmt(*s).kind {
            StmtKind::If { cond: Some(cond), .. }
            | StmtKind::While { cond: Some(cond), .. }
            | StmtKind::For { cond: Some(cond), .. }
            | StmtKind::Switch { cond, .. } => add(*cond, stmts, Vec::new()),
            _ => {}
        }
    }
    for e in &region.exprs {
        match &body.expr(*e).kind {
            ExprKind::Logical { lhs, rhs, .. } => add(*lhs, Vec::new(), vec![*rhs]),
            ExprKind::Conditional { cond, then, otherwise } => add(*cond, Vec::new(), vec![*then, *otherwise]),
            _ => {}
        }
    }
    found
}
