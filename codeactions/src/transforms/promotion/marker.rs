//! `// gridfuse: independent` in front of a statement: the programmer says that the statement has nothing to do with what the other
//! links of the chain do to memory. It reads nothing that they write, and writes nothing that they read or write.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::diagnostics::suppress::{Independent, independent};
use gridfuse_analysis::facts::dependence::{Access, Polynomial, Root, Symbol};
use gridfuse_analysis::hir::StmtId;

use super::chain::{Chain, Passed};
use super::memory::accesses_in;
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
pub fn assumption(chain: &Chain<'_>, stmt: StmtId, marker: &Independent) -> Reason {
    let site = &chain.site;
    let source = crate::edit::one_line::flat(site.source(site.body.stmt(stmt).span));
    let first = source.lines().next().unwrap_or("").trim_end_matches('{').trim_end();
    let before = site.text.get(..marker.place.start as usize).unwrap_or("");
    let line = before.matches('\n').count() + 1;
    Reason {
        text: format!(
            "`{first}` touches no memory that other links write, and writes none that they touch (line {line} says so)"
        ),
        place: Some(FileRange {
            file: site.file,
            range: marker.place,
        }),
    }
}

/// What shows that it doesn't hold: the statement touches a place that is the same in each link, and each link writes it.
pub fn contradiction(chain: &Chain<'_>, stmt: StmtId) -> Option<Reason> {
    let site = &chain.site;
    let own = accesses_in(site, site.body.stmt(stmt).span);
    let all = accesses_in(site, site.body.stmt(site.body.root?).span);
    let fixed: Vec<&Access<'_>> = all.iter().filter(|a| is_fixed(chain, a)).collect();
    own.iter().filter(|a| is_fixed(chain, a)).find_map(|a| {
        let other = fixed.iter().find(|b| {
            let same = a.root == b.root && a.offset == b.offset && a.unit == b.unit && a.path == b.path;
            same && !a.kind.commutes(b.kind)
        })?;
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

/// The access is one to the same place in each link.
fn is_fixed(chain: &Chain<'_>, access: &Access<'_>) -> bool {
    let same = |index: u32| chain.passed.get(index as usize) == Some(&Passed::Same);
    let root = match &access.root {
        Root::Parameter(index) | Root::Member(index, _) => same(*index),
        Root::Global(_) => true,
        Root::Object(_) | Root::Unknown => false,
    };
    let constant = |value: &Polynomial| {
        value.symbols().all(|symbol| match symbol {
            Symbol::Parameter(index) => same(*index),
            Symbol::Builtin(..) | Symbol::Named(_) => true,
            _ => false,
        })
    };
    root && access
        .offset
        .as_ref()
        .is_some_and(|offset| constant(&offset.polynomial))
        && access.guards.iter().all(|guard| constant(&guard.value))
}
