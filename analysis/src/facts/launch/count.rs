//! How often a launch site launches, per thread, block and grid, how many threads that makes, and how deep it recurses.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

use super::amount::{Amount, Bound, divisor};
use super::config::constant_value;
use super::launchers::launched_dimensions;
use super::pins::Pins;
use super::places::{Places, statement_places};
use super::repeats::Repeats;
use super::shared_loops::Sharing;
use super::trips::mirrored;
use super::{Child, Extent, LaunchFacts, LaunchId, Launchers, launches, who_launches};
use crate::base::budget::CALLEES;
use crate::base::db::Db;
use crate::base::limits::WARP;
use crate::base::span::Span;
use crate::facts::effects::may_end_the_program;
use crate::facts::uniformity::{Level, immutable_parameter, uniformity};
use crate::hir::items::FunctionItem;
use crate::hir::resolve::{launch_sites_of, only_known_launches};
use crate::hir::walk::{operands, parts};
use crate::hir::{BinOp, BindingId, Body, Builtin, ExprId, ExprKind, Name, Stmt, StmtId, StmtKind, UnOp, body};

/// Whether and how far a launch leads to itself again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub enum Recursion {
    /// It doesn't.
    None,
    /// Every run of the kernel launches it again, or a kernel that leads to it again in every run.
    Endless,
    /// A parameter counts the levels; their number, where the first argument and the limit are constant.
    Bounded(Option<u64>),
    /// Something else ends it.
    Open,
}

/// Size of a child grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub enum GridSize {
    /// Constant, and fewer threads than a warp has.
    Tiny,
    /// Constant.
    Constant,
    /// Computed at run time.
    Symbolic,
}

/// How often one launch site launches.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct LaunchCount {
    /// By one thread that runs the launching function.
    pub per_thread: Amount,
    /// By one block. For a device function: called once by every thread.
    pub per_block: Amount,
    /// By one grid; in terms of `gridDim.x` and `blockDim.x` where they aren't the same at all launches of the parent.
    pub per_grid: Amount,
    /// The condition that keeps threads from launching, but for one that only picks one thread of a warp, block or grid.
    pub guard: Option<Span>,
    /// Recursion.
    pub recursion: Recursion,
    /// Size of the child grid.
    pub size: GridSize,
    /// Threads of one child grid.
    pub child_threads: Bound,
    /// Threads of all child grids that one grid launches.
    pub total_threads: Bound,
}

/// The counts of every launch of a function, in the order of [`launches`].
#[salsa::tracked]
pub fn launch_counts<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<LaunchCount> {
    let all = launches(db, function);
    if all.is_empty() {
        return Vec::new();
    }
    with_counter(db, function, |counter| {
        let count = |(index, facts): (usize, &LaunchFacts<'db>)| counter.count(index, facts);
        all.iter().enumerate().map(count).collect()
    })
}

/// Looks at a function's launches with what counting them needs.
fn with_counter<'db, T>(db: &'db dyn Db, function: FunctionItem<'db>, look: impl FnOnce(&Counter<'_, 'db>) -> T) -> T {
    let body = body(db, function);
    let levels = uniformity(db, function);
    let text = function.text(db);
    let counter = Counter {
        db,
        function,
        text: &text,
        body: &body,
        places: statement_places(db, function),
        pins: Pins::new(db, function, &body, &levels),
        repeats: OnceCell::new(),
    };
    look(&counter)
}

/// The kernels that a kernel launches in every run.
#[salsa::tracked]
fn always_launched<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<FunctionItem<'db>> {
    let all = launches(db, function);
    if all.is_empty() || !function.signature(db).kernel {
        return Vec::new();
    }
    with_counter(db, function, |counter| {
        let certain = all.iter().filter_map(|facts| {
            let Child::Kernel(child) = facts.child else { return None };
            let (conditions, loops) = counter.way_to(facts);
            counter.in_every_run(facts, &conditions, &loops).then_some(child)
        });
        certain.collect()
    })
}

/// Whether every run of `from` leads to one of `to`, by launches that always happen.
fn leads_back<'db>(db: &'db dyn Db, from: FunctionItem<'db>, to: FunctionItem<'db>) -> bool {
    let mut seen = HashSet::from([from]);
    let mut todo = vec![from];
    while let Some(function) = todo.pop() {
        if function == to {
            return true;
        }
        let next = always_launched(db, function).iter().copied();
        todo.extend(next.filter(|f| seen.len() < CALLEES && seen.insert(*f)));
    }
    false
}

/// Blocks and threads per block with which a kernel is launched, when all launches in the workspace have the same.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ParentSize {
    pub(super) blocks: Option<u64>,
    pub(super) threads: Option<u64>,
}

/// A condition on the way to a launch: it has this outcome there.
#[derive(Clone, Copy)]
pub(super) struct OnTheWay {
    pub(super) cond: Option<ExprId>,
    pub(super) outcome: bool,
    span: Span,
}

/// Whose iterations are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// One thread's, which may be in terms of its number.
    AThread,
    /// Those of any thread, at most.
    AnyThread,
}

pub(super) struct Counter<'a, 'db> {
    pub(super) db: &'db dyn Db,
    pub(super) function: FunctionItem<'db>,
    text: &'a str,
    pub(super) body: &'a Body,
    pub(super) places: Arc<Places>,
    pins: Pins<'a, 'db>,
    /// Where there are loops.
    repeats: OnceCell<Repeats>,
}

impl<'db> Counter<'_, 'db> {
    fn count(&self, index: usize, facts: &LaunchFacts<'db>) -> LaunchCount {
        let (conditions, loops) = self.way_to(facts);
        let mut guard = None;
        let mut pinned = false;
        for on in &conditions {
            match on.cond {
                Some(cond) if self.pins.picks_one_thread(cond, on.outcome) => pinned = true,
                _ => guard = guard.or(Some(on.span)),
            }
        }
        let outer = |at: usize| loops.get(at..).unwrap_or_default();
        let iterations = |of: Of| {
            let one = Amount::exactly(1);
            let loops = loops.iter().zip(1..);
            loops.fold(one, |n, (l, at)| n.times(&self.trips(*l, outer(at), facts.expr, of)))
        };
        let guarded = |mut n: Amount, guarded: bool| {
            if guarded {
                n.at_least = 0;
            }
            n
        };
        let id = LaunchId {
            function: self.function,
            index: index as u32,
        };
        let who = who_launches(self.db, id);
        let size = self.parent_size(who);
        let unclear = self.body.cut || self.may_come_again(facts);
        let times = |of: Of| match unclear {
            true => Amount::up_to(Bound::Unbounded),
            false => guarded(iterations(of), guard.is_some()),
        };
        let launching = times(Of::AThread);
        let symbolic = |known: Option<u64>, text: &str| match known {
            Some(n) => Amount::exactly(n),
            None => Amount {
                at_least: 1,
                at_most: Bound::Symbolic(text.to_owned()),
            },
        };
        let threads = symbolic(size.threads, &self.own_size(Builtin::BlockDim));
        let blocks = symbolic(size.blocks, &self.own_size(Builtin::GridDim));
        let few = |all: Amount, position: Builtin| match (self.let_through(&conditions, position), &all.at_most) {
            (Some(few), Bound::Constant(n)) if few >= *n => all,
            (Some(few), _) => Amount::up_to(Bound::Constant(few)),
            (None, _) => all,
        };
        let blocks = few(blocks, Builtin::BlockIdx);
        let one = Amount::exactly(1);
        let (in_block, of_grid) = match who {
            Launchers::ManyThreads => (few(threads, Builtin::ThreadIdx), blocks),
            Launchers::OnePerWarp => (
                symbolic(
                    size.threads.map(|n| n.div_ceil(WARP)),
                    &format!("{} / {WARP}", divisor(&self.own_size(Builtin::BlockDim))),
                ),
                blocks,
            ),
            Launchers::OnePerBlock => (one, blocks),
            Launchers::OnePerGrid | Launchers::Host => (one.clone(), one),
        };
        let mut per_block = times(Of::AnyThread).times(&in_block);
        let mut per_grid = per_block.times(&of_grid);
        // What threads share, each does a part of: all together do it once.
        let shared = loops.iter().find_map(|l| Some((*l, self.shared(*l)?)));
        if let Some((stmt, shared)) = shared.filter(|_| launching.at_most != Bound::Unbounded) {
            let others = loops.iter().zip(1..).filter(|(l, _)| **l != stmt);
            let others = others.fold(Bound::Constant(1), |n, (l, at)| {
                n.times(&self.trips(*l, outer(at), facts.expr, Of::AnyThread).at_most)
            });
            let all = self.limit(shared).times(&others);
            match (shared.sharing, who) {
                (Sharing::Threads, Launchers::ManyThreads) => per_grid.at_most = all,
                (Sharing::Blocks, Launchers::ManyThreads | Launchers::OnePerWarp | Launchers::OnePerBlock) => {
                    per_grid.at_most = all.times(&in_block.at_most);
                }
                (Sharing::BlockThreads, Launchers::ManyThreads) => {
                    per_block.at_most = all;
                    per_grid = per_block.times(&of_grid);
                }
                _ => {}
            }
            per_block.at_least = 0;
            per_grid.at_least = 0;
        }
        // What is in terms of one thread says nothing of all.
        let numbers_threads = |bound: &Bound| bound.mentions("threadIdx");
        if numbers_threads(&per_block.at_most) {
            per_block.at_most = Bound::Unbounded;
        }
        if numbers_threads(&per_grid.at_most) || per_grid.at_most.mentions("blockIdx") {
            per_grid.at_most = Bound::Unbounded;
        }
        let child_threads = self.threads_of(&facts.grid, &facts.block);
        // Nor does the size of one child grid say anything of all, where they have different ones.
        let one_size = [&facts.grid.operand, &facts.block.operand]
            .iter()
            .all(|size| size.uniformity.level <= Level::Grid && !size.changes_in_loop);
        let one_grid = per_grid.at_most == Bound::Constant(1);
        let all_threads = match &child_threads {
            Bound::Symbolic(_) if !one_size && !one_grid => per_grid.at_most.times(&Bound::Unbounded),
            size if numbers_threads(size) || size.mentions("blockIdx") => per_grid.at_most.times(&Bound::Unbounded),
            size => per_grid.at_most.times(size),
        };
        LaunchCount {
            per_thread: guarded(launching, pinned),
            total_threads: all_threads,
            per_block,
            per_grid,
            guard,
            recursion: self.recursion(facts, &conditions, &loops),
            size: match child_threads {
                Bound::Constant(n) if n < WARP => GridSize::Tiny,
                Bound::Constant(_) => GridSize::Constant,
                _ => GridSize::Symbolic,
            },
            child_threads,
        }
    }

    /// Something other than the loops around it may lead to a launch again: a jump to a label (backwards, or into a loop from
    /// outside), or a statement that isn't understood.
    fn may_come_again(&self, facts: &LaunchFacts<'db>) -> bool {
        let body = self.body;
        let unknown = |stmt: StmtId| matches!(body.stmt(stmt).kind, StmtKind::Unknown { .. });
        let labels = || body.stmts.iter().filter(|s| matches!(s.kind, StmtKind::Label(..)));
        let jumps = || body.stmts.iter().filter(|s| matches!(s.kind, StmtKind::Goto(_)));
        let enters_loop = |label: Span, jump: Span| {
            body.stmts.iter().any(|stmt| {
                let repeats = matches!(
                    stmt.kind,
                    StmtKind::For { .. }
                        | StmtKind::While { .. }
                        | StmtKind::DoWhile { .. }
                        | StmtKind::RangeFor { .. }
                );
                repeats && stmt.span.contains(label) && !stmt.span.contains(jump)
            })
        };
        let again = jumps().any(|jump| {
            labels().any(|label| {
                let back = label.span.start < jump.span.start;
                let around = label.span.start <= facts.span.start && facts.span.start < jump.span.end;
                back && around || enters_loop(label.span, jump.span)
            })
        });
        let is_loop = |stmt: &&Stmt| {
            matches!(
                stmt.kind,
                StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::RangeFor { .. }
            )
        };
        // A label of a `switch` around a loop leads into it.
        let switched = || {
            let cases = body.stmts.iter().filter(|s| matches!(s.kind, StmtKind::Case { .. }));
            cases.into_iter().any(|case| {
                let switches = body.stmts.iter().filter(|s| matches!(s.kind, StmtKind::Switch { .. }));
                let own = switches
                    .filter(|s| s.span.contains(case.span))
                    .max_by_key(|s| s.span.start);
                let mut loops = body.stmts.iter().filter(is_loop);
                own.is_some_and(|own| loops.any(|l| own.span.contains(l.span) && l.span.contains(case.span)))
            })
        };
        again || switched() || self.places.around(facts.expr).any(unknown)
    }

    /// The conditions that hold at a launch, innermost first, and the loops around it.
    fn way_to(&self, facts: &LaunchFacts<'db>) -> (Vec<OnTheWay>, Vec<StmtId>) {
        let body = self.body;
        let mut conditions = Vec::new();
        let mut loops = Vec::new();
        let mut inner: Option<StmtId> = None;
        let mut add = |cond: Option<ExprId>, outcome: bool, span: Span| {
            conditions.push(OnTheWay { cond, outcome, span });
        };
        if facts.statement.is_none() && !self.always_evaluated(facts.expr) {
            add(None, true, facts.span);
        }
        for stmt in self.places.around(facts.expr) {
            let span = body.stmt(stmt).span;
            let condition = |cond: &Option<ExprId>| cond.map_or(span, |c| body.expr(c).span);
            match &body.stmt(stmt).kind {
                StmtKind::If {
                    cond, then, otherwise, ..
                } => {
                    if inner == Some(*then) {
                        add(*cond, true, condition(cond));
                    } else if inner.is_some() && inner == *otherwise {
                        add(*cond, false, condition(cond));
                    }
                }
                StmtKind::Block(stmts) | StmtKind::Case { stmts, .. } => {
                    for before in stmts.iter().take_while(|s| Some(**s) != inner) {
                        self.may_leave(*before, &mut add);
                    }
                }
                StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::RangeFor { .. } => loops.push(stmt),
                StmtKind::For { init, .. } if init.is_none() || *init != inner => loops.push(stmt),
                StmtKind::Switch { .. }
                | StmtKind::Label(..)
                | StmtKind::Preprocessor { .. }
                | StmtKind::Unknown { .. } => add(None, true, span),
                _ => {}
            }
            inner = Some(stmt);
        }
        let repeating = match loops.is_empty() || facts.turns {
            // Another thread launches in each iteration, whether the one that has launched goes on or not.
            true => loops.clone(),
            false => self.repeats.get_or_init(|| Repeats::of(body)).among(facts.expr, &loops),
        };
        // Who comes to a loop may go around it.
        for left in loops.iter().filter(|stmt| !repeating.contains(*stmt)) {
            add(None, true, body.stmt(*left).span);
        }
        let loops = repeating;
        // What wasn't understood may hide a condition.
        if facts.in_lambda || !body.problems.is_empty() {
            add(None, true, facts.span);
        }
        (conditions, loops)
    }

    /// Notes how control may leave a statement other than at its end.
    fn may_leave(&self, stmt: StmtId, add: &mut impl FnMut(Option<ExprId>, bool, Span)) {
        let body = self.body;
        if let StmtKind::If {
            cond: Some(cond),
            then,
            otherwise: None,
            ..
        } = &body.stmt(stmt).kind
            && returns(body, *then)
        {
            add(Some(*cond), false, body.expr(*cond).span);
        } else if let Some(jump) = jump_in(body, stmt) {
            add(None, true, body.stmt(jump).span);
        }
    }

    /// The expression isn't an operand of `&&`, `||` or `?:` that may be left out.
    fn always_evaluated(&self, launch: ExprId) -> bool {
        let body = self.body;
        !body.exprs.iter().any(|e| {
            let optional = match &e.kind {
                ExprKind::Logical { rhs, .. } => vec![*rhs],
                ExprKind::Conditional { then, otherwise, .. } => vec![*then, *otherwise],
                ExprKind::Unknown { parts, .. } => parts.clone(),
                _ => Vec::new(),
            };
            optional.iter().any(|o| occurs_in(body, *o, launch))
        })
    }

    pub(super) fn constant(&self, expr: ExprId) -> Option<i128> {
        constant_value(self.db, self.function, self.body, expr)
    }

    pub(super) fn source(&self, expr: ExprId) -> String {
        let words: Vec<&str> = self.body.expr(expr).span.text(self.text).split_whitespace().collect();
        words.join(" ")
    }

    /// Sizes that all launches of the kernel give, in the dimensions that they have: `gridDim.x * gridDim.y`. Where they can't be seen, what
    /// the code reads tells which dimensions these are.
    fn own_size(&self, size: Builtin) -> String {
        let (threads, blocks, _) = launched_dimensions(self.db, self.function);
        let (name, position, dims) = match size {
            Builtin::BlockDim => ("blockDim", "threadIdx", threads),
            _ => ("gridDim", "blockIdx", blocks),
        };
        let reads = |axis: &str| {
            [name, position]
                .iter()
                .any(|name| self.text.contains(&format!("{name}.{axis}")))
        };
        let is_seen = !launch_sites_of(self.db, self.function).is_empty();
        let others = ["y", "z"].iter().zip([dims[1], dims[2]]);
        let others = others.filter(|(axis, several)| if is_seen { *several } else { reads(axis) });
        let mut text = format!("{name}.x");
        for (axis, _) in others {
            text.push_str(&format!(" * {name}.{axis}"));
        }
        text
    }

    pub(super) fn parent_size(&self, who: Launchers) -> ParentSize {
        let kernel = self.function.signature(self.db).kernel;
        if who == Launchers::Host || !kernel || !only_known_launches(self.db, self.function) {
            return ParentSize::default();
        }
        let mut sizes: Option<ParentSize> = None;
        for site in launch_sites_of(self.db, self.function) {
            let Some(facts) = launches(self.db, site.function).get(site.index as usize) else {
                return ParentSize::default();
            };
            let this = ParentSize {
                blocks: volume(facts.grid.constant),
                threads: volume(facts.block.constant),
            };
            let both = sizes.get_or_insert(this);
            both.blocks = both.blocks.filter(|n| Some(*n) == this.blocks);
            both.threads = both.threads.filter(|n| Some(*n) == this.threads);
        }
        sizes.unwrap_or_default()
    }

    fn threads_of(&self, grid: &Extent, block: &Extent) -> Bound {
        self.volume_of(grid).times(&self.volume_of(block))
    }

    fn volume_of(&self, extent: &Extent) -> Bound {
        if let Some(n) = volume(extent.constant) {
            return Bound::Constant(n);
        }
        let Some(components) = extent.components else {
            return Bound::Symbolic(self.source(extent.operand.expr));
        };
        components
            .iter()
            .flatten()
            .map(|e| match self.constant(*e).map(u64::try_from) {
                Some(Ok(n)) => Bound::Constant(n),
                _ => Bound::Symbolic(self.source(*e)),
            })
            .fold(Bound::Constant(1), |product, b| product.times(&b))
    }

    fn recursion(&self, facts: &LaunchFacts<'db>, conditions: &[OnTheWay], loops: &[StmtId]) -> Recursion {
        if !facts.recursive {
            return Recursion::None;
        }
        if let Child::Kernel(child) = facts.child
            && self.in_every_run(facts, conditions, loops)
            && leads_back(self.db, child, self.function)
            && !may_end_the_program(self.db, self.function)
        {
            return Recursion::Endless;
        }
        if facts.child != Child::Kernel(self.function) {
            return Recursion::Open;
        }
        let levels = facts.args.iter().zip(&self.body.params);
        for (index, (arg, parameter)) in levels.enumerate() {
            if !immutable_parameter(self.db, self.function, self.body, *parameter)
                || !self.body.binding(*parameter).ty.is_value()
            {
                continue;
            }
            let Some(up) = self.next_level(arg.expr, *parameter) else {
                continue;
            };
            for on in conditions {
                let Some(cond) = on.cond else { continue };
                if let Some(limit) = self.level_limit(cond, on.outcome, *parameter, up) {
                    return Recursion::Bounded(limit.and_then(|limit| self.levels(index, up, limit)));
                }
            }
        }
        Recursion::Open
    }

    /// The launch happens, and starts a thread, whenever the kernel runs.
    fn in_every_run(&self, facts: &LaunchFacts<'db>, conditions: &[OnTheWay], loops: &[StmtId]) -> bool {
        let picks = |on: &OnTheWay| on.cond.is_some_and(|c| self.pins.picks_thread_zero(c, on.outcome));
        let certain = |l: &StmtId| self.trips(*l, &[], facts.expr, Of::AThread).at_least > 0;
        !self.body.cut
            && conditions.iter().all(picks)
            && loops.iter().all(certain)
            && self.never_empty(&facts.grid)
            && self.never_empty(&facts.block)
    }

    /// The extent has no dimension of 0: a launch with one fails, which is what ends `k<<<n / 2, 1>>>(n / 2)`.
    fn never_empty(&self, extent: &Extent) -> bool {
        if let Some(constant) = extent.constant {
            return constant.iter().all(|n| *n > 0);
        }
        let body = self.body;
        // The launching grid runs: its own dimensions aren't 0.
        let own = |e: ExprId| {
            let e = body.strip_parens(e);
            let of = match &body.expr(e).kind {
                ExprKind::Field { base, .. } => body.strip_parens(*base),
                _ => e,
            };
            matches!(
                body.expr(of).kind,
                ExprKind::Name(Name::Builtin(Builtin::GridDim | Builtin::BlockDim))
            )
        };
        let positive = |e: ExprId| own(e) || self.constant(e).is_some_and(|n| n > 0);
        match extent.components {
            Some(components) => components.iter().flatten().all(|e| positive(*e)),
            None => own(extent.operand.expr),
        }
    }

    /// `level + 1` (`true`) or `level - 1`.
    fn next_level(&self, arg: ExprId, parameter: BindingId) -> Option<bool> {
        let body = self.body;
        match body
            .expr(super::config::through_variables(self.db, self.function, body, arg))
            .kind
        {
            ExprKind::Binary(BinOp::Add, a, b)
                if (local(body, a) == Some(parameter) && self.constant(b) == Some(1))
                    || (local(body, b) == Some(parameter) && self.constant(a) == Some(1)) =>
            {
                Some(true)
            }
            ExprKind::Binary(BinOp::Sub, a, b) if local(body, a) == Some(parameter) && self.constant(b) == Some(1) => {
                Some(false)
            }
            _ => None,
        }
    }

    /// `cond` holds (or not) only while the parameter is below (above) a limit. The inner number: the last level that launches.
    fn level_limit(&self, cond: ExprId, outcome: bool, parameter: BindingId, up: bool) -> Option<Option<i128>> {
        let body = self.body;
        match &body.expr(body.strip_parens(cond)).kind {
            ExprKind::Unary(UnOp::Not, e) => self.level_limit(*e, !outcome, parameter, up),
            ExprKind::Logical { and, lhs, rhs } if *and == outcome => self
                .level_limit(*lhs, outcome, parameter, up)
                .or_else(|| self.level_limit(*rhs, outcome, parameter, up)),
            ExprKind::Binary(op, a, b) => {
                let (op, limit, ahead) = if let Some(ahead) = self.level_ahead(*a, parameter) {
                    (*op, *b, ahead)
                } else if let Some(ahead) = self.level_ahead(*b, parameter) {
                    (mirrored(*op)?, *a, ahead)
                } else {
                    return None;
                };
                let beyond = match (op, outcome, up) {
                    (BinOp::Lt, true, true) | (BinOp::Ge, false, true) => 1,
                    (BinOp::Le, true, true) | (BinOp::Gt, false, true) => 0,
                    (BinOp::Gt, true, false) | (BinOp::Le, false, false) => 1,
                    (BinOp::Ge, true, false) | (BinOp::Lt, false, false) => 0,
                    (BinOp::Ne, true, _) | (BinOp::Eq, false, _) => 1,
                    _ => return None,
                };
                let last = self
                    .constant(limit)
                    .map(|n| if up { n - ahead - beyond } else { n - ahead + beyond });
                Some(last)
            }
            _ => None,
        }
    }

    /// How far ahead of the parameter a number is: 0 for `level`, 1 for `level + 1`.
    fn level_ahead(&self, expr: ExprId, parameter: BindingId) -> Option<i128> {
        let body = self.body;
        if local(body, expr) == Some(parameter) {
            return Some(0);
        }
        let ExprKind::Binary(BinOp::Add, a, b) = body.expr(body.strip_parens(expr)).kind else {
            return None;
        };
        let ahead = match (local(body, a), local(body, b)) {
            (Some(level), _) if level == parameter => self.constant(b),
            (_, Some(level)) if level == parameter => self.constant(a),
            _ => None,
        };
        // Far from where it would overflow.
        ahead.filter(|n| (0..1 << 20).contains(n))
    }

    /// Levels below the first one, when all launches from elsewhere begin at constant levels.
    fn levels(&self, index: usize, up: bool, last: i128) -> Option<u64> {
        let mut most: Option<i128> = None;
        if !only_known_launches(self.db, self.function) {
            return None;
        }
        for site in launch_sites_of(self.db, self.function) {
            if site.function == self.function {
                continue;
            }
            let facts = launches(self.db, site.function).get(site.index as usize)?;
            let arg = facts.args.get(index)?.expr;
            let first = constant_value(self.db, site.function, &body(self.db, site.function), arg)?;
            let levels = if up { last - first } else { first - last } + 1;
            most = Some(most.map_or(levels, |m| m.max(levels)));
        }
        u64::try_from(most?.max(0)).ok()
    }
}

fn volume(constant: Option<[u64; 3]>) -> Option<u64> {
    constant.map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z))
}

pub(super) fn local(body: &Body, expr: ExprId) -> Option<BindingId> {
    match body.expr(body.strip_parens(expr)).kind {
        ExprKind::Name(Name::Local(binding)) => Some(binding),
        _ => None,
    }
}

/// The statement returns from the function on every path.
fn returns(body: &Body, stmt: StmtId) -> bool {
    match &body.stmt(stmt).kind {
        StmtKind::Return(_) => true,
        StmtKind::Block(stmts) => stmts.last().is_some_and(|s| returns(body, *s)),
        _ => false,
    }
}

fn occurs_in(body: &Body, expr: ExprId, wanted: ExprId) -> bool {
    let mut todo = vec![expr];
    while let Some(next) = todo.pop() {
        if next == wanted {
            return true;
        }
        todo.extend(operands(&body.expr(next).kind));
    }
    false
}

/// A jump out of a statement (`return`, `goto`, `break` or `continue` of a loop around it, something that wasn't understood).
pub(super) fn jump_in(body: &Body, stmt: StmtId) -> Option<StmtId> {
    // With each statement: whether `break` and `continue` in it stay inside.
    let mut todo = vec![(stmt, false, false)];
    while let Some((next, breaks, continues)) = todo.pop() {
        let (mut inner_breaks, mut inner_continues) = (breaks, continues);
        match body.stmt(next).kind {
            StmtKind::Return(_) | StmtKind::Goto(_) | StmtKind::Unknown { .. } => return Some(next),
            StmtKind::Break if !breaks => return Some(next),
            StmtKind::Continue if !continues => return Some(next),
            StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::RangeFor { .. } => {
                (inner_breaks, inner_continues) = (true, true);
            }
            StmtKind::Switch { .. } => inner_breaks = true,
            _ => {}
        }
        let inner = parts(body, next).0;
        todo.extend(inner.into_iter().map(|s| (s, inner_breaks, inner_continues)));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hir::items::items;
    use crate::host::Host;

    /// Per thread, per block, per grid, and threads in all.
    fn counts(parent: &str) -> Vec<String> {
        let mut host = Host::new();
        let text = format!(
            "__global__ void child(int* out);\n__global__ void parent(int* out, const int* row, int n) {{ {parent} }}"
        );
        let file = host.set_file("/a.cu".as_ref(), text);
        let db = host.db();
        let functions = &items(db, file).functions;
        let parent = functions.iter().find(|f| f.name(db) == "parent");
        let count = parent.and_then(|parent| launch_counts(db, *parent).first());
        let told = |count: &LaunchCount| {
            let all = [&count.per_thread, &count.per_block, &count.per_grid];
            let mut told: Vec<String> = all.iter().map(|amount| amount.to_string()).collect();
            told.push(count.total_threads.to_string());
            told
        };
        count.map(told).unwrap_or_default()
    }

    #[test]
    fn a_loop_that_is_left_after_the_launch_counts_once() {
        let thread = |parent: &str| counts(parent).first().cloned().unwrap_or_default();
        let once = "0 or 1";
        let launch = "child<<<1, 32>>>(out);";
        assert_eq!(
            thread(&format!("for (int i = 0; i < n; ++i) {{ {launch} break; }}")),
            once
        );
        assert_eq!(
            thread(&format!(
                "for (int i = 0; i < n; ++i) if (row[i]) {{ {launch} out[i] = 1; return; }}"
            )),
            once
        );
        assert_eq!(
            thread(&format!(
                "while (n > 0) {{ if (row[n]) {{ {launch} }} else {{ --n; continue; }} break; }}"
            )),
            once
        );
        // The inner loop is left, the outer one not; a switch isn't a loop; what may go on, may launch again.
        for parent in [
            "for (int i = 0; i < n; ++i) for (int k = 0; k < n; ++k) { L break; }",
            "for (int i = 0; i < n; ++i) switch (row[i]) { case 1: L break; default: ++out[i]; }",
            "for (int i = 0; i < n; ++i) { L if (row[i]) break; }",
            "for (int i = 0; i < n; ++i) { L if (row[i]) continue; break; }",
            "for (int i = 0; i < n; ++i) { L [&]() { return; }(); }",
            "for (int i = 0; i < n; ++i) [&]() { L return; }();",
            // Loops whose cycles begin in one place.
            "do { while (row[n]) { L } } while (--n);",
            "for (;;) { while (row[n]) { L ++n; } if (n > 9) break; }",
            "do { do { L } while (row[n]); } while (--n);",
            "for (int i = 0; i < n; ++i) { do { L break; } while (row[n]); }",
        ] {
            let found = thread(&parent.replace('L', launch));
            assert!(
                matches!(found.as_str(), "up to n" | "n" | "0 or more" | "1 or more"),
                "{parent}: {found}"
            );
        }
    }

    #[test]
    fn what_is_counted_for_a_grid_is_in_terms_of_no_thread() {
        assert_eq!(
            counts("for (int i = threadIdx.x; i < n; i += 5) child<<<1, 32>>>(out);"),
            [
                "up to (n - threadIdx.x + 4) / 5",
                "up to ((n + 4) / 5) * blockDim.x",
                "up to (((n + 4) / 5) * blockDim.x) * gridDim.x",
                "((((n + 4) / 5) * blockDim.x) * gridDim.x) * 32",
            ]
        );
        assert_eq!(
            counts("for (int i = 0; i < n - threadIdx.x; ++i) child<<<1, 32>>>(out);"),
            ["up to n - threadIdx.x", "0 or more", "0 or more", "unbounded"]
        );
        assert_eq!(
            counts("if (threadIdx.x == 0) child<<<row[blockIdx.x], 32>>>(out);")[3],
            "unbounded"
        );
        // Each thread launches a grid of a size of its own.
        assert_eq!(
            counts("int count = row[threadIdx.x]; child<<<count, 32>>>(out);")[3],
            "unbounded"
        );
        assert_eq!(counts("child<<<n, 32>>>(out);")[3], "blockDim.x * gridDim.x * n * 32");
        assert_eq!(
            counts("if (threadIdx.x + blockIdx.x == 0) child<<<row[0], 32>>>(out);")[3],
            "row[0] * 32"
        );
    }

    #[test]
    fn a_bound_names_no_counter_of_a_loop_around() {
        let all = "for (int i = 0; i < n; ++i)";
        for (loops, expected) in [
            (format!("{all} for (int j = i; j < n; ++j) {{"), "up to n * n"),
            (format!("{all} for (int j = i + 1; j < n; ++j) {{"), "up to (n - 1) * n"),
            (format!("{all} for (int j = 0; j < i; ++j) {{"), "up to (n - 1) * n"),
            (format!("{all} for (int j = i; j >= 0; --j) {{"), "up to n * n"),
            (
                format!("{all} for (int j = row[i]; j < row[i + 1]; ++j) {{"),
                "0 or more",
            ),
            (format!("{all} for (int j = 0; j < i * i; ++j) {{"), "0 or more"),
            (
                format!("{all} {{ int m = row[i]; for (int j = 0; j < m; ++j) {{ }}"),
                "0 or more",
            ),
            (
                "for (int i = 0; i < 8; ++i) for (int j = 0; j < i; ++j) {".to_owned(),
                "up to 7 * 8",
            ),
            (
                "for (int i = 8; i > 0; --i) for (int j = 0; j < i; ++j) {".to_owned(),
                "up to 8 * 8",
            ),
            (
                "for (int i = n; i > 0; --i) for (int j = i; j < n; ++j) {".to_owned(),
                "up to (n - 1) * n",
            ),
        ] {
            let text = match loops.strip_suffix(" }") {
                Some(open) => format!("{open} child<<<1, 32>>>(out); }} }}"),
                None => format!("{loops} child<<<1, 32>>>(out); }}"),
            };
            assert_eq!(counts(&text).first().map(String::as_str), Some(expected), "{loops}");
        }
    }

    #[test]
    fn conditions_say_how_many_threads_and_blocks_launch() {
        let grid = |launch: &str, condition: &str| {
            let text = format!(
                "__global__ void child(int* out);\n__global__ void parent(int* out, int n) {{ int t = threadIdx.x; \
                 unsigned char c = threadIdx.x; if ({condition}) child<<<1, 32>>>(out); }}\n\
                 void run(int* out, int n) {{ {launch}(out, n); }}"
            );
            let mut host = Host::new();
            let file = host.set_file("/a.cu".as_ref(), text);
            let db = host.db();
            let parent = items(db, file).functions.iter().find(|f| f.name(db) == "parent");
            let count = parent.and_then(|parent| launch_counts(db, *parent).first());
            count.map(|c| (c.per_block.to_string(), c.per_grid.to_string()))
        };
        let told = |block: &str, grid: &str| Some((block.to_owned(), grid.to_owned()));
        let launch = "parent<<<16, 128>>>";
        assert_eq!(grid(launch, "threadIdx.x < 8"), told("up to 8", "up to 128"));
        assert_eq!(grid(launch, "!(t >= 8) && n > 3"), told("up to 8", "up to 128"));
        assert_eq!(grid(launch, "blockIdx.x < 3 && 7 >= t"), told("up to 8", "up to 24"));
        assert_eq!(
            grid(launch, "blockIdx.x <= 2 && threadIdx.x == 0"),
            told("0 or 1", "up to 3")
        );
        // A jump leads past the condition.
        let jump = "n > 3) goto in; if (t < 8) in: if (n > 0";
        assert_eq!(grid(launch, jump), told("up to 128", "up to 2048"));
        // What is no number of the thread, or one of several dimensions, says nothing.
        assert_eq!(grid(launch, "c < 8"), told("up to 128", "up to 2048"));
        assert_eq!(grid(launch, "t < 8 || n > 3"), told("up to 128", "up to 2048"));
        assert_eq!(
            grid("parent<<<16, dim3(64, 2)>>>", "t < 8"),
            told("up to 128", "up to 2048")
        );
        assert_eq!(grid(launch, "t < 1000"), told("up to 128", "up to 2048"));
    }

    #[test]
    fn constants_are_taken_together() {
        let thread = |parent: &str| counts(parent).first().cloned().unwrap_or_default();
        for (head, expected) in [
            ("int i = 0; i < n - 1; i += 2", "up to n / 2"),
            ("int i = 0; i <= n; ++i", "up to n + 1"),
            ("int i = 2; i <= 2 * n; ++i", "up to 2 * n - 1"),
            ("int i = 1; i < n + 1; ++i", "up to n"),
            ("int i = n - 1; i >= 0; i -= 2", "up to (n + 1) / 2"),
            ("int i = n / 2; i < n; ++i", "up to n - (n / 2)"),
            (
                "int i = 1; i < n; i += gridDim.x",
                "up to (n + gridDim.x - 2) / gridDim.x",
            ),
        ] {
            assert_eq!(
                thread(&format!("for ({head}) child<<<1, 32>>>(out);")),
                expected,
                "{head}"
            );
        }
    }

    #[test]
    fn sizes_are_told_in_the_dimensions_that_they_have() {
        let launched = |config: &str, parent: &str| {
            counts(&format!(
                "{parent} }} void host(int* out, int n) {{ parent<<<{config}>>>(out, out, n);"
            ))
        };
        let child = "child<<<1, 32>>>(out);";
        assert_eq!(launched("n, 64", child)[2], "64 to 64 * gridDim.x");
        assert_eq!(
            launched("dim3(n, n), dim3(8, 8)", child)[2],
            "64 to 64 * gridDim.x * gridDim.y"
        );
        // Nobody launches it: the code reads two dimensions of blocks.
        assert_eq!(
            counts(&format!("if (threadIdx.y < 3) {child}"))[1],
            "up to blockDim.x * blockDim.y"
        );
    }

    #[test]
    fn loops_that_are_shared_are_told_with_the_sizes_of_all_launches() {
        let launched = |parent: &str| {
            counts(&format!(
                "{parent} }} void host(int* out, int n) {{ parent<<<8, 128>>>(out, out, n);"
            ))
        };
        // Each thread begins somewhere else.
        let own = "int begin = row[threadIdx.x]; for (int i = begin + threadIdx.x; i < n; i += blockDim.x) child<<<1, 32>>>(out);";
        let expected = ["up to (n - begin + 127) / 128", "up to ((n - begin + 127) / 128) * 128"];
        assert_eq!(launched(own)[..2], expected);
        let grid_stride = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) child<<<1, 32>>>(out);";
        let expected = [
            "up to (n + 1023) / 1024",
            "up to ((n + 1023) / 1024) * 128",
            "up to n",
            "n * 32",
        ];
        assert_eq!(launched(grid_stride), expected);
        // From a number on that is the same for the block.
        let block_stride =
            "int begin = n / 2; for (int i = begin + threadIdx.x; i < n; i += blockDim.x) child<<<1, 32>>>(out);";
        let expected = [
            "up to (n - begin + 127) / 128",
            "up to n - begin",
            "up to (n - begin) * 8",
            "((n - begin) * 8) * 32",
        ];
        assert_eq!(launched(block_stride), expected);
    }
}
