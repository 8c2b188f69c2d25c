//! What one launch writes for another one of the same function: nothing proves that the places are the same, but both are given the same
//! memory and the same sizes, and who launches them into one stream means their order.

use gridfuse_analysis::facts::dependence::{Access, Dependence, Footprint, Kind, Root, Touch, child_footprint};
use gridfuse_analysis::facts::launch::{Child, LaunchFacts, Operand, launches};
use gridfuse_analysis::hir::flow::Flow;
use gridfuse_analysis::hir::walk::all_in_expr;
use gridfuse_analysis::hir::{ExprId, ExprKind, Name, body};

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
    let (mine, others) = (
        child_footprint(db, function, site.id.index),
        child_footprint(db, function, other),
    );
    let (mine, others) = (Side::new(site, site.facts, &mine), Side::new(site, theirs, &others));
    let (first, second) = pair(&mine, &others).or_else(|| pair(&others, &mine).map(|(w, r)| (r, w)))?;
    let touch = |access: &Access<'db>| Touch {
        function: access.function,
        span: access.span,
        kind: access.kind,
        meets: true,
    };
    Some(Dependence::Conflict(touch(first), touch(second)))
}

/// The accesses of one launch's grids, each with a name for the memory at which it begins, where that is clear.
struct Side<'f, 'db> {
    accesses: Vec<(String, &'f Access<'db>)>,
}

impl<'f, 'db> Side<'f, 'db> {
    fn new(site: &Site<'db>, launch: &LaunchFacts<'db>, footprint: &'f Footprint<'db>) -> Self {
        let named = footprint.accesses.iter().filter_map(|access| {
            let name = match &access.root {
                root @ (Root::Parameter(_) | Root::Member(..) | Root::Global(_)) => format!("{root:?} {}", access.path),
                Root::Unknown => member(site, launch, access)?,
                Root::Object(_) => return None,
            };
            Some((name, access))
        });
        Side {
            accesses: named.collect(),
        }
    }
}

/// `phase.pos` of `phase.pos[i]`, in words of the launching function: where the type of `phase` isn't followed, as that of a class
/// template isn't.
fn member(site: &Site<'_>, launch: &LaunchFacts<'_>, access: &Access<'_>) -> Option<String> {
    let Child::Kernel(kernel) = launch.child else {
        return None;
    };
    if access.function != kernel {
        return None;
    }
    let text = kernel.text(site.db);
    let code = access.span.text(&text);
    let (path, _) = code.split_once('[')?;
    let words = lex::code_words(path);
    let (first, fields) = words.split_first()?;
    let plain = fields.chunks(2).all(|pair| matches!(pair, [".", _]));
    let body = body(site.db, kernel);
    let index = body.params.iter().position(|p| body.binding(*p).name == *first)?;
    let arg = launch.args.get(index).filter(|_| plain && !fields.is_empty())?;
    let arg = lex::code_words(site.expr_source(arg.expr)).join(" ");
    Some(format!("{arg} {}", fields.concat()))
}

/// A write of one, and what the other one reads there.
fn pair<'f, 'db>(writes: &Side<'f, 'db>, reads: &Side<'f, 'db>) -> Option<(&'f Access<'db>, &'f Access<'db>)> {
    let changes = |kind: Kind| matches!(kind, Kind::Write(_) | Kind::Update { .. });
    let uses = |kind: Kind| matches!(kind, Kind::Read | Kind::Update { .. } | Kind::Atomic { .. });
    let written = writes.accesses.iter().filter(|(_, access)| changes(access.kind));
    written
        .flat_map(|(place, write)| {
            reads
                .accesses
                .iter()
                .map(move |(other, read)| (place == other, *write, *read))
        })
        .find(|(same, _, read)| *same && uses(read.kind))
        .map(|(_, write, read)| (write, read))
}

/// Whether all of these arguments are among the others, with the same values. A pointer as it is chooses no part of the memory that
/// another one leads to.
fn covers(site: &Site<'_>, these: &[Operand], others: &[Operand]) -> bool {
    let words = |operand: &Operand| lex::code_words(site.expr_source(operand.expr));
    let is_pointer = |operand: &Operand| match site.body.expr(site.body.strip_parens(operand.expr)).kind {
        ExprKind::Name(Name::Local(binding)) => site.body.binding(binding).ty.pointers > 0,
        _ => false,
    };
    these.iter().all(|operand| {
        settled(site, operand.expr)
            && (is_pointer(operand) || others.iter().any(|other| words(other) == words(operand)))
    })
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
