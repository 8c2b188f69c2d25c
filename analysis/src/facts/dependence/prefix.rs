//! Which first statements of a child kernel don't depend on what its parent does before the launch (El Hajj, dissertation 2018,
//! §4.3: promotion with overlap runs them beside the parent).

use std::collections::HashSet;

use super::access::{child_footprint, footprint, own_footprint};
use super::compare::{Comparison, Dependence, Executions, Independence};
use super::subscript::Evaluator;
use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::effects::direct;
use crate::facts::launch::{Child, Launchers, launches};
use crate::hir::items::FunctionItem;
use crate::hir::{Body, ExprId, ExprKind, Name, StmtId, StmtKind, body};

/// The first statements of a child kernel that may run before its parent has come to the launch.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Prefix<'db> {
    /// The child kernel.
    pub child: FunctionItem<'db>,
    /// The statements of its body, in order.
    pub stmts: Vec<StmtId>,
    /// Their place in it; `None`: there are none.
    pub span: Option<Span>,
    /// The first statement that may depend on the parent, and why; `None`: the whole body doesn't.
    pub stop: Option<(Span, Dependence<'db>)>,
}

/// For every launch of a function, in the order of [`launches`]; `None` where the child isn't known or host code launches it.
#[salsa::tracked]
pub fn prefixes<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Option<Prefix<'db>>> {
    let all = launches(db, function);
    let one = |index: usize| {
        let facts = &all[index];
        match facts.child {
            Child::Kernel(child) if facts.launchers != Launchers::Host => prefix(db, function, index, child),
            _ => None,
        }
    };
    (0..all.len()).map(one).collect()
}

fn prefix<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    index: usize,
    child: FunctionItem<'db>,
) -> Option<Prefix<'db>> {
    let facts = launches(db, function).get(index)?;
    let parent_body = body(db, function);
    let evaluator = Evaluator::new(db, function, &parent_body);
    let child_body = body(db, child);
    let StmtKind::Block(stmts) = &child_body.stmt(child_body.root?).kind else {
        return None;
    };
    // Arguments that the parent only passes on.
    let passed_on: Vec<bool> = facts
        .args
        .iter()
        .map(|arg| is_input(&parent_body, &evaluator, arg.expr))
        .collect();
    let own = own_footprint(db, function);
    let theirs = child_footprint(db, function, index as u32);
    let listed = footprint(db, child);
    let executions = Executions::Grid;
    let comparison = Comparison::new(db, function, &executions, [&theirs.ranges, &own.ranges]);
    let mut found = Prefix {
        child,
        stmts: Vec::new(),
        span: None,
        stop: None,
    };
    for stmt in stmts {
        let span = child_body.stmt(*stmt).span;
        let mut dependence = Dependence::None(Independence::ReadOnly);
        for (i, expr) in child_body.exprs.iter().enumerate() {
            if !span.contains(expr.span) {
                continue;
            }
            if let ExprKind::Name(Name::Local(b)) = &expr.kind
                && let Some(parameter) = child_body.params.iter().position(|p| p == b)
                && !passed_on.get(parameter).copied().unwrap_or(false)
            {
                let reason = format!("the parent computes `{}`", child_body.binding(*b).name);
                dependence = dependence.or(Dependence::unknown(reason, Some((child, expr.span))));
            }
            // What it does to memory, directly or by calls.
            let at = ExprId(i as u32);
            let listed = listed.accesses.iter().filter(|a| a.at == at);
            for touched in listed {
                let same = theirs
                    .accesses
                    .iter()
                    .filter(|a| (a.function, a.span, a.kind) == (touched.function, touched.span, touched.kind));
                for theirs in same {
                    for ours in &own.accesses {
                        if !matches!(ours.root, super::location::Root::Object(_)) {
                            dependence = dependence.or(comparison.pair(theirs, ours));
                        }
                    }
                }
            }
        }
        let facts = &direct(db, child).facts;
        let stops = [
            &facts.barriers,
            &facts.launches,
            &facts.device_sync,
            &facts.prints,
            &facts.asm,
            &facts.warp_ops,
        ];
        if stops.iter().any(|all| all.iter().any(|s| span.contains(*s))) {
            let reason = "threads wait for each other, print or launch here";
            dependence = dependence.or(Dependence::unknown(reason, Some((child, span))));
        }
        let gap = listed
            .gaps
            .iter()
            .find(|g| g.whole || g.function != child || span.contains(g.span) || g.span == Span::default());
        if let Some(gap) = gap {
            dependence = dependence.or(Dependence::gap(gap));
        }
        if let Some(gap) = own.gaps.first() {
            dependence = dependence.or(Dependence::gap(gap));
        }
        if !dependence.is_none() {
            found.stop = Some((span, dependence));
            break;
        }
        found.stmts.push(*stmt);
        found.span = Some(found.span.map_or(span, |s| s.cover(span)));
    }
    Some(found)
}

/// The value is known when the parent starts: its own parameters, constants, sizes.
fn is_input(body: &Body, evaluator: &Evaluator<'_, '_>, e: ExprId) -> bool {
    // Each part once: variables that are made of one another have it many times.
    let mut seen: HashSet<ExprId> = HashSet::new();
    let mut stack = vec![e];
    while let Some(e) = stack.pop() {
        if !seen.insert(e) {
            continue;
        }
        match &body.expr(e).kind {
            ExprKind::Literal(_) | ExprKind::SizeOf | ExprKind::Name(Name::Builtin(_)) => {}
            ExprKind::Name(Name::Local(b)) if evaluator.variables.keeps_argument(*b) => {}
            ExprKind::Name(Name::Local(b)) => match evaluator.variables.initialiser(*b) {
                Some(init) if init != e => stack.push(init),
                _ => return false,
            },
            ExprKind::Paren(e) | ExprKind::Unary(_, e) => stack.push(*e),
            ExprKind::Cast { operand, .. } => stack.push(*operand),
            ExprKind::Field { base, arrow: false, .. } => stack.push(*base),
            ExprKind::Binary(_, a, b) => stack.extend([*a, *b]),
            ExprKind::Conditional { cond, then, otherwise } => stack.extend([*cond, *then, *otherwise]),
            _ => return false,
        }
    }
    true
}
