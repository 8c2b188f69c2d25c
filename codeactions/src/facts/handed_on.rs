//! What one launch writes for another one of the same function: nothing proves that the places are the same, but both are given the same
//! memory and the same sizes, and who launches them into one stream means their order.

use gridfuse_analysis::facts::dependence::{Access, Dependence, Footprint, Kind, Root, Touch, child_footprint};
use gridfuse_analysis::facts::launch::{Operand, launches};
use gridfuse_analysis::hir::flow::Flow;
use gridfuse_analysis::hir::walk::all_in_expr;
use gridfuse_analysis::hir::{ExprId, ExprKind, Name};

use crate::edit::lex;
use crate::facts::pure::keeps_first_value;
use crate::facts::site::Site;

/// The accesses by which the grids of a launch and those of another one, by index, hand something on: one writes and the other one reads
/// through the same pointer. `None` where the arguments may say that they work on different parts of the memory (`begin` of one and
/// `middle` of the other), or where no thread comes to both launches.
pub fn handed_on<'db>(site: &Site<'db>, other: u32) -> Option<Dependence<'db>> {
    let (db, function) = (site.db, site.parent);
    let theirs = launches(db, function).get(other as usize)?;
    let (own, args) = (&site.facts.args, &theirs.args);
    if !covers(site, own, args) && !covers(site, args, own) {
        return None;
    }
    let flow = Flow::of(&site.body);
    let (a, b) = (
        *flow.expr_block.get(&site.facts.expr)?,
        *flow.expr_block.get(&theirs.expr)?,
    );
    if a != b && !flow.leads(a, b) && !flow.leads(b, a) {
        return None;
    }
    let own = child_footprint(db, function, site.id.index);
    let theirs = child_footprint(db, function, other);
    let (first, second) = pair(&own, &theirs).or_else(|| pair(&theirs, &own).map(|(w, r)| (r, w)))?;
    let touch = |access: &Access<'db>| Touch {
        function: access.function,
        span: access.span,
        kind: access.kind,
        meets: true,
    };
    Some(Dependence::Conflict(touch(first), touch(second)))
}

/// A write of one, and what the other one reads there.
fn pair<'f, 'db>(writes: &'f Footprint<'db>, reads: &'f Footprint<'db>) -> Option<(&'f Access<'db>, &'f Access<'db>)> {
    let shared = |root: &Root| matches!(root, Root::Parameter(_) | Root::Member(..) | Root::Global(_));
    let written = writes
        .accesses
        .iter()
        .filter(|access| matches!(access.kind, Kind::Write(_) | Kind::Update { .. }) && shared(&access.root));
    written
        .flat_map(|write| reads.accesses.iter().map(move |read| (write, read)))
        .find(|(write, read)| {
            let uses = matches!(read.kind, Kind::Read | Kind::Update { .. } | Kind::Atomic { .. });
            uses && read.root == write.root && read.path == write.path
        })
}

/// Whether all of these arguments are among the others, with the same values.
fn covers(site: &Site<'_>, these: &[Operand], others: &[Operand]) -> bool {
    let words = |operand: &Operand| lex::code_words(site.expr_source(operand.expr));
    these
        .iter()
        .all(|operand| settled(site, operand.expr) && others.iter().any(|other| words(other) == words(operand)))
}

/// The expression has one value wherever it stands in the function.
fn settled(site: &Site<'_>, expr: ExprId) -> bool {
    all_in_expr(&site.body, expr)
        .into_iter()
        .all(|part| match &site.body.expr(part).kind {
            ExprKind::Name(Name::Local(binding)) => keeps_first_value(site.db, site.parent, &site.body, *binding),
            ExprKind::Literal(_)
            | ExprKind::Name(_)
            | ExprKind::Paren(_)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::SizeOf
            | ExprKind::Cast { .. }
            | ExprKind::Field { arrow: false, .. } => true,
            _ => false,
        })
}
