//! How a stream is used that the launching function creates: what of it goes with the launch.

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::launch::{LaunchFacts, launches};
use gridfuse_analysis::facts::streams::creates_stream;
use gridfuse_analysis::hir::plain_types::NUMBERS;
use gridfuse_analysis::hir::{BindingId, Body, Expr, ExprId, ExprKind, Name, StmtId, StmtKind};

use crate::facts::checked_calls::{checked, checked_by_if, checked_by_macro};
use crate::facts::order::comes_again;
use crate::facts::sequence::jumps;
use crate::facts::site::Site;
use crate::facts::unlowered::named_unlowered;
use crate::facts::uses::named as variable_named;

/// How a stream that the launching function has created is used.
pub struct CreatedStream {
    /// The declaration, when all that it declares are variables without a value, as in `cudaStream_t s, t;`.
    pub declaration: Option<StmtId>,
    /// The variable.
    pub variable: BindingId,
    /// `cudaStreamCreateWithFlags(&s, …);`
    pub create: Vec<StmtId>,
    /// `cudaStreamDestroy(s);`
    pub destroy: Vec<StmtId>,
    /// A use that is none of these and none of the launches that it is for.
    pub other: Option<ExprId>,
    /// The launch may go into the same stream again: it is repeated, and the stream isn't created anew each time.
    pub shared_by_iterations: bool,
    /// It is created anew in each iteration of the innermost loop around the launch.
    pub each_time: bool,
}

/// Looks at all uses of a created stream. `in_turn`: other launches of the function, by index, that may go into it, too.
pub fn created_stream(site: &Site<'_>, binding: BindingId, in_turn: &[u32]) -> CreatedStream {
    let body = &site.body;
    let all = launches(site.db, site.parent);
    let launched: Vec<&LaunchFacts<'_>> = in_turn
        .iter()
        .filter_map(|other| all.get(*other as usize))
        .chain([site.facts])
        .collect();
    let mut found = CreatedStream {
        declaration: None,
        variable: binding,
        create: Vec::new(),
        destroy: Vec::new(),
        other: None,
        shared_by_iterations: false,
        each_time: false,
    };
    for (index, expr) in body.exprs.iter().enumerate() {
        let id = ExprId(index as u32);
        match &expr.kind {
            ExprKind::Name(Name::Local(b)) if *b == binding => {}
            ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } if mentions.contains(&binding) => {
                found.other = Some(id);
                continue;
            }
            _ => continue,
        }
        let by_macro = checked_by_macro(site, id).filter(|_| expr.from_macro);
        if expr.from_macro && by_macro.is_none() {
            found.other = Some(id);
            continue;
        }
        let stmt = site.places.statement_of(id);
        // An element of the array stands for it; what chooses the element goes with it.
        let stands_for = |e: ExprId| match &body.expr(e).kind {
            ExprKind::Index { base, index } => body.strip_parens(*base) == id && only_computes(body, *index),
            _ => e == id,
        };
        let is_operand = |facts: &&LaunchFacts<'_>| {
            let operand = facts.stream_operand.as_ref().map(|o| body.strip_parens(o.expr));
            stmt.is_some() && stmt == facts.statement && operand.is_some_and(stands_for)
        };
        if launched.iter().any(is_operand) {
            continue;
        }
        let call = by_macro.and_then(|(s, call)| match &body.expr(call).kind {
            ExprKind::Call {
                name: Some(name), args, ..
            } => Some((s, name.as_str(), args)),
            _ => None,
        });
        let call = call.or_else(|| match body.stmt(stmt?).kind {
            StmtKind::Expr(e) => match body.expr(checked(site, e)) {
                Expr {
                    kind: ExprKind::Call {
                        name: Some(name), args, ..
                    },
                    from_macro: false,
                    ..
                } => Some((stmt?, name.as_str(), args)),
                _ => None,
            },
            StmtKind::If { .. } => match &body.expr(checked_by_if(site, stmt?, id)?).kind {
                ExprKind::Call {
                    name: Some(name), args, ..
                } => Some((stmt?, name.as_str(), args)),
                _ => None,
            },
            _ => None,
        });
        let first = |args: &[ExprId]| args.first().map(|a| body.strip_parens(*a));
        match call {
            Some((stmt, name, args)) if creates_stream(site.db, site.parent, name) => {
                let whole = first(args).is_some_and(
                    |a| matches!(body.expr(a).kind, ExprKind::AddrOf(p) if stands_for(body.strip_parens(p))),
                );
                // The call goes, and what its other arguments do with it.
                let idle = |arg: &ExprId| {
                    let kind = &body.expr(body.strip_parens(*arg)).kind;
                    matches!(kind, ExprKind::Literal(_) | ExprKind::Name(Name::Other(_)))
                };
                if whole && args.iter().skip(1).all(idle) {
                    found.create.push(with_its_loop(site, stmt));
                } else {
                    found.other = Some(id);
                }
            }
            Some((stmt, "cudaStreamDestroy", args)) if first(args).is_some_and(stands_for) => {
                found.destroy.push(with_its_loop(site, stmt));
            }
            _ => found.other = Some(id),
        }
    }
    for (index, stmt) in body.stmts.iter().enumerate() {
        if let StmtKind::Decl(decls) = &stmt.kind
            && decls.iter().any(|decl| decl.binding == binding)
            && decls.iter().all(|decl| decl.init.is_none())
        {
            found.declaration = Some(StmtId(index as u32));
        }
    }
    // Its declaration goes, too.
    let removed: Vec<Span> = { found.create.iter().chain(&found.destroy) }
        .map(|stmt| body.stmt(*stmt).span)
        .collect();
    let whole = site.parent.body_span(site.db);
    let named = named_unlowered(site.db, site.parent, whole).into_iter();
    let mut named = named.filter(|(b, at)| *b == binding && !removed.iter().any(|stmt| stmt.contains(*at)));
    if named.next().is_some() && found.other.is_none() {
        found.other = Some(site.facts.expr);
    }
    // Of several streams another one may be created than the launch goes into.
    found.each_time = body.binding(binding).ty.array.is_empty() && created_each_time(site, &found.create);
    found.shared_by_iterations = comes_again(site) && !found.each_time;
    found
}

/// The loop that does nothing but execute a statement with a counter of its own, as for each stream of an array; else the statement.
fn with_its_loop(site: &Site<'_>, stmt: StmtId) -> StmtId {
    let body = &site.body;
    let mut parent = site.places.parent(stmt);
    let mut inner = stmt;
    if let Some(block) = parent
        && matches!(&body.stmt(block).kind, StmtKind::Block(stmts) if *stmts == [stmt])
    {
        (inner, parent) = (block, site.places.parent(block));
    }
    let Some(around) = parent else { return stmt };
    let StmtKind::For {
        init: Some(init),
        cond: Some(cond),
        step: Some(step),
        body: repeated,
    } = &body.stmt(around).kind
    else {
        return stmt;
    };
    let StmtKind::Decl(decls) = &body.stmt(*init).kind else {
        return stmt;
    };
    let [counter] = decls.as_slice() else { return stmt };
    let counts = match body.expr(body.strip_parens(*step)).kind {
        ExprKind::IncDec { place, .. } => variable_named(body, body.strip_parens(place)) == Some(counter.binding),
        _ => false,
    };
    let plain = is_number(body, counter.binding);
    let computes = only_computes(body, *cond) && counter.init.is_some_and(|init| only_computes(body, init));
    match *repeated == inner && counts && plain && computes {
        true => around,
        false => stmt,
    }
}

fn is_number(body: &Body, binding: BindingId) -> bool {
    let ty = &body.binding(binding).ty;
    ty.is_value() && NUMBERS.contains(&ty.base.trim_start_matches("const ").trim())
}

/// An expression of numbers that does nothing but compute.
fn only_computes(body: &Body, expr: ExprId) -> bool {
    match &body.expr(expr).kind {
        ExprKind::Name(Name::Local(binding)) => is_number(body, *binding),
        ExprKind::Literal(_) | ExprKind::Name(_) | ExprKind::SizeOf => true,
        ExprKind::Paren(e) | ExprKind::Unary(_, e) => only_computes(body, *e),
        ExprKind::Field { base, arrow: false, .. } => only_computes(body, *base),
        ExprKind::Binary(_, a, b) => only_computes(body, *a) && only_computes(body, *b),
        _ => false,
    }
}

/// Whether a stream is created again before each execution of the launch: its creation stands in the innermost loop around the
/// launch, in a block that the launch is in as well (not under a condition of its own), and nothing jumps.
fn created_each_time(site: &Site<'_>, create: &[StmtId]) -> bool {
    let body = &site.body;
    let Some(innermost) = site.facts.loops.first() else {
        return false;
    };
    let inside = body.stmt(innermost.stmt).span;
    !jumps(body)
        && create.iter().any(|stmt| {
            inside.contains(body.stmt(*stmt).span)
                && site.places.parent(*stmt).is_some_and(|block| {
                    matches!(body.stmt(block).kind, StmtKind::Block(_))
                        && body.stmt(block).span.contains(site.facts.span)
                })
        })
}

impl CreatedStream {
    /// Whether nothing but the launches that it is for goes into the stream between its creation and the next, each once.
    pub fn one_launch(&self) -> bool {
        self.create.len() == 1 && self.other.is_none() && !self.shared_by_iterations
    }
}
