//! `divergent-barrier`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::base::span::Span;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::callee::{Callee, callee};
use crate::facts::effects::{leads_too_far, summary};
use crate::facts::launch::{Pins, Places, constant_extent, constant_value, single_threaded, statement_places};
use crate::facts::uniformity::{FunctionUniformity, Level, changes_around, uniformity};
use crate::hir::flow::Flow;
use crate::hir::items::FunctionItem;
use crate::hir::resolve::launch_sites_of;
use crate::hir::walk::parts;
use crate::hir::{BinOp, Body, Builtin, ExprId, ExprKind, Name, StmtId, StmtKind, UnOp, body};

pub(super) const KIND: Kind = Kind {
    id: "divergent-barrier",
    severity: Severity::Error,
    doc: DOC,
    rewrites: &[],
    find: divergent_barrier,
};

const DOC: &str = r#"`__syncthreads()` that only some threads of a block reach.

## What it does
Finds `__syncthreads()` and its variants, and calls of functions that always come to one, under a condition that is certainly divergent
within a block. The condition picks one thread (`threadIdx.x == 0`), some lanes (`threadIdx.x % n == 0`), fewer threads in each round of a
loop (`threadIdx.x < stride`), or the first few of a block that a launch in sight makes larger (`threadIdx.x < 5`). The same goes for loops
that some threads repeat more often than others, and for barriers that some threads skip with `break` or `continue`. Threads that have left
the kernel don't count: `if (i >= n) return;` before a barrier is left alone. So is a condition with a barrier in both branches.

## Why is this bad
The barrier waits for all threads of the block. If some never come, the behaviour is undefined: the block hangs, or the threads go on
without waiting.

## Example
```cuda
__global__ void child(float* out) { out[threadIdx.x] = 1.0f; }

__global__ void parent(float* out, float* tile) {
    tile[threadIdx.x] = out[threadIdx.x];
    if (threadIdx.x == 0) {
        __syncthreads();
        child<<<1, 64>>>(tile);
    }
}
```

## Use instead
```cuda
__global__ void child(float* out) { out[threadIdx.x] = 1.0f; }

__global__ void parent(float* out, float* tile) {
    tile[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) child<<<1, 64>>>(tile);
}
```
"#;

const BARRIERS: [&str; 4] = [
    "__syncthreads",
    "__syncthreads_or",
    "__syncthreads_and",
    "__syncthreads_count",
];

/// Calls that are followed to a barrier, one inside of the other.
const DEPTH: u32 = 4;

fn divergent_barrier<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let signature = function.signature(db);
    if !(signature.kernel || signature.device) || leads_too_far(db, function) {
        return Vec::new();
    }
    // Those of functions that are called included.
    if summary(db, function).barriers.is_none() || single_threaded(db, function).is_some() {
        return Vec::new();
    }
    let body = body(db, function);
    if !body.problems.is_empty() {
        return Vec::new();
    }
    let levels = uniformity(db, function);
    if levels.too_large {
        return Vec::new();
    }
    let flow = Flow::of(&body);
    let places = statement_places(db, function);
    let search = Search {
        db,
        function,
        body: &body,
        levels: &levels,
        places: &places,
        pins: Pins::new(db, function, &body, &levels),
        blocks: block_sizes(db, function),
    };
    let mut found = Vec::new();
    for (i, expr) in body.exprs.iter().enumerate() {
        let id = ExprId(i as u32);
        // In a lambda, it isn't known who calls it.
        let reached = flow.expr_block.get(&id).is_some_and(|b| flow.reachable(*b));
        let Some(waits) = reached.then(|| waits(db, function, &body, id, DEPTH)).flatten() else {
            continue;
        };
        if let Some(cond) = search.divergent_condition(id) {
            let reason = "this condition differs between threads".to_owned();
            let mut related = vec![(function, body.expr(cond).span, reason)];
            if waits.0 != function {
                let text = format!("`{}` has the barrier here", waits.0.name(db));
                related.push((waits.0, waits.1, text));
            }
            found.push(Finding {
                span: expr.span,
                message: "not all threads of the block reach this barrier".to_owned(),
                label: "waits for threads that never come".to_owned(),
                related,
                help: Some(
                    "let all threads of the block reach the barrier, and put only the work under the condition"
                        .to_owned(),
                ),
            });
        }
    }
    found
}

/// The barrier that an expression is, or that the function always comes to that it calls.
fn waits<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    id: ExprId,
    depth: u32,
) -> Option<(FunctionItem<'db>, Span)> {
    if is_barrier(body, id) {
        return Some((function, body.expr(id).span));
    }
    let depth = depth.checked_sub(1)?;
    let [called] = called(db, function, body, id)?.try_into().ok()?;
    if summary(db, called).barriers.is_none() || leads_too_far(db, called) {
        return None;
    }
    let inner = crate::hir::body(db, called);
    let StmtKind::Block(stmts) = &inner.stmt(inner.root?).kind else {
        return None;
    };
    if !inner.problems.is_empty() || inner.cut {
        return None;
    }
    for stmt in stmts {
        match &inner.stmt(*stmt).kind {
            StmtKind::Expr(e) => {
                let found = waits(db, called, &inner, inner.strip_parens(*e), depth);
                if found.is_some() {
                    return found;
                }
            }
            StmtKind::Decl(_) | StmtKind::Empty => {}
            _ if may_leave(&inner, *stmt) => return None,
            _ => {}
        }
    }
    None
}

/// The functions that a call may mean; `None` for other expressions, and for calls of which that isn't known.
fn called<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    id: ExprId,
) -> Option<Vec<FunctionItem<'db>>> {
    let ExprKind::Call {
        callee: target,
        name,
        args,
        ..
    } = &body.expr(id).kind
    else {
        return None;
    };
    match callee(db, function, body, *target, name.as_deref(), args) {
        Callee::Functions(all, _) => Some(all),
        _ => None,
    }
}

/// Somewhere in the statement, the function is left.
fn may_leave(body: &Body, stmt: StmtId) -> bool {
    let mut todo = vec![stmt];
    while let Some(next) = todo.pop() {
        let leaves = |kind: &StmtKind| {
            matches!(
                kind,
                StmtKind::Return(_) | StmtKind::Goto(_) | StmtKind::Unknown { .. } | StmtKind::Asm { .. }
            )
        };
        if leaves(&body.stmt(next).kind) {
            return true;
        }
        todo.extend(parts(body, next).0);
    }
    false
}

/// The sizes of the blocks in which launches in sight run a kernel, as far as they are constant.
fn block_sizes<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> Vec<[u64; 3]> {
    let sites = launch_sites_of(db, kernel).into_iter();
    let size = sites.filter_map(|site| {
        let body = body(db, site.function);
        let launch = body.launches.get(site.index as usize)?;
        let ExprKind::Launch(launch) = &body.expr(*launch).kind else {
            return None;
        };
        constant_extent(db, site.function, &body, *launch.config.get(1)?)
    });
    size.collect()
}

fn is_barrier(body: &Body, id: ExprId) -> bool {
    match &body.expr(id).kind {
        ExprKind::Call { name: Some(name), .. } => BARRIERS.contains(&name.trim_start_matches("::")),
        _ => false,
    }
}

struct Search<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    levels: &'a FunctionUniformity,
    places: &'a Places,
    pins: Pins<'a, 'db>,
    /// Sizes of the blocks that run the kernel.
    blocks: Vec<[u64; 3]>,
}

impl Search<'_, '_> {
    /// A condition around the barrier that certainly separates the threads of a block.
    fn divergent_condition(&self, barrier: ExprId) -> Option<ExprId> {
        let body = self.body;
        let mut inner: Option<StmtId> = None;
        // What is left by `break` and `continue` is a loop around.
        let mut passed: Option<ExprId> = None;
        for stmt in self.places.around(barrier) {
            match &body.stmt(stmt).kind {
                StmtKind::If {
                    cond: Some(cond),
                    then,
                    otherwise,
                    ..
                } => {
                    let other = if inner == Some(*then) { *otherwise } else { Some(*then) };
                    let inside = inner == Some(*then) || inner.is_some() && inner == *otherwise;
                    let waits_too = other.is_some_and(|other| self.has_barrier_or_leaves(other));
                    let separates = || self.separates(*cond, stmt) || self.splits_a_block(*cond, barrier);
                    if inside && !waits_too && separates() {
                        return Some(*cond);
                    }
                }
                StmtKind::Block(stmts) => {
                    let before = stmts.iter().take_while(|s| Some(**s) != inner);
                    passed = passed.or(before.filter_map(|s| self.passes_by(*s, barrier)).last());
                }
                StmtKind::Switch { .. } | StmtKind::Case { .. } => passed = None,
                StmtKind::While {
                    cond: Some(cond),
                    body: repeated,
                    ..
                }
                | StmtKind::DoWhile { cond, body: repeated }
                | StmtKind::For {
                    cond: Some(cond),
                    body: repeated,
                    ..
                } if inner == Some(*repeated) => {
                    if passed.is_some() {
                        return passed;
                    }
                    if self.separates(*cond, *repeated) || self.repeats_unevenly(stmt) {
                        return Some(*cond);
                    }
                }
                StmtKind::For {
                    cond: None,
                    body: repeated,
                    ..
                } if inner == Some(*repeated) && passed.is_some() => {
                    return passed;
                }
                _ => {}
            }
            inner = Some(stmt);
        }
        None
    }

    /// The condition under which some threads leave a round of the loop around: `if (threadIdx.x == 0) break;`.
    fn passes_by(&self, stmt: StmtId, barrier: ExprId) -> Option<ExprId> {
        let body = self.body;
        let StmtKind::If {
            cond: Some(cond),
            then,
            otherwise,
            ..
        } = &body.stmt(stmt).kind
        else {
            return None;
        };
        let leaves = |branch: StmtId| {
            let last = match &body.stmt(branch).kind {
                StmtKind::Block(stmts) => stmts.last().copied(),
                _ => Some(branch),
            };
            last.is_some_and(|last| matches!(body.stmt(last).kind, StmtKind::Break | StmtKind::Continue))
        };
        let waits = |branch: StmtId| self.has_barrier_or_leaves(branch);
        // The other branch goes on to the barrier.
        let one = match otherwise {
            None => leaves(*then) && !waits(*then),
            Some(other) => leaves(*then) != leaves(*other) && !waits(*then) && !waits(*other),
        };
        let separates = || self.separates(*cond, stmt) || self.splits_a_block(*cond, barrier);
        (one && separates()).then_some(*cond)
    }

    /// `threadIdx.x < 5`, where a launch in sight runs the kernel in blocks of 64 threads, and no thread has left before.
    fn splits_a_block(&self, cond: ExprId, barrier: ExprId) -> bool {
        let body = self.body;
        let cond = body.strip_parens(cond);
        match body.expr(cond).kind {
            ExprKind::Unary(UnOp::Not, inner) => return self.splits_a_block(inner, barrier),
            ExprKind::Logical { and, lhs, rhs } => {
                let (left, right) = (self.splits_a_block(lhs, barrier), self.splits_a_block(rhs, barrier));
                return if and { left || right } else { left && right };
            }
            _ => {}
        }
        let ExprKind::Binary(op, a, b) = body.expr(cond).kind else {
            return false;
        };
        let before = body.expr(barrier).span.start;
        if body
            .stmts
            .iter()
            .any(|s| matches!(s.kind, StmtKind::Return(_)) && s.span.start < before)
        {
            return false;
        }
        // As many threads are on one side of the condition.
        let some = |thread: ExprId, bound: ExprId, over: bool| {
            let axis = self.pins.axis(thread)?;
            let bound = constant_value(self.db, self.function, body, bound)?;
            let some = bound.checked_add(i128::from(over))?;
            Some(
                self.blocks
                    .iter()
                    .any(|size| 0 < some && size.get(axis).is_some_and(|n| some < i128::from(*n))),
            )
        };
        let found = match op {
            BinOp::Lt | BinOp::Ge => some(a, b, false).or_else(|| some(b, a, true)),
            BinOp::Le | BinOp::Gt => some(a, b, true).or_else(|| some(b, a, false)),
            _ => None,
        };
        found == Some(true)
    }

    /// `for (int i = threadIdx.x; i < 100; i += 64)`, where a launch in sight makes that one round more for some threads of a block.
    fn repeats_unevenly(&self, stmt: StmtId) -> bool {
        let body = self.body;
        let StmtKind::For {
            init: Some(init),
            cond: Some(cond),
            step: Some(step),
            ..
        } = body.stmt(stmt).kind
        else {
            return false;
        };
        let (
            StmtKind::Decl(declared),
            ExprKind::Binary(BinOp::Lt, counter, end),
            ExprKind::Assign {
                op: Some(BinOp::Add),
                place,
                value,
            },
        ) = (&body.stmt(init).kind, &body.expr(cond).kind, &body.expr(step).kind)
        else {
            return false;
        };
        let [one] = declared.as_slice() else { return false };
        let is_counter = |e: ExprId| body.expr(body.strip_parens(e)).kind == ExprKind::Name(Name::Local(one.binding));
        let changes = body.exprs.iter().filter(|e| match e.kind {
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } | ExprKind::AddrOf(place) => {
                is_counter(place)
            }
            ExprKind::Unknown { .. } | ExprKind::Lambda { .. } => true,
            _ => false,
        });
        if !is_counter(*counter) || !is_counter(*place) || changes.count() != 1 {
            return false;
        }
        let Some(axis) = one.init.and_then(|init| self.pins.axis(init)) else {
            return false;
        };
        let constant = |e: ExprId| constant_value(self.db, self.function, body, e);
        let Some(end) = constant(*end) else { return false };
        let own_extent = match &body.expr(body.strip_parens(*value)).kind {
            ExprKind::Field { base, field, .. } => {
                matches!(body.expr(*base).kind, ExprKind::Name(Name::Builtin(Builtin::BlockDim)))
                    && ["x", "y", "z"].get(axis) == Some(&field.as_str())
            }
            _ => false,
        };
        self.blocks.iter().filter_map(|size| size.get(axis)).any(|threads| {
            let threads = i128::from(*threads);
            let Some(by) = constant(*value).or(own_extent.then_some(threads)).filter(|by| *by > 0) else {
                return false;
            };
            let rounds = |thread: i128| end.saturating_sub(thread).max(0).saturating_add(by - 1) / by;
            threads > 1 && rounds(0) != rounds(threads - 1)
        })
    }

    fn separates(&self, cond: ExprId, at: StmtId) -> bool {
        let body = self.body;
        if self.levels.of(cond) <= Level::Block {
            return false;
        }
        match &body.expr(cond).kind {
            ExprKind::Paren(e) | ExprKind::Unary(UnOp::Not, e) if self.pins.picks_one_thread(*e, true) => true,
            ExprKind::Paren(e) | ExprKind::Unary(UnOp::Not, e) => self.separates(*e, at),
            ExprKind::Logical { and, lhs, rhs } => {
                let (left, right) = (self.separates(*lhs, at), self.separates(*rhs, at));
                if *and { left || right } else { left && right }
            }
            ExprKind::Binary(BinOp::Eq | BinOp::Ne, a, b) => {
                self.pins.picks_one_thread(cond, true)
                    || self.pins.picks_one_thread(cond, false)
                    || self.is_lane(*a, *b)
                    || self.is_lane(*b, *a)
            }
            ExprKind::Binary(BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge, a, b) => {
                self.pins.picks_one_thread(cond, true)
                    || self.pins.picks_one_thread(cond, false)
                    || self.is_shrinking(*a, *b, at)
                    || self.is_shrinking(*b, *a, at)
            }
            _ => self.pins.picks_one_thread(cond, true) || self.pins.picks_one_thread(cond, false),
        }
    }

    /// `threadIdx.x % n` against a number that all threads share.
    fn is_lane(&self, lane: ExprId, other: ExprId) -> bool {
        let lane = self.body.expr(self.body.strip_parens(lane));
        match lane.kind {
            ExprKind::Binary(BinOp::Rem | BinOp::BitAnd, thread, n) => {
                self.pins.numbers_threads(thread)
                    && self.levels.of(n) <= Level::Block
                    && self.levels.of(other) <= Level::Block
            }
            _ => false,
        }
    }

    /// The number of a thread against one that a loop around changes, the same for all threads.
    fn is_shrinking(&self, thread: ExprId, stride: ExprId, at: StmtId) -> bool {
        let body = self.body;
        let ExprKind::Name(Name::Local(_)) = body.expr(body.strip_parens(stride)).kind else {
            return false;
        };
        if !self.pins.numbers_threads(thread) || self.levels.of(stride) > Level::Block {
            return false;
        }
        let around = std::iter::successors(self.places.parent(at), |s| self.places.parent(*s));
        let mut loops = around.filter(|s| {
            matches!(
                body.stmt(*s).kind,
                StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::DoWhile { .. }
            )
        });
        loops
            .next()
            .is_some_and(|l| changes_around(self.db, self.function, body, stride, l))
    }

    /// The statement has a barrier of its own, or leaves the function.
    fn has_barrier_or_leaves(&self, stmt: StmtId) -> bool {
        let body = self.body;
        let mut todo = vec![stmt];
        while let Some(next) = todo.pop() {
            if matches!(
                body.stmt(next).kind,
                StmtKind::Return(_) | StmtKind::Goto(_) | StmtKind::Unknown { .. }
            ) {
                return true;
            }
            let (inner, mut exprs) = parts(body, next);
            todo.extend(inner);
            while let Some(e) = exprs.pop() {
                if is_barrier(body, e) || matches!(body.expr(e).kind, ExprKind::Unknown { .. }) || self.may_wait(e) {
                    return true;
                }
                exprs.extend(crate::hir::flow::operands(&body.expr(e).kind));
            }
        }
        false
    }

    /// A call of a function that has a barrier somewhere, or of which that isn't known.
    fn may_wait(&self, e: ExprId) -> bool {
        let called = called(self.db, self.function, self.body, e);
        called.is_some_and(|all| {
            all.iter().any(|f| {
                let inside = summary(self.db, *f);
                inside.barriers.is_some() || !inside.unknown_calls.is_empty()
            })
        })
    }
}
