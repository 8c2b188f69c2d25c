//! `divergent-barrier`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::launch::{Pins, Places, children, single_threaded, statement_places};
use crate::facts::uniformity::{FunctionUniformity, Level, changes_around, uniformity};
use crate::hir::flow::Flow;
use crate::hir::items::FunctionItem;
use crate::hir::{BinOp, Body, ExprId, ExprKind, Name, StmtId, StmtKind, UnOp, body};

pub(super) const KIND: Kind = Kind {
    id: "divergent-barrier",
    severity: Severity::Error,
    doc: DOC,
    rewrites: &[],
    find: divergent_barrier,
};

const DOC: &str = r#"`__syncthreads()` that only some threads of a block reach.

## What it does
Finds `__syncthreads()` and its variants under a condition that certainly separates the threads of a block: it picks one thread
(`threadIdx.x == 0`), some lanes (`threadIdx.x % n == 0`), or fewer threads in each round of a loop (`threadIdx.x < stride`). Threads
that have left the kernel don't count, so that `if (i >= n) return;` before a barrier is left alone; so is a condition whose both
branches have a barrier.

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

fn divergent_barrier<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let signature = function.signature(db);
    if !(signature.kernel || signature.device) || !function.text(db).contains("__syncthreads") {
        return Vec::new();
    }
    if single_threaded(db, function).is_some() {
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
        body: &body,
        levels: &levels,
        places: &places,
        pins: Pins::new(db, function, &body, &levels),
    };
    let mut found = Vec::new();
    for (i, expr) in body.exprs.iter().enumerate() {
        let id = ExprId(i as u32);
        // In a lambda, it isn't known who calls it.
        let reached = flow.expr_block.get(&id).is_some_and(|b| flow.reachable(*b));
        if !reached || !is_barrier(&body, id) {
            continue;
        }
        if let Some(cond) = search.divergent_condition(id) {
            found.push(Finding {
                span: expr.span,
                message: "not all threads of the block reach this barrier".to_owned(),
                label: "waits for threads that never come".to_owned(),
                related: vec![(
                    function,
                    body.expr(cond).span,
                    "this condition differs between threads".to_owned(),
                )],
                help: Some(
                    "let all threads of the block reach the barrier, and put only the work under the condition"
                        .to_owned(),
                ),
            });
        }
    }
    found
}

fn is_barrier(body: &Body, id: ExprId) -> bool {
    match &body.expr(id).kind {
        ExprKind::Call { name: Some(name), .. } => BARRIERS.contains(&name.trim_start_matches("::")),
        _ => false,
    }
}

struct Search<'a, 'db> {
    body: &'a Body,
    levels: &'a FunctionUniformity,
    places: &'a Places,
    pins: Pins<'a, 'db>,
}

impl Search<'_, '_> {
    /// A condition around the barrier that certainly separates the threads of a block.
    fn divergent_condition(&self, barrier: ExprId) -> Option<ExprId> {
        let body = self.body;
        let mut inner: Option<StmtId> = None;
        for stmt in self.places.around(barrier) {
            if let StmtKind::If {
                cond: Some(cond),
                then,
                otherwise,
                ..
            } = &body.stmt(stmt).kind
            {
                let other = if inner == Some(*then) { *otherwise } else { Some(*then) };
                let inside = inner == Some(*then) || inner.is_some() && inner == *otherwise;
                let waits_too = other.is_some_and(|other| self.has_barrier_or_leaves(other));
                if inside && !waits_too && self.separates(*cond, stmt) {
                    return Some(*cond);
                }
            }
            inner = Some(stmt);
        }
        None
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
        loops.next().is_some_and(|l| changes_around(body, stride, l))
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
            let (inner, mut exprs) = children(body, next);
            todo.extend(inner);
            while let Some(e) = exprs.pop() {
                if is_barrier(body, e) || matches!(body.expr(e).kind, ExprKind::Unknown { .. }) {
                    return true;
                }
                exprs.extend(crate::hir::flow::operands(&body.expr(e).kind));
            }
        }
        false
    }
}
