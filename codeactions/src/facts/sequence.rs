//! Which launches of a kernel each of its threads gets to first, and whether their order counts.

use gridfuse_analysis::facts::dependence::{Dependence, Kind, Order, order, own_footprint};
use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::facts::launch::{LaunchFacts, Stream, launches};
use gridfuse_analysis::hir::flow::control_flow;
use gridfuse_analysis::hir::{Body, StmtKind};

use crate::facts::exclusive;
use crate::facts::handed_on::handed_on;
use crate::facts::site::Site;

/// The other launches of the function that may be in order with this one, by index, and how their grids depend on its grids.
pub fn others_in_order<'k, 'db>(
    site: &Site<'db>,
    known: Option<&'k Order<'db>>,
) -> Vec<(u32, Option<&'k Dependence<'db>>)> {
    let all = known.map_or(&[][..], |known| &known.others);
    let others = (0u32..).zip(launches(site.db, site.parent)).filter(|(index, facts)| {
        let in_order = matches!(facts.stream, Stream::Null | Stream::Other);
        *index != site.id.index && in_order && !exclusive::one_per_block(site, facts)
    });
    let dependence = |index: u32| all.iter().find(|(other, _)| *other == index).map(|(_, found)| found);
    others.map(|(index, _)| (index, dependence(index))).collect()
}

/// The other launches that may be in order with this one and that a thread only comes to afterwards, by index, with what is known of how
/// their grids depend on its grids.
pub fn later<'k, 'db>(site: &Site<'db>, known: Option<&'k Order<'db>>) -> Vec<(u32, Option<&'k Dependence<'db>>)> {
    let all = launches(site.db, site.parent);
    let is_later = |other: u32| {
        all.get(other as usize)
            .is_some_and(|other| comes_first(site, site.facts, other))
    };
    others_in_order(site, known)
        .into_iter()
        .filter(|(other, _)| is_later(*other))
        .collect()
}

/// Whether each thread that gets to two launches of the function gets to `first` first, and once.
pub fn comes_first(site: &Site<'_>, first: &LaunchFacts<'_>, second: &LaunchFacts<'_>) -> bool {
    let once = first.loops.is_empty() && !first.in_lambda && !jumps(&site.body);
    once && !second.in_lambda && first.span.end <= second.span.start
}

/// Whether each thread that gets to both launches gets to this one first: in each iteration of the loops around both, if there are any. Not
/// where nobody comes from this one to the other, as where the loop is left here.
pub fn precedes(site: &Site<'_>, other: &LaunchFacts<'_>) -> bool {
    let lambdas = site.facts.in_lambda || other.in_lambda;
    let flow = control_flow(site.db, site.parent);
    let blocks = (flow.expr_block.get(&site.facts.expr), flow.expr_block.get(&other.expr));
    let leads = matches!(blocks, (Some(a), Some(b)) if a == b || flow.leads(*a, *b));
    !lambdas && leads && !jumps(&site.body) && site.facts.span.end <= other.span.start
}

/// Whether threads of the launching kernel may know of each other where they are, so that what one of them launches is sure to come before what
/// another one does.
pub fn threads_meet(site: &Site<'_>) -> bool {
    let effects = effects(site.db, site.parent);
    let met = [
        &effects.barriers,
        &effects.warp,
        &effects.shared,
        &effects.waits,
        &effects.fences,
        &effects.unknown,
    ];
    let own = own_footprint(site.db, site.parent);
    let mut accesses = own.accesses.iter();
    !effects.asm.is_empty()
        || met.iter().any(|found| !found.is_empty())
        || !own.gaps.is_empty()
        || accesses.any(|access| matches!(access.kind, Kind::Atomic { .. }))
}

/// Whether the accesses in sight say that the grids of another launch, by index, need the order of the stream with those of this one.
pub fn depends(site: &Site<'_>, other: u32) -> bool {
    let found = others_in_order(site, known(site)).into_iter();
    let found = found.filter(|(index, _)| *index == other).find_map(|(_, found)| found);
    !found.is_some_and(Dependence::is_none)
        && (found.is_some_and(Dependence::shows_for_sure) || handed_on(site, other).is_some())
}

/// Whether all threads that get to another launch, by index, which comes later, have passed this one: it stands in the same block, or in one
/// inside.
pub fn passes_by(site: &Site<'_>, other: u32) -> bool {
    let other = launches(site.db, site.parent).get(other as usize);
    let around = site.facts.statement.and_then(|statement| site.places.parent(statement));
    match (around, other) {
        (Some(around), Some(other)) => {
            let around = site.body.stmt(around);
            matches!(around.kind, StmtKind::Block(_)) && around.span.contains(other.span)
        }
        _ => false,
    }
}

/// What is known of the dependences of this launch's grids.
pub fn known<'db>(site: &Site<'db>) -> Option<&'db Order<'db>> {
    order(site.db, site.parent).get(site.id.index as usize)
}

/// The function has a `goto`.
pub fn jumps(body: &Body) -> bool {
    body.stmts.iter().any(|stmt| matches!(stmt.kind, StmtKind::Goto(_)))
}
