//! What of a kernel's accesses to memory comes before the launch of the next link. What comes behind is in no order with
//! that link, so a program without races does nothing there that the next link could notice.

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::dependence::{Access, Gap, Root, own_footprint};
use gridfuse_analysis::hir::StmtKind;

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
    // Its arguments are part of it.
    let before = Span::new(0, site.facts.span.end);
    let others = other_branches(site);
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
        .filter(|span| !others.iter().any(|other| other.contains(*span)))
        .collect()
}

/// The branches of the `if`s around the launch that don't lead to it.
fn other_branches(site: &Site<'_>) -> Vec<Span> {
    let mut found = Vec::new();
    let mut inner = None;
    for stmt in site.places.around(site.facts.expr) {
        if let StmtKind::If { then, otherwise, .. } = &site.body.stmt(stmt).kind {
            let branches = [Some(*then), *otherwise];
            found.extend(
                branches
                    .into_iter()
                    .flatten()
                    .filter(|b| Some(*b) != inner)
                    .map(|b| site.body.stmt(b).span),
            );
        }
        inner = Some(stmt);
    }
    found
}
