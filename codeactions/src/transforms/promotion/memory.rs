//! What of a kernel's accesses to memory comes before the launch of the next link. What comes behind is in no order with
//! that link, so a program without races does nothing there that the next link could notice.

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::dependence::{Access, Gap, Kind, Root, own_footprint};
use gridfuse_analysis::facts::effects::{direct, effects};
use gridfuse_analysis::hir::{StmtId, StmtKind};

use crate::facts::site::Site;

/// The accesses in a part of the kernel to memory that other blocks may see.
pub fn accesses_in<'db>(site: &Site<'db>, part: Span) -> Vec<Access<'db>> {
    let footprint = own_footprint(site.db, site.parent);
    let seen = |access: &&Access<'db>| {
        !matches!(access.root, Root::Object(_)) && part.contains(site.body.expr(access.at).span)
    };
    footprint.accesses.iter().filter(seen).cloned().collect()
}

/// What isn't known of the accesses in a part of the kernel.
pub fn gaps_in<'db>(site: &Site<'db>, part: Span) -> Vec<Gap<'db>> {
    let footprint = own_footprint(site.db, site.parent);
    let inside = |gap: &&Gap<'db>| match gap.at {
        Some(at) => part.contains(site.body.expr(at).span),
        None => gap.whole || gap.function != site.parent || part.contains(gap.span),
    };
    footprint.gaps.iter().filter(inside).cloned().collect()
}

/// Where the kernel first may write memory that other blocks see before it launches the next link.
pub fn write_before(site: &Site<'_>) -> Option<Span> {
    writes_before(site).into_iter().next()
}

/// All such places.
pub fn writes_before(site: &Site<'_>) -> Vec<Span> {
    let others = other_branches(site);
    let before = match others.meet {
        // What others do before they meet the launching thread may stand anywhere.
        true => Span::new(0, u32::MAX),
        // Its arguments are part of it.
        false => Span::new(0, site.facts.span.end),
    };
    let writes = accesses_in(site, before)
        .into_iter()
        .filter(|access| !access.kind.reads_only())
        .map(|access| site.body.expr(access.at).span);
    let gaps = gaps_in(site, before)
        .into_iter()
        .filter(|gap| !gap.prints)
        .map(|gap| match gap.at {
            Some(at) => site.body.expr(at).span,
            None if gap.function == site.parent => gap.span,
            None => site.facts.span,
        });
    writes
        .chain(gaps)
        .filter(|span| !others.spans.iter().any(|other| other.contains(*span)))
        .collect()
}

/// What threads do that don't get to the launch.
struct OtherBranches {
    /// The branches of the `if`s around the launch that don't lead to it. What they do is in no order with the launch, as long as no
    /// thread meets another one there.
    spans: Vec<Span>,
    /// On its way into a branch to the launch, a thread may meet others.
    meet: bool,
}

fn other_branches(site: &Site<'_>) -> OtherBranches {
    let mut found = OtherBranches {
        spans: Vec::new(),
        meet: false,
    };
    let mut inner: Option<StmtId> = None;
    for stmt in site.places.around(site.facts.expr) {
        // With the condition that tells them apart, and the launch's arguments.
        let leads = || Span::new(site.body.stmt(stmt).span.start, site.facts.span.end);
        if matches!(site.body.stmt(stmt).kind, StmtKind::Switch { .. }) {
            let cases = leads();
            found.meet |= may_meet(site, cases);
        }
        if let StmtKind::If { then, otherwise, .. } = &site.body.stmt(stmt).kind {
            found.meet |= may_meet(site, leads());
            let branches = [Some(*then), *otherwise].into_iter().flatten();
            let others = branches.filter(|b| Some(*b) != inner && !found.meet);
            found.spans.extend(others.map(|b| site.body.stmt(b).span));
        }
        inner = Some(stmt);
    }
    found
}

/// Whether a thread may wait for others in a part of the kernel, or hear from them there.
fn may_meet(site: &Site<'_>, part: Span) -> bool {
    let (db, found) = (site.db, direct(site.db, site.parent));
    let facts = &found.facts;
    let meets = [&facts.barriers, &facts.warp_ops, &facts.may_wait, &facts.asm];
    let inside = |span: &Span| part.contains(*span);
    let calls = found.calls.iter().filter(|call| inside(&call.span));
    let of_calls = calls
        .flat_map(|call| &call.candidates)
        .map(|called| effects(db, *called));
    meets.iter().any(|spans| spans.iter().any(inside))
        || facts.unknown_calls.iter().any(|(_, span)| inside(span))
        || accesses_in(site, part)
            .iter()
            .any(|access| matches!(access.kind, Kind::Atomic { .. }))
        || of_calls
            .map(|effects| {
                [&effects.barriers, &effects.warp, &effects.waits, &effects.unknown].map(|found| found.len())
            })
            .any(|found| found.iter().any(|count| *count > 0))
}
