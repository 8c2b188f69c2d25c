//! Whether child grids need the order that a stream gives them.

use super::access::{Access, Footprint, child_footprint, own_footprint};
use super::compare::{Comparison, Dependence, Executions, Independence};
use super::location::Root;
use super::polynomial::{Polynomial, Symbol};
use super::subscript::Evaluator;
use crate::base::db::Db;
use crate::facts::launch::{LaunchFacts, Launchers, Stream, launches, stream_of};
use crate::hir::flow::{Flow, Loops};
use crate::hir::items::FunctionItem;
use crate::hir::stream_ordered::{Operation, stream_ordered};
use crate::hir::{BinOp, Body, ExprId, ExprKind, Name, StmtId, StmtKind, body};

/// How the child grids of one launch depend on each other and on others.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Order<'db> {
    /// Grids that different threads of a block launch here.
    pub threads: Dependence<'db>,
    /// Grids that one thread launches here one after the other; `None`: it launches one at most.
    pub iterations: Option<Dependence<'db>>,
    /// Grids of the other launches of the function by threads of the block: index of the launch.
    pub others: Vec<(u32, Dependence<'db>)>,
    /// What the function itself puts into streams beside launches.
    pub operations: Vec<Beside<'db>>,
}

/// A grid of a launch, and a stream-ordered operation of the launching function, by any two threads of a block.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Beside<'db> {
    /// The call.
    pub expr: ExprId,
    /// Where it takes its turn.
    pub stream: Stream,
    /// How the two depend on each other.
    pub dependence: Dependence<'db>,
    /// Nothing tells the memory of the operation from some memory of the grid: both begin at the same pointer, or at one that isn't
    /// followed. Who puts both into one stream then means their order.
    pub same_memory: bool,
}

/// For every launch of a function, in the order of [`launches`].
#[salsa::tracked]
pub fn order<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Order<'db>> {
    let all = launches(db, function);
    if all.is_empty() || all.iter().all(|l| l.launchers == Launchers::Host) {
        let unknown = || Order {
            threads: Dependence::None(Independence::Single),
            iterations: None,
            others: Vec::new(),
            operations: Vec::new(),
        };
        return all.iter().map(|_| unknown()).collect();
    }
    let body = body(db, function);
    let evaluator = Evaluator::new(db, function, &body);
    let flow = Flow::of(&body);
    let loops = Loops::of(&flow);
    let footprints: Vec<_> = (0..all.len() as u32)
        .map(|i| child_footprint(db, function, i))
        .collect();
    let mut found = Vec::new();
    for (index, facts) in all.iter().enumerate() {
        let own = &footprints[index];
        let cyclic = flow
            .expr_block
            .get(&facts.expr)
            .is_none_or(|b| loops.around(*b).next().is_some());
        let iterations = (cyclic || !facts.loops.is_empty() || facts.in_lambda)
            .then(|| iterations(db, function, &evaluator, facts, own, &flow, &loops));
        let others = footprints.iter().enumerate().filter(|(other, _)| *other != index);
        let others = others.map(|(other, theirs)| (other as u32, apart(db, function, own, theirs)));
        found.push(Order {
            threads: threads(db, function, &evaluator, facts, own),
            iterations,
            others: others.collect(),
            operations: operations(db, function, &body, own),
        });
    }
    found
}

/// What isn't known may be worse than what is, but for a conflict in sight.
fn unless_gap<'db>(footprints: &[&Footprint<'db>], known: Dependence<'db>) -> Dependence<'db> {
    match first_gap(footprints) {
        Some(gap) if !known.shows_for_sure() => gap,
        _ => known,
    }
}

fn first_gap<'db>(footprints: &[&Footprint<'db>]) -> Option<Dependence<'db>> {
    let gap = footprints.iter().find_map(|f| f.gaps.first())?;
    Some(Dependence::gap(gap))
}

fn threads<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    evaluator: &Evaluator<'_, 'db>,
    facts: &LaunchFacts<'db>,
    own: &Footprint<'db>,
) -> Dependence<'db> {
    let ranges = evaluator.ranges();
    let guards = evaluator.guards(facts.expr);
    let mut all = own.ranges.clone();
    all.extend(ranges);
    let executions = Executions::Threads;
    let comparison = Comparison::new(db, function, &executions, [&all, &all]);
    if function.signature(db).kernel && !facts.in_lambda && comparison.single(&guards) {
        return Dependence::None(Independence::Single);
    }
    unless_gap(&[own], comparison.all(&own.accesses, &own.accesses))
}

/// Any grid of the one launch, and any of the other.
fn apart<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    own: &Footprint<'db>,
    theirs: &Footprint<'db>,
) -> Dependence<'db> {
    let executions = Executions::Block;
    let comparison = Comparison::new(db, function, &executions, [&own.ranges, &theirs.ranges]);
    unless_gap(&[own, theirs], comparison.all(&own.accesses, &theirs.accesses))
}

/// What a function puts into streams beside launches, and how a grid that it launches depends on each.
fn operations<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    child: &Footprint<'db>,
) -> Vec<Beside<'db>> {
    let mut found = Vec::new();
    for (index, expr) in body.exprs.iter().enumerate() {
        let ExprKind::Call {
            name: Some(name), args, ..
        } = &expr.kind
        else {
            continue;
        };
        let Some((Operation::Set | Operation::Copy | Operation::CopyBox, stream)) = stream_ordered(name) else {
            continue;
        };
        let expr = ExprId(index as u32);
        let own = own_footprint(db, function);
        let accesses: Vec<Access<'db>> = own.accesses.iter().filter(|a| a.at == expr).cloned().collect();
        let gap = own.gaps.iter().find(|g| g.at == Some(expr)).or(child.gaps.first());
        let dependence = match gap {
            Some(gap) => Dependence::gap(gap),
            None => {
                let executions = Executions::Block;
                let comparison = Comparison::new(db, function, &executions, [&own.ranges, &child.ranges]);
                comparison.all(&accesses, &child.accesses)
            }
        };
        // What the operation does isn't followed, or its memory may be the child's.
        let same_memory = own.gaps.iter().any(|g| g.at == Some(expr))
            || accesses.iter().any(|a| {
                child.accesses.iter().any(|b| {
                    let ordered = !(a.kind.reads_only() && b.kind.reads_only());
                    ordered && (a.root == b.root || a.root == Root::Unknown || b.root == Root::Unknown)
                })
            });
        found.push(Beside {
            expr,
            stream: stream_of(db, function, args.get(stream).copied()),
            dependence,
            same_memory,
        });
    }
    found
}

fn iterations<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    evaluator: &Evaluator<'_, 'db>,
    facts: &LaunchFacts<'db>,
    own: &Footprint<'db>,
    flow: &Flow,
    loops: &Loops,
) -> Dependence<'db> {
    let body = evaluator.body;
    let jumps = body.stmts.iter().any(|s| matches!(s.kind, StmtKind::Goto(_)));
    let stable = |symbol: &Symbol| once(body, flow, loops, symbol);
    let mut counters: Vec<_> = facts
        .loops
        .iter()
        .rev()
        .map(|l| counter(evaluator, l.stmt, &stable))
        .collect();
    if counters.is_empty() || jumps || facts.in_lambda {
        counters = vec![None];
    }
    let mut ranges = own.ranges.clone();
    ranges.extend(evaluator.ranges());
    let executions = Executions::Iterations {
        stable: &stable,
        counters: &counters,
    };
    let comparison = Comparison::new(db, function, &executions, [&ranges, &ranges]);
    unless_gap(&[own], comparison.all(&own.accesses, &own.accesses))
}

/// A value that a thread computes once.
fn once(body: &Body, flow: &Flow, loops: &Loops, symbol: &Symbol) -> bool {
    let outside = |block: Option<&crate::hir::flow::BlockId>| block.is_some_and(|b| loops.around(*b).next().is_none());
    match symbol {
        Symbol::Opaque(e) => outside(flow.expr_block.get(e)),
        Symbol::Variable(b) => body.declaration(*b).is_some_and(|(stmt, _)| {
            // A counter is declared before its loop, and changes in it.
            !is_counter(body, *b) && outside(flow.stmt_block.get(&stmt))
        }),
        _ => false,
    }
}

fn is_counter(body: &Body, b: crate::hir::BindingId) -> bool {
    body.exprs.iter().any(|e| match &e.kind {
        ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
            matches!(&body.expr(body.strip_parens(*place)).kind, ExprKind::Name(Name::Local(x)) if *x == b)
        }
        _ => false,
    })
}

/// The counter of a loop, with what each iteration adds to it, when that is the same in all of them.
pub(super) fn counter(
    evaluator: &Evaluator<'_, '_>,
    stmt: StmtId,
    stable: &dyn Fn(&Symbol) -> bool,
) -> Option<(Symbol, Polynomial)> {
    let body = evaluator.body;
    for (b, counters) in &evaluator.variables.counters {
        let Some(counter) = counters.iter().find(|c| c.stmt == stmt) else {
            continue;
        };
        let ty = &body.binding(*b).ty;
        let Some((ty, _, true)) = super::integer::integer(&evaluator.places.alias(&ty.base)) else {
            continue;
        };
        let step = match counter.step {
            None => Polynomial::constant(1),
            Some(e) => {
                let step = evaluator.value(e)?.convert(ty)?;
                let fixed = step
                    .polynomial
                    .symbols()
                    .all(|s| stable(s) || matches!(s, Symbol::Parameter(_) | Symbol::Named(_) | Symbol::Builtin(..)));
                if !fixed || !step.fits.is_empty() {
                    return None;
                }
                step.polynomial
            }
        };
        // An unsigned counter doesn't wrap around when it counts up by ones to what is larger.
        if ty.unsigned {
            let StmtKind::For { cond: Some(cond), .. } = &body.stmt(stmt).kind else {
                return None;
            };
            let ExprKind::Binary(BinOp::Lt, left, right) = body.expr(body.strip_parens(*cond)).kind else {
                return None;
            };
            let own = body.expr(body.strip_parens(left)).kind == ExprKind::Name(Name::Local(*b));
            let same = evaluator.value(right).is_some_and(|bound| bound.ty.common(ty) == ty);
            if !own || !same || step.as_constant() != Some(1) || counter.down {
                return None;
            }
        }
        let step = if counter.down { step.scale(-1)? } else { step };
        return Some((Symbol::Variable(*b), step));
    }
    None
}
