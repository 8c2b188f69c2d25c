//! Whether what runs behind a wait for child grids needs it, and what stays as it is whatever a kernel and its children do.

use std::collections::BTreeSet;

use super::access::{Access, Footprint, Gap, child_footprint, footprint, own_footprint};
use super::compare::{Comparison, Dependence, Executions, Independence};
use super::location::Root;
use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::callee::Callee;
use crate::facts::callee::callee;
use crate::facts::effects::summary;
use crate::facts::launch::{LaunchFacts, Launchers, Stream, launches};
use crate::hir::flow::{BlockId, Flow, Step};
use crate::hir::items::FunctionItem;
use crate::hir::library::{Does, Together, library};
use crate::hir::names::unqualified;
use crate::hir::stream_ordered::Operation;
use crate::hir::{Body, ExprId, ExprKind, body};

/// What one `cudaDeviceSynchronize()` of a kernel orders.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Waited<'db> {
    /// The launches whose grids it may wait for: indices into [`launches`].
    pub children: Vec<u32>,
    /// The launches that may come behind it, before the next wait: indices into [`launches`].
    pub behind: Vec<u32>,
    /// How what comes behind it depends on those grids, where their stream doesn't order them anyway.
    pub dependence: Dependence<'db>,
    /// It may be come to more than once.
    pub repeated: bool,
}

/// What the wait `wait` of a kernel orders. A wait is for all grids that the block has launched, and for all that they launch.
///
/// Behind the wait is everything that control can reach from it before it comes to another wait, in later iterations of loops
/// as well. What lies on no way to the wait, in another branch, counts as well where threads meet at a barrier there: they may
/// have met the one that has waited.
#[salsa::tracked]
pub fn behind_wait<'db>(db: &'db dyn Db, function: FunctionItem<'db>, wait: ExprId) -> Waited<'db> {
    let body = body(db, function);
    let flow = Flow::of(&body);
    let all = launches(db, function);
    let mut waited = Waited {
        children: Vec::new(),
        behind: Vec::new(),
        dependence: Dependence::None(Independence::Disjoint),
        repeated: true,
    };
    if !flow.expr_block.get(&wait).is_some_and(|b| flow.reachable(*b)) {
        waited.dependence = Dependence::unknown("who gets to the wait isn't known", None);
        return waited;
    }
    let is_wait = |e: ExprId| match &body.expr(e).kind {
        ExprKind::Call {
            callee: target,
            name,
            args,
            ..
        } => matches!(
            callee(db, function, &body, *target, name.as_deref(), args),
            Callee::Known(library) if library.does.has(Does::WAITS_FOR_CHILDREN)
        ),
        _ => false,
    };
    let waits: BTreeSet<ExprId> = (0..body.exprs.len() as u32)
        .map(ExprId)
        .filter(|e| *e != wait && is_wait(*e))
        .collect();
    let none = BTreeSet::new();
    let behind = evaluated(&flow, wait, &waits, Way::Forward);
    let all_behind = evaluated(&flow, wait, &none, Way::Forward);
    let before = evaluated(&flow, wait, &waits, Way::Backward);
    let all_before = evaluated(&flow, wait, &none, Way::Backward);
    waited.repeated = all_behind.contains(&wait);
    // Neither on the way to the wait nor behind it: another branch, or a lambda.
    let off_the_way = |e: ExprId| e != wait && !all_behind.contains(&e) && !all_before.contains(&e);
    let in_flow = |e: ExprId| flow.expr_block.contains_key(&e);
    let meets = (0..body.exprs.len() as u32)
        .map(ExprId)
        .any(|e| off_the_way(e) && meets_others(db, function, &body, e));
    let aside = |e: ExprId| off_the_way(e) && (meets || !in_flow(e));
    let comes_behind = |e: ExprId| behind.contains(&e) || aside(e);
    for (index, facts) in all.iter().enumerate() {
        if before.contains(&facts.expr) || aside(facts.expr) {
            waited.children.push(index as u32);
        }
        if comes_behind(facts.expr) {
            waited.behind.push(index as u32);
        }
    }
    let own = own_footprint(db, function);
    let wait_span = body.expr(wait).span;
    let gap_behind = |gap: &Gap<'db>| match gap.at {
        Some(at) if in_flow(at) => comes_behind(at),
        // The place alone says whether it's done before.
        _ => waited.repeated || gap.whole || gap.function != function || gap.span.end > wait_span.start,
    };
    let ours: Vec<_> = own.gaps.iter().filter(|g| gap_behind(g)).collect();
    let private = |root: &Root| matches!(root, Root::Object(_));
    let touched: Vec<_> = own
        .accesses
        .iter()
        .filter(|a| comes_behind(a.at) && !private(&a.root))
        .collect();
    let mut dependence = Dependence::None(Independence::Disjoint);
    let exprs = || (0..body.exprs.len() as u32).map(ExprId);
    let mut doubt = |reason: String, span: Span| {
        dependence = dependence
            .clone()
            .or(Dependence::unknown(reason, Some((function, span))));
    };
    if !ours.is_empty() || !touched.is_empty() || !waited.behind.is_empty() {
        // What isn't seen to be launched is waited for as well.
        if let Some((name, span)) = summary(db, function).unknown_calls.first() {
            let what = if name.is_empty() { "a part of it" } else { name };
            doubt(format!("what `{what}` launches isn't known"), *span);
        }
        let copies = |name: &str| library(name).is_some_and(|l| l.stream.is_some_and(|(op, _)| op != Operation::Event));
        let earlier = |e: ExprId| before.contains(&e) || aside(e);
        let found = exprs().find(|e| earlier(*e) && leads_to(db, function, &body, *e, &copies, 8));
        if let Some(e) = found {
            let reason = "what is copied or set asynchronously isn't done without it".to_owned();
            doubt(reason, body.expr(e).span);
        }
    }
    let fences = |name: &str| library(name).is_some_and(|l| l.does.has(Does::FENCE));
    let fence = exprs().find(|e| comes_behind(*e) && leads_to(db, function, &body, *e, &fences, 8));
    if let Some(e) = fence.filter(|_| !waited.children.is_empty()) {
        let reason = "by a memory fence other grids may be told that the children are done".to_owned();
        doubt(reason, body.expr(e).span);
    }
    let around = Around {
        own: &own,
        gaps: ours,
        accesses: touched,
    };
    for index in &waited.children {
        dependence = dependence.or(around.child(db, function, all, *index, &waited.behind));
    }
    waited.dependence = dependence;
    waited
}

/// What stands behind a wait.
struct Around<'a, 'db> {
    own: &'a Footprint<'db>,
    /// What isn't followed of it.
    gaps: Vec<&'a Gap<'db>>,
    /// What it accesses.
    accesses: Vec<&'a Access<'db>>,
}

impl<'db> Around<'_, 'db> {
    /// Whether it depends on a child that is launched before the wait.
    fn child(
        &self,
        db: &'db dyn Db,
        function: FunctionItem<'db>,
        all: &[LaunchFacts<'db>],
        index: u32,
        behind: &[u32],
    ) -> Dependence<'db> {
        let mut dependence = Dependence::None(Independence::Disjoint);
        let Some(facts) = all.get(index as usize) else {
            return dependence;
        };
        if facts.stream == Stream::TailLaunch {
            let place = Some((function, facts.span));
            return Dependence::unknown("nothing can wait for a tail launch", place);
        }
        let grids = Executions::Grid;
        let child = child_footprint(db, function, index);
        // Whatever the child does: nobody looks at it who is not ordered by the stream.
        if !self.gaps.is_empty() || !self.accesses.is_empty() {
            let both_print = self.gaps.iter().any(|g| g.prints) && child.gaps.iter().any(|g| g.prints);
            let gaps = self.gaps.iter().copied().chain(&child.gaps);
            for gap in gaps.filter(|g| !g.prints || both_print) {
                dependence = dependence.or(Dependence::gap(gap));
            }
        }
        let comparison = Comparison::new(db, function, &grids, [&child.ranges, &self.own.ranges]);
        for access in &self.accesses {
            for theirs in &child.accesses {
                dependence = dependence.or(comparison.pair(theirs, access));
            }
        }
        for other in behind {
            let Some(next) = all.get(*other as usize) else { continue };
            if ordered_by_stream(facts, next) {
                continue;
            }
            let theirs = child_footprint(db, function, *other);
            if let Some(gap) = child.gaps.iter().chain(&theirs.gaps).find(|g| !g.prints) {
                dependence = dependence.or(Dependence::gap(gap));
            }
            let comparison = Comparison::new(db, function, &grids, [&child.ranges, &theirs.ranges]);
            dependence = dependence.or(comparison.all(&child.accesses, &theirs.accesses));
        }
        dependence
    }
}

/// The expression is a call that may wait for other threads of the block.
fn meets_others<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, e: ExprId) -> bool {
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
        Callee::Known(library) => library.together != Together::Alone,
        Callee::Functions(all, library) => {
            let meets = |f: &FunctionItem<'db>| {
                let summary = summary(db, *f);
                summary.barriers.is_some() || summary.may_wait.is_some() || !summary.unknown_calls.is_empty()
            };
            library.is_some_and(|l| l.together != Together::Alone) || all.iter().any(meets)
        }
        Callee::Type(_) => false,
        Callee::Unknown => true,
    }
}

/// The expression calls a function with such a name, or one of the workspace that leads to such a call.
fn leads_to<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    e: ExprId,
    named: &dyn Fn(&str) -> bool,
    depth: u32,
) -> bool {
    let ExprKind::Call {
        callee: target,
        name,
        args,
        ..
    } = &body.expr(e).kind
    else {
        return false;
    };
    if name.as_deref().is_some_and(|n| named(unqualified(n))) {
        return true;
    }
    match callee(db, function, body, *target, name.as_deref(), args) {
        Callee::Functions(all, _) => all.iter().any(|f| {
            let Some(depth) = depth.checked_sub(1) else { return true };
            let inner = crate::hir::body(db, *f);
            (0..inner.exprs.len() as u32).any(|e| leads_to(db, *f, &inner, ExprId(e), named, depth))
        }),
        _ => false,
    }
}

/// The stream starts a grid of the second launch when one that the block has launched before, by the first launch, is complete.
/// The NULL stream is one for all threads of a block.
fn ordered_by_stream(first: &LaunchFacts<'_>, second: &LaunchFacts<'_>) -> bool {
    second.stream == Stream::TailLaunch || first.stream == Stream::Null && second.stream == Stream::Null
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Backward,
}

/// What is evaluated behind an expression, or before it, on ways that don't lead through others.
fn evaluated(flow: &Flow, from: ExprId, through: &BTreeSet<ExprId>, way: Way) -> BTreeSet<ExprId> {
    let mut found = BTreeSet::new();
    let Some(start) = flow.expr_block.get(&from).copied() else {
        return found;
    };
    let steps = |block: BlockId| -> Vec<ExprId> {
        let exprs = flow.block(block).steps.iter().filter_map(|step| match step {
            Step::Expr(e) => Some(*e),
            _ => None,
        });
        match way {
            Way::Forward => exprs.collect(),
            Way::Backward => exprs.rev().collect(),
        }
    };
    let mut seen: BTreeSet<BlockId> = BTreeSet::new();
    let mut todo: Vec<BlockId> = Vec::new();
    let mut visit = |exprs: &mut dyn Iterator<Item = ExprId>, block: BlockId, todo: &mut Vec<BlockId>| {
        for e in exprs {
            if through.contains(&e) {
                return;
            }
            found.insert(e);
        }
        match way {
            Way::Forward => todo.extend(flow.block(block).targets()),
            Way::Backward => todo.extend(&flow.preds[block.index()]),
        }
    };
    visit(
        &mut steps(start).into_iter().skip_while(|e| *e != from).skip(1),
        start,
        &mut todo,
    );
    while let Some(block) = todo.pop() {
        if seen.insert(block) {
            visit(&mut steps(block).into_iter(), block, &mut todo);
        }
    }
    found
}

/// Whether what these expressions of a kernel read stays the same from before the kernel runs until it and all grids that it
/// leads to are done: nothing of that writes it.
pub fn unchanged<'db>(db: &'db dyn Db, function: FunctionItem<'db>, reads: &BTreeSet<ExprId>) -> Dependence<'db> {
    if reads.is_empty() {
        return Dependence::None(Independence::ReadOnly);
    }
    if launches(db, function).iter().any(|l| l.launchers == Launchers::Host) {
        return Dependence::unknown("host code launches it", None);
    }
    let all = footprint(db, function);
    let mut dependence = Dependence::None(Independence::ReadOnly);
    // What only reads changes nothing.
    if let Some(gap) = all.gaps.iter().find(|g| !g.prints && !g.reads) {
        return Dependence::gap(gap);
    }
    let grids = Executions::Grid;
    let comparison = Comparison::new(db, function, &grids, [&all.ranges, &all.ranges]);
    let body = body(db, function);
    for read in reads {
        let own = all.accesses.iter().filter(|a| a.at == *read);
        let mut any = false;
        for access in own {
            any = true;
            if !access.kind.reads_only() {
                dependence = dependence.or(Dependence::unknown(
                    "it changes what it reads",
                    Some((function, access.span)),
                ));
            }
            for other in &all.accesses {
                dependence = dependence.or(comparison.pair(access, other));
            }
        }
        if !any {
            let span: Span = body.expr(*read).span;
            dependence = dependence.or(Dependence::unknown("what it reads isn't known", Some((function, span))));
        }
    }
    dependence
}
