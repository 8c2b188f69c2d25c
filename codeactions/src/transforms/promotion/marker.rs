//! `// gridfuse: independent` in front of a statement: the programmer says that the statement has nothing to do with what the other
//! links of the chain do to memory. It reads nothing that they write, and writes nothing that they read or write.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::diagnostics::suppress::{Independent, independent};
use gridfuse_analysis::facts::dependence::{Access, Polynomial, Root, Symbol};
use gridfuse_analysis::facts::launch::constant_value;
use gridfuse_analysis::hir::{BindingId, ExprKind, StmtId, StmtKind};

use super::chain::{Chain, Passed};
use super::memory::accesses_in;
use crate::api::assumption::{self, Assumed};
use crate::api::refusal::Reason;

/// The comment that is about a statement: on the line on which that begins, or alone above it.
pub fn marker_of(chain: &Chain<'_>, stmt: StmtId) -> Option<Independent> {
    let site = &chain.site;
    let place = site.place(site.body.stmt(stmt).span).range;
    independent(site.db, site.file)
        .iter()
        .find(|marker| marker.covers.start <= place.start && place.start < marker.covers.end)
        .cloned()
}

/// What is taken for granted because of it.
pub fn assumption(chain: &Chain<'_>, stmt: StmtId, marker: &Independent) -> Assumed {
    let site = &chain.site;
    let source = crate::edit::one_line::flat(site.source(site.body.stmt(stmt).span));
    let first = source.lines().next().unwrap_or("").trim_end_matches('{').trim_end();
    let before = site.text.get(..marker.place.start as usize).unwrap_or("");
    let line = before.matches('\n').count() + 1;
    assumption::MARKED_INDEPENDENT.of(Reason {
        text: format!(
            "`{first}` touches no memory that other links write, and writes none that they touch (line {line} says so)"
        ),
        place: Some(FileRange {
            file: site.file,
            range: marker.place,
        }),
    })
}

/// What shows that it doesn't hold: the statement touches a place that another link touches, and one of the two writes it.
pub fn contradiction(chain: &Chain<'_>, stmt: StmtId) -> Option<Reason> {
    let site = &chain.site;
    let own = accesses_in(site, site.body.stmt(stmt).span);
    let all = accesses_in(site, site.body.stmt(site.body.root?).span);
    own.iter().find_map(|a| {
        let meets = |b: &&Access<'_>| {
            let same = a.root == b.root && a.unit == b.unit && overlap(&a.path, &b.path);
            same && !a.kind.commutes(b.kind) && meet_in_other_links(chain, a, b)
        };
        let other = all.iter().find(meets)?;
        let (what, by) = (site.body.expr(a.at).span, site.body.expr(other.at).span);
        Some(Reason {
            text: format!(
                "this is marked as independent of the other links, and it {} what each of them {}: `{}`",
                a.kind.verb(),
                other.kind.verb(),
                crate::edit::one_line::flat(site.source(by))
            ),
            place: Some(chain.place(what)),
        })
    })
}

/// One part of an object holds the other.
fn overlap(a: &str, b: &str) -> bool {
    let holds = |outer: &str, inner: &str| {
        let rest = inner.strip_prefix(outer);
        let part = |rest: &str| rest.starts_with(['.', '[']) && !outer.contains("[]");
        rest.is_some_and(|rest| rest.is_empty() || part(rest))
    };
    holds(a, b) || holds(b, a)
}

/// So many links and iterations are looked at.
const LINKS: i128 = 4;
const ITERATIONS: i128 = 8;

/// Whether an access of one link is sure to be to the same place as another one of some other link.
fn meet_in_other_links(chain: &Chain<'_>, a: &Access<'_>, b: &Access<'_>) -> bool {
    let at = |access: &Access<'_>, link: i128| -> Vec<Polynomial> {
        let iterations = (0..ITERATIONS).map_while(|iteration| place_in(chain, access, link, iteration));
        iterations.collect()
    };
    let first = [at(a, 0), at(b, 0)];
    if first.iter().any(Vec::is_empty) {
        return false;
    }
    (1..=LINKS).any(|link| {
        let (a, b) = (at(a, link), at(b, link));
        a.iter().any(|place| first[1].contains(place)) || b.iter().any(|place| first[0].contains(place))
    })
}

/// Where an access is in this iteration of the loops around it, so many links behind the first. `None` where that isn't known, or it
/// isn't known to happen.
fn place_in(chain: &Chain<'_>, access: &Access<'_>, link: i128, iteration: i128) -> Option<Polynomial> {
    let passed = |index: u32| chain.passed.get(index as usize);
    match &access.root {
        Root::Parameter(index) | Root::Member(index, _) if passed(*index) == Some(&Passed::Same) => {}
        Root::Global(_) => {}
        _ => return None,
    }
    let mut counts = false;
    let offset = access
        .offset
        .as_ref()?
        .polynomial
        .substitute(&mut |symbol| match symbol {
            Symbol::Parameter(index) => match passed(*index)? {
                Passed::Same => Some(Polynomial::symbol(symbol.clone())),
                Passed::Step { by, minus } => {
                    let by: i128 = by.as_ref().map_or(Ok(1), |by| by.parse()).ok()?;
                    let by = if *minus { by.checked_neg()? } else { by };
                    Polynomial::symbol(symbol.clone()).plus(&Polynomial::constant(by.checked_mul(link)?))
                }
                Passed::New => None,
            },
            Symbol::Builtin(..) | Symbol::Named(_) => Some(Polynomial::symbol(symbol.clone())),
            Symbol::Variable(binding) => {
                counts = true;
                counter(chain, *binding, iteration).map(Polynomial::constant)
            }
            _ => None,
        })?;
    if !counts && iteration > 0 {
        return None;
    }
    let happens = access.guards.iter().all(|guard| {
        let value = guard.value.substitute(&mut |symbol| match symbol {
            Symbol::Parameter(index) if passed(*index) == Some(&Passed::Same) => {
                Some(Polynomial::symbol(symbol.clone()))
            }
            Symbol::Builtin(..) | Symbol::Named(_) => Some(Polynomial::symbol(symbol.clone())),
            Symbol::Variable(binding) => counter(chain, *binding, iteration).map(Polynomial::constant),
            _ => None,
        });
        match value.map(|value| value.as_constant()) {
            Some(Some(value)) => value == 0 || !guard.zero && value > 0,
            // A condition that is the same in each link; whether a loop gets further than to its first iteration isn't known.
            Some(None) => iteration == 0,
            None => false,
        }
    });
    happens.then_some(offset)
}

/// The value of a loop's counter in this iteration: `for (int i = 0; …; ++i)`.
fn counter(chain: &Chain<'_>, binding: BindingId, iteration: i128) -> Option<i128> {
    let site = &chain.site;
    let body = &site.body;
    body.stmts.iter().find_map(|stmt| {
        let StmtKind::For {
            init: Some(init), step, ..
        } = &stmt.kind
        else {
            return None;
        };
        let StmtKind::Decl(decls) = &body.stmt(*init).kind else {
            return None;
        };
        let first = decls.iter().find(|d| d.binding == binding)?.init?;
        let first = constant_value(site.db, site.parent, body, first)?;
        let by_one = step.is_some_and(|step| matches!(body.expr(step).kind, ExprKind::IncDec { increment: true, .. }));
        (iteration == 0 || by_one).then(|| first + iteration)
    })
}
