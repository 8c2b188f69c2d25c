//! Whether the launching function, behind a launch, touches memory that the child grid touches.

use std::collections::BTreeSet;

use super::access::{child_footprint, own_footprint};
use super::compare::{Comparison, Dependence, Executions, Touch};
use crate::base::db::Db;
use crate::facts::launch::{Launchers, launches};
use crate::hir::flow::{BlockId, Flow, Step};
use crate::hir::items::FunctionItem;
use crate::hir::{ExprId, body};

/// Two accesses to one place: by the child, and by the function that launches it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Meeting<'db> {
    /// The child's.
    pub child: Touch<'db>,
    /// The launching function's.
    pub parent: Touch<'db>,
    /// The expression in the launching function that does it, or leads to it.
    pub at: ExprId,
    /// It runs behind the launch only in a later iteration of a loop.
    pub later_iteration: bool,
}

/// What runs behind one launch.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct After<'db> {
    /// How it depends on the child.
    pub dependence: Dependence<'db>,
    /// Every pair of accesses that meet.
    pub meetings: Vec<Meeting<'db>>,
    /// Every pair of accesses to one array or variable that may meet: neither proven nor refuted.
    pub perhaps: Vec<Meeting<'db>>,
}

/// For every launch of a function, in the order of [`launches`].
#[salsa::tracked]
pub fn after<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<After<'db>> {
    let all = launches(db, function);
    if all.iter().all(|l| l.launchers == Launchers::Host) {
        let host = || After {
            dependence: Dependence::unknown("host code launches it", None),
            meetings: Vec::new(),
            perhaps: Vec::new(),
        };
        return all.iter().map(|_| host()).collect();
    }
    let body = body(db, function);
    let flow = Flow::of(&body);
    let own = own_footprint(db, function);
    let mut found = Vec::new();
    for (index, facts) in all.iter().enumerate() {
        let child = child_footprint(db, function, index as u32);
        let (forward, later) = evaluated_behind(&flow, facts.expr);
        let executions = Executions::Grid;
        let comparison = Comparison::new(db, function, &executions, [&child.ranges, &own.ranges]);
        let mut dependence = Dependence::None(super::compare::Independence::Disjoint);
        let behind = |at: Option<ExprId>, span: crate::base::span::Span| match at {
            Some(at) if flow.expr_block.contains_key(&at) => forward.contains(&at) || later.contains(&at),
            // What stands before the launch, and isn't repeated, is done.
            _ => !later.is_empty() || facts.in_lambda || span.end > facts.span.start,
        };
        let own_span = |gap: &super::access::Gap<'db>| {
            if gap.function == function && !gap.whole {
                gap.span
            } else {
                crate::base::span::Span::new(0, u32::MAX)
            }
        };
        let ours: Vec<_> = own.gaps.iter().filter(|g| behind(g.at, own_span(g))).collect();
        let both_print = ours.iter().any(|g| g.prints) && child.gaps.iter().any(|g| g.prints);
        for gap in ours.into_iter().chain(&child.gaps).filter(|g| !g.prints || both_print) {
            dependence = dependence.or(Dependence::gap(gap));
        }
        let mut meetings: Vec<Meeting<'db>> = Vec::new();
        let mut perhaps: Vec<Meeting<'db>> = Vec::new();
        for ours in own.accesses.iter().filter(|a| behind(Some(a.at), a.span)) {
            if matches!(ours.root, super::location::Root::Object(_)) {
                continue;
            }
            for theirs in &child.accesses {
                let pair = comparison.pair(theirs, ours);
                let meeting = || Meeting {
                    child: Touch::of(theirs, false),
                    parent: Touch::of(ours, false),
                    at: ours.at,
                    later_iteration: !forward.contains(&ours.at),
                };
                match &pair {
                    Dependence::Conflict(..) => meetings.push(meeting()),
                    Dependence::Unknown(_) if theirs.root == ours.root => perhaps.push(meeting()),
                    Dependence::Unknown(_) | Dependence::None(_) => {}
                }
                dependence = dependence.or(pair);
            }
        }
        if !function.signature(db).kernel {
            let unknown = Dependence::unknown("what its callers do afterwards isn't known", None);
            dependence = dependence.or(unknown);
        }
        found.push(After {
            dependence,
            meetings,
            perhaps,
        });
    }
    found
}

/// Accesses of the child and of the launching function, wherever they stand in it, that meet or may meet in one array or variable: what
/// another thread does in front of the launch may come after it.
pub fn beside<'db>(db: &'db dyn Db, function: FunctionItem<'db>, launch: u32) -> Option<(Touch<'db>, Touch<'db>)> {
    let own = own_footprint(db, function);
    let child = child_footprint(db, function, launch);
    let executions = Executions::Grid;
    let comparison = Comparison::new(db, function, &executions, [&child.ranges, &own.ranges]);
    let shared = |access: &&super::access::Access<'db>| !matches!(access.root, super::location::Root::Object(_));
    let pairs = own.accesses.iter().filter(shared);
    let mut pairs = pairs.flat_map(|ours| child.accesses.iter().map(move |theirs| (theirs, ours)));
    let meeting = pairs.find(|(theirs, ours)| match comparison.pair(theirs, ours) {
        Dependence::Conflict(..) => true,
        Dependence::Unknown(_) => theirs.root == ours.root,
        Dependence::None(_) => false,
    });
    meeting.map(|(theirs, ours)| (Touch::of(theirs, false), Touch::of(ours, false)))
}

/// What is evaluated behind an expression: before control comes back to it, and only then.
pub(super) fn evaluated_behind(flow: &Flow, from: ExprId) -> (BTreeSet<ExprId>, BTreeSet<ExprId>) {
    let mut forward = BTreeSet::new();
    let mut later = BTreeSet::new();
    let Some(start) = flow.expr_block.get(&from).copied().filter(|b| flow.reachable(*b)) else {
        return (forward, later);
    };
    let exprs = |block: BlockId| {
        flow.block(block).steps.iter().filter_map(|step| match step {
            Step::Expr(e) => Some(*e),
            _ => None,
        })
    };
    forward.extend(exprs(start).skip_while(|e| *e != from).skip(1));
    for backwards in [false, true] {
        let mut seen = BTreeSet::new();
        let mut todo = vec![start];
        while let Some(block) = todo.pop() {
            for to in flow.block(block).targets() {
                let ahead = flow.position[to.index()] > flow.position[block.index()];
                if (ahead || backwards) && seen.insert(*to) {
                    if backwards {
                        later.extend(exprs(*to).filter(|e| !forward.contains(e)));
                    } else {
                        forward.extend(exprs(*to));
                    }
                    todo.push(*to);
                }
            }
        }
    }
    (forward, later)
}
