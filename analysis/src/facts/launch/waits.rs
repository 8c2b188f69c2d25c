//! Whether the launching thread waits for its children after a launch.

use std::collections::HashSet;

use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::callee::Callee;
use crate::facts::callee::callee;
use crate::facts::effects::summary;
use crate::hir::flow::{BlockId, Dominators, Flow, Step};
use crate::hir::items::FunctionItem;
use crate::hir::library::Does;
use crate::hir::{Body, ExprId, ExprKind, body};

/// A wait for child grids that a thread comes to after it has launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Wait {
    /// The call: `cudaDeviceSynchronize()`, or of a function that leads to it.
    pub span: Span,
    /// Every thread that launches comes to a wait, whatever happens after the launch.
    pub always: bool,
}

/// For each launch of a function, the wait that follows it in the function: the first in the source that control can reach.
#[salsa::tracked(returns(clone))]
pub fn waits_after<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Option<Wait>> {
    let body = body(db, function);
    let waits: HashSet<ExprId> = (0..body.exprs.len() as u32)
        .map(ExprId)
        .filter(|e| waits(db, function, &body, *e))
        .collect();
    if waits.is_empty() {
        return vec![None; body.launches.len()];
    }
    let flow = Flow::of(&body);
    let post = Dominators::post(&flow);
    body.launches
        .iter()
        .map(|launch| after(&body, &flow, &post, *launch, &waits))
        .collect()
}

fn waits<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, e: ExprId) -> bool {
    let ExprKind::Call {
        callee: target,
        name,
        args,
        ..
    } = &body.expr(e).kind
    else {
        return false;
    };
    match callee(db, function, body, *target, name.as_deref(), args) {
        Callee::Known(library) => library.does.has(Does::WAITS_FOR_CHILDREN),
        Callee::Functions(all, _) => all.iter().any(|f| !summary(db, *f).device_sync.is_empty()),
        Callee::Type(_) | Callee::Unknown => false,
    }
}

fn after(body: &Body, flow: &Flow, post: &Dominators, launch: ExprId, waits: &HashSet<ExprId>) -> Option<Wait> {
    let home = *flow.expr_block.get(&launch)?;
    let is_wait = |step: &Step| match step {
        Step::Expr(e) => waits.contains(e).then_some(*e),
        _ => None,
    };
    let at = flow.block(home).steps.iter().position(|s| *s == Step::Expr(launch))?;
    let behind = flow.block(home).steps[at..].iter().find_map(is_wait);
    let mut found: Vec<(BlockId, ExprId)> = behind.map(|e| (home, e)).into_iter().collect();
    let mut seen: HashSet<BlockId> = HashSet::new();
    let mut stack: Vec<BlockId> = flow.block(home).targets().to_vec();
    while let Some(block) = stack.pop() {
        if !seen.insert(block) {
            continue;
        }
        found.extend(flow.block(block).steps.iter().filter_map(is_wait).map(|e| (block, e)));
        stack.extend(flow.block(block).targets());
    }
    let start = body.expr(launch).span.start;
    // What stands behind the launch comes before what another iteration leads to.
    let (_, first) = found.iter().min_by_key(|(_, e)| {
        let at = body.expr(*e).span.start;
        (at < start, at)
    })?;
    let always = behind.is_some()
        || found
            .iter()
            .any(|(block, _)| *block != home && post.dominates(*block, home));
    Some(Wait {
        span: body.expr(*first).span,
        always,
    })
}
