//! Kernels that drive others: one thread launches work into the NULL or the fire-and-forget stream, or several grids into the tail, and
//! then its own kernel or a partner's into the tail. What such an iteration has launched is run in its order: its children, then its tail
//! launches.

use std::collections::BTreeSet;

use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::facts::launch::{LaunchId, Launchers, Stream, launches, who_gets_to, who_launches};
use gridfuse_analysis::hir::flow::Flow;
use gridfuse_analysis::hir::walk::all_in_expr;
use gridfuse_analysis::hir::{Builtin, ExprId, ExprKind, Name, StmtId, StmtKind};

use super::chain::Stages;
use super::cycle::Cycle;
use super::kernel::Iteration;
use crate::api::refusal::Refusals;
use crate::edit::one_line::one_line;
use crate::facts::child::Child;
use crate::facts::pure;
use crate::facts::site::Site;
use crate::facts::uses::variables;
use crate::transforms::self_launch::{is_builtin, shared_bytes};

/// The launches of all kernels that come of this one, if its kernel comes back, some are tail launches, and they aren't one of each.
pub fn launches_of_driver<'db>(site: &Site<'db>) -> Option<Vec<LaunchId<'db>>> {
    let db = site.db;
    let found = Stages::of(db, site.parent)?;
    let several = found.kernels.iter().any(|kernel| launches(db, *kernel).len() > 1);
    let mut all = found.kernels.iter().flat_map(|kernel| launches(db, *kernel));
    let tails = all.any(|facts| facts.stream == Stream::TailLaunch);
    (found.returns() && several && tails).then_some(found.launches)
}

/// Whether a launch is of a child, which may begin before its launcher is done.
pub fn is_child(site: &Site<'_>) -> bool {
    site.facts.stream != Stream::TailLaunch
}

impl<'db> Cycle<'db> {
    /// What the kernel launches.
    fn own_launches(&self, at: usize) -> impl Iterator<Item = (&Site<'db>, usize)> {
        let own = self.launches.iter().filter(move |turn| turn.from == at);
        own.map(|turn| (&turn.site, turn.to))
    }

    /// How many children, and how many grids into the tail, one iteration launches at most.
    pub(super) fn at_once(&self) -> (usize, usize) {
        let of = |children: bool| {
            let all = 0..self.kernels.len();
            all.map(|at| {
                self.own_launches(at)
                    .filter(|(site, _)| is_child(site) == children)
                    .count()
            })
            .max()
            .unwrap_or_default()
        };
        (of(true), of(false))
    }

    /// Who launches what, where an iteration launches several grids. `sized`: all blocks have constant sizes, and are made alike.
    pub(super) fn refuse_launches(&self, at: usize, sized: bool, refusals: &mut Refusals) {
        let Some(iteration) = self.kernels.get(at) else { return };
        let (db, kernel) = (iteration.kernel.db, &iteration.kernel);
        let name = &kernel.name;
        let own: Vec<(&Site<'db>, usize)> = self.own_launches(at).collect();
        let found = effects(db, kernel.item);
        let elsewhere = found.launches.iter().find(|launch| {
            let here = |(site, _): &(&Site<'db>, usize)| site.here().range.contains(launch.place.range);
            !own.iter().any(here)
        });
        if let Some(found) = elsewhere {
            refusals.add(
                format!("`{name}` calls a function that launches, and the next iteration waits for that"),
                Some(found.place),
            );
        }
        if let Some(found) = found.operations.first() {
            refusals.add(
                format!(
                    "the next iteration waits for `{}`, which `{name}` puts into a stream",
                    found.what
                ),
                Some(found.place),
            );
        }
        for (site, to) in &own {
            self.refuse_turn(site, *to, sized, refusals);
        }
        self.refuse_order(&own, refusals);
        if !own.is_empty() && !self.one_launches(at, &own) {
            refusals.add(
                format!(
                    "more than one thread of the grid may launch what `{name}` launches: one `if (blockIdx.x == 0 && threadIdx.x == 0)` or \
                     the like around all of its launches isn't seen"
                ),
                own.first().map(|(site, _)| site.here()),
            );
        }
    }

    /// One launch: into which stream, of what.
    fn refuse_turn(&self, site: &Site<'db>, to: usize, sized: bool, refusals: &mut Refusals) {
        let here = Some(site.here());
        let goes_on = self.own_launches(to).next().is_some();
        let next = site.child_name();
        if let Some(around) = site.facts.loops.first() {
            refusals.add("the launch stands in a loop", Some(site.place(around.span)));
        }
        match site.facts.stream {
            Stream::TailLaunch => {}
            Stream::Null | Stream::FireAndForget if !goes_on => {}
            Stream::Null | Stream::FireAndForget => refusals.add(
                format!("`{next}` launches grids itself, and isn't launched into the tail: launch it into `cudaStreamTailLaunch`"),
                here,
            ),
            _ => {
                let place = site.facts.stream_operand.as_ref().map(|o| site.place(o.span));
                refusals.add(
                    format!("`{next}` goes into a stream of its own, and what is launched there may come at any time"),
                    place.or(here),
                );
            }
        }
        if !sized && !is_builtin(site, site.facts.block.operand.expr, Builtin::BlockDim) {
            refusals.add(
                format!(
                    "the block size of `{next}` isn't known before it runs, and all blocks of a loop are of one size"
                ),
                Some(site.place(site.facts.block.operand.span)),
            );
        }
        if shared_bytes(site) != Some(0) {
            let place = site.facts.shared.as_ref().map_or(site.here(), |o| site.place(o.span));
            refusals.add(
                format!("`{next}` has dynamic shared memory, which blocks of a loop with several kernels don't have"),
                Some(place),
            );
        }
    }

    /// What launches again has to be the last on its path, and none is launched twice by one launch. Then nothing is left to be run when
    /// it begins, so that the next launches find room.
    fn refuse_order(&self, own: &[(&Site<'db>, usize)], refusals: &mut Refusals) {
        let Some((first, _)) = own.first() else { return };
        let flow = Flow::of(&first.body);
        let comes_behind = |a: ExprId, b: ExprId| match (flow.expr_block.get(&a), flow.expr_block.get(&b)) {
            (Some(from), Some(to)) => {
                from == to && first.body.expr(a).span.start < first.body.expr(b).span.start || flow.leads(*from, *to)
            }
            _ => true,
        };
        for (site, to) in own {
            if site.facts.loops.is_empty() && comes_behind(site.facts.expr, site.facts.expr) {
                refusals.add("the launch may be done several times", Some(site.here()));
            }
            if is_child(site) || self.own_launches(*to).next().is_none() {
                continue;
            }
            let tails = own.iter().filter(|(other, _)| !is_child(other));
            let behind = tails
                .filter(|(other, _)| other.id != site.id)
                .find(|(other, _)| comes_behind(site.facts.expr, other.facts.expr));
            if let Some((other, _)) = behind {
                refusals.add(
                    format!(
                        "`{}` launches grids itself, and isn't the last tail launch: `{}` waits for it",
                        site.child_name(),
                        other.child_name()
                    ),
                    Some(other.here()),
                );
            }
        }
    }

    /// Whether it is one thread of the grid that launches all of them.
    fn one_launches(&self, at: usize, own: &[(&Site<'db>, usize)]) -> bool {
        let db = match self.kernels.get(at) {
            Some(iteration) => iteration.kernel.db,
            None => return false,
        };
        let grids = self.launches_of(db, at);
        let one_block = !grids.is_empty() && grids.iter().all(Site::has_one_block);
        let one = |found: Launchers| match found {
            Launchers::OnePerGrid => true,
            Launchers::OnePerBlock => one_block,
            _ => false,
        };
        if !own.iter().all(|(site, _)| one(who_launches(db, site.id))) {
            return false;
        }
        let has_one_thread = |site: &Site<'db>| site.has_one_block() && site.facts.block.constant == Some([1; 3]);
        if own.len() == 1 || !grids.is_empty() && grids.iter().all(has_one_thread) {
            return true;
        }
        own.first().is_some_and(|(site, _)| {
            let launches: Vec<ExprId> = own.iter().map(|(site, _)| site.facts.expr).collect();
            let Some(statements) = side_by_side(site, &launches) else {
                return false;
            };
            let one_gets_to = |expr: Option<ExprId>| {
                expr.and_then(|expr| who_gets_to(db, site.parent, expr))
                    .is_some_and(one)
            };
            let Some((first, others)) = statements.split_first() else {
                return false;
            };
            one_gets_to(entry(site, *first)) || {
                // `if (i == 0) …; if (i == 0 && more) …`
                let Some((conditions, then)) = guarded(site, *first) else {
                    return false;
                };
                let as_narrow = |stmt: &StmtId| {
                    guarded(site, *stmt)
                        .is_some_and(|(own, _)| conditions.iter().all(|condition| own.contains(condition)))
                };
                one_gets_to(entry(site, then)) && others.iter().all(as_narrow)
            }
        })
    }

    /// What a kernel that launches nothing may not do, as the iteration behind it doesn't wait for more than its grid.
    pub(super) fn refuse_leaf(iteration: &Iteration<'db>, refusals: &mut Refusals) {
        let Child { db, item, name, .. } = &iteration.kernel;
        let found = effects(*db, *item);
        for place in found.launches.iter().map(|f| f.place).take(1) {
            refusals.add(
                format!("`{name}` calls a function that launches, and the next iteration waits for that"),
                Some(place),
            );
        }
        for operation in found.operations.iter().take(1) {
            refusals.add(
                format!(
                    "the next iteration waits for `{}`, which `{name}` puts into a stream",
                    operation.what
                ),
                Some(operation.place),
            );
        }
    }
}

/// The statements that have the launches, in order, of the innermost block around all of them: whoever comes to one of them has come to
/// those before.
fn side_by_side(site: &Site<'_>, launches: &[ExprId]) -> Option<Vec<StmtId>> {
    let body = &site.body;
    let jumps = |kind: &StmtKind| matches!(kind, StmtKind::Goto(_) | StmtKind::Label(..));
    if body.stmts.iter().any(|stmt| jumps(&stmt.kind)) {
        return None;
    }
    let around: Vec<Vec<StmtId>> = launches
        .iter()
        .map(|launch| site.places.around(*launch).collect())
        .collect();
    let (first, others) = around.split_first()?;
    let at = first.iter().position(|stmt| {
        matches!(body.stmt(*stmt).kind, StmtKind::Block(_)) && others.iter().all(|chain| chain.contains(stmt))
    })?;
    let StmtKind::Block(stmts) = &body.stmt(*first.get(at)?).kind else {
        return None;
    };
    if stmts
        .iter()
        .any(|stmt| matches!(body.stmt(*stmt).kind, StmtKind::Case { .. }))
    {
        return None;
    }
    let inside: BTreeSet<StmtId> = around.iter().flatten().copied().collect();
    Some(stmts.iter().copied().filter(|stmt| inside.contains(stmt)).collect())
}

/// What is true where a statement `if (a && b) …` does anything, as it is written, and that statement. A condition that
/// may be another one the next time is told apart from all others.
fn guarded(site: &Site<'_>, stmt: StmtId) -> Option<(BTreeSet<String>, StmtId)> {
    let StmtKind::If {
        init: None,
        cond: Some(cond),
        constexpr: false,
        then,
        otherwise: None,
    } = site.body.stmt(stmt).kind
    else {
        return None;
    };
    let mut todo = vec![cond];
    let mut found = BTreeSet::new();
    while let Some(expr) = todo.pop() {
        let expr = site.body.strip_parens(expr);
        match site.body.expr(expr).kind {
            ExprKind::Logical { and: true, lhs, rhs } => todo.extend([lhs, rhs]),
            _ => {
                // What isn't sure to stay as it is has a name that no other condition has.
                let settled = stays(site, expr);
                let mark = if settled { String::new() } else { format!("{expr:?} ") };
                // A name may mean another variable in another block.
                let named = variables(&site.body, &all_in_expr(&site.body, expr));
                found.insert(format!("{mark}{named:?} {}", one_line(site.expr_source(expr))));
            }
        }
    }
    Some((found, then))
}

/// Whether an expression has the same value for a thread wherever it stands: it is made of variables that nothing changes.
fn stays(site: &Site<'_>, expr: ExprId) -> bool {
    let body = &site.body;
    // The same word may be another macro further down.
    if body.expr(expr).from_macro {
        return false;
    }
    match &body.expr(expr).kind {
        ExprKind::Literal(_) | ExprKind::Name(Name::Builtin(_)) => true,
        ExprKind::Name(Name::Local(binding)) => {
            let variable = body.binding(*binding);
            variable.ty.is_value()
                && !variable.ty.volatile
                && pure::keeps_first_value(site.db, site.parent, body, *binding)
        }
        ExprKind::Paren(inner) | ExprKind::Unary(_, inner) => stays(site, *inner),
        ExprKind::Binary(_, lhs, rhs) | ExprKind::Logical { lhs, rhs, .. } => stays(site, *lhs) && stays(site, *rhs),
        ExprKind::Field { base, arrow: false, .. } => {
            matches!(
                body.expr(body.strip_parens(*base)).kind,
                ExprKind::Name(Name::Builtin(_))
            )
        }
        _ => false,
    }
}

/// An expression that is evaluated whenever a statement is, before anything that it decides.
fn entry(site: &Site<'_>, stmt: StmtId) -> Option<ExprId> {
    match &site.body.stmt(stmt).kind {
        StmtKind::Expr(expr) => Some(*expr),
        StmtKind::If {
            init: None,
            cond: Some(cond),
            constexpr: false,
            ..
        } => Some(*cond),
        StmtKind::Block(stmts) => {
            let empty = |stmt: &&StmtId| matches!(site.body.stmt(**stmt).kind, StmtKind::Empty);
            entry(site, *stmts.iter().find(|stmt| !empty(stmt))?)
        }
        _ => None,
    }
}
