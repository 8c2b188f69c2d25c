//! Launches of which a block does one at most: they stand in branches that exclude each other, and one thread of the block decides.

use gridfuse_analysis::facts::launch::{LaunchFacts, Launchers, gets_there_by_flat_blocks, who_gets_to};
use gridfuse_analysis::hir::flow::control_flow;
use gridfuse_analysis::hir::{ExprId, StmtId, StmtKind};

use crate::facts::site::Site;

/// Whether no block does both this launch and another one of the same kernel: no path through the kernel leads to both, and the thread
/// that chooses between them is the only one of its block that gets to the choice.
pub fn one_per_block<'db>(site: &Site<'db>, other: &LaunchFacts<'db>) -> bool {
    let body = &site.body;
    let jumps = |kind: &StmtKind| {
        matches!(
            kind,
            StmtKind::Goto(_)
                | StmtKind::Label(..)
                | StmtKind::Switch { .. }
                | StmtKind::Case { .. }
                | StmtKind::Asm { .. }
                | StmtKind::Unknown { .. }
        )
    };
    if site.facts.in_lambda || other.in_lambda || body.cut || body.stmts.iter().any(|stmt| jumps(&stmt.kind)) {
        return false;
    }
    let flow = control_flow(site.db, site.parent);
    let (Some(a), Some(b)) = (flow.expr_block.get(&site.facts.expr), flow.expr_block.get(&other.expr)) else {
        return false;
    };
    let apart = a != b && !flow.leads(*a, *b) && !flow.leads(*b, *a);
    let one = |condition: ExprId| {
        let who = who_gets_to(site.db, site.parent, condition);
        // In another iteration it may be another thread.
        site.places.loops_around(body, condition).is_empty()
            && matches!(who, Some(Launchers::OnePerBlock | Launchers::OnePerGrid))
            && !gets_there_by_flat_blocks(site.db, site.parent, condition)
    };
    apart && site.parent.signature(site.db).kernel && choice(site, other.expr).is_some_and(one)
}

/// The condition by which a thread comes to one of two launches: that of the `if` which has both in its two branches, or which has the
/// first one in it and before the other.
fn choice(site: &Site<'_>, other: ExprId) -> Option<ExprId> {
    let (body, own) = (&site.body, site.facts.expr);
    let (first, second) = if body.expr(own).span.start < body.expr(other).span.start {
        (own, other)
    } else {
        (other, own)
    };
    let around: Vec<StmtId> = site.places.around(second).collect();
    let mut inner = None;
    for stmt in site.places.around(first) {
        if !around.contains(&stmt) {
            inner = Some(stmt);
            continue;
        }
        let decides = match body.stmt(stmt).kind {
            StmtKind::If { .. } => stmt,
            StmtKind::Block(_) => inner?,
            _ => return None,
        };
        return match body.stmt(decides).kind {
            StmtKind::If { cond, .. } => cond,
            _ => None,
        };
    }
    None
}
