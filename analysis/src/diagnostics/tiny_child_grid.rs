//! `tiny-child-grid`

use crate::base::db::Db;
use crate::base::file_settings::settings;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::dependence::order;
use crate::facts::effects::{direct, summary};
use crate::facts::launch::{Bound, LaunchId, Launchers, Stream, is_thresholded, launch_counts, launches, who_launches};
use crate::hir::flow::{BlockId, Flow, Step};
use crate::hir::items::FunctionItem;
use crate::hir::{ExprId, body};

pub(super) const KIND: Kind = Kind {
    id: "tiny-child-grid",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &["optimize", "threshold", "aggregate-grid", "aggregate-block"],
    find: tiny_child_grid,
};

const DOC: &str = r#"Many child grids of a few threads each.

## What it does
Finds launches of child grids that have fewer threads than a warp (or than `tiny-grid` in `gridfuse.toml` says), and that are
launched again and again: by many threads, by a thread of each warp or block, or in a loop. A grid that a single thread launches once,
and one that is launched into the tail stream to run after its parent, are left alone. So is a grid that has to run after another one of
the same thread in the same stream: a thread can't wait for a grid, so it can't do that work itself.

## Why is this bad
A launch costs microseconds. In that time a thread does the work of a few threads many times over. A block with less than a warp also
leaves the other lanes idle.

## Example
```cuda
__global__ void child(float* values, int first) { values[first + threadIdx.x] *= 2.0f; }

__global__ void parent(float* values, const int* chosen, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && chosen[i]) child<<<1, 4>>>(values, 4 * i);
}
```

## Use instead
A loop in the launching thread. Where the sizes differ, the rewrite `threshold` does that for small child grids alone.

```cuda
__global__ void parent(float* values, const int* chosen, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && chosen[i])
        for (int k = 0; k < 4; ++k) values[4 * i + k] *= 2.0f;
}
```
"#;

fn tiny_child_grid<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let counts = launch_counts(db, function);
    let limit = settings(db, function.file(db)).tiny_grid;
    let mut found = Vec::new();
    for (index, (facts, count)) in launches(db, function).iter().zip(counts).enumerate() {
        let Bound::Constant(threads) = count.child_threads else {
            continue;
        };
        let id = LaunchId {
            function,
            index: index as u32,
        };
        let who = who_launches(db, id);
        let repeated = who != Launchers::OnePerGrid || !facts.loops.is_empty();
        let excluded = who == Launchers::Host || facts.in_lambda || facts.stream == Stream::TailLaunch;
        // What is tiny has been left to the launching thread there.
        let excluded = excluded || is_thresholded(db, function, facts);
        if threads == 0 || threads >= limit || !repeated || excluded || behind_another(db, function, index) {
            continue;
        }
        let kernel = facts.kernel_name.as_deref().unwrap_or("the child");
        let grid = if threads == 1 {
            "a single thread".to_owned()
        } else {
            format!("{threads} threads")
        };
        found.push(Finding {
            span: facts.span,
            message: format!("each launch of `{kernel}` is for {grid}: it costs more than the work"),
            label: format!("{grid} in all"),
            related: match facts.loops.first() {
                Some(around) => vec![(
                    function,
                    around.span,
                    "again in every iteration of this loop".to_owned(),
                )],
                None => Vec::new(),
            },
            help: Some("do the work in the launching thread".to_owned()),
        });
    }
    found
}

/// The thread may have launched another grid before, into the same stream, and the order of the two is not known to be nothing.
fn behind_another<'db>(db: &'db dyn Db, function: FunctionItem<'db>, index: usize) -> bool {
    let all = launches(db, function);
    let Some(facts) = all.get(index) else { return false };
    if facts.stream == Stream::FireAndForget {
        return false;
    }
    let known = order(db, function).get(index);
    let apart = |other: usize| {
        let others = known.map_or(&[][..], |known| &known.others);
        let found = others.iter().find(|(o, _)| *o as usize == other);
        found.is_some_and(|(_, dependence)| dependence.is_none())
    };
    let others = all.iter().enumerate().filter(|(other, _)| *other != index);
    let ordered = others.filter(|(other, o)| share_a_stream(&facts.stream, &o.stream) && !apart(*other));
    let mut before: Vec<ExprId> = ordered.map(|(_, o)| o.expr).collect();
    // What a function launches that is called isn't looked into.
    let calls = &direct(db, function).calls;
    let launching = calls
        .iter()
        .filter(|call| call.candidates.iter().any(|f| !summary(db, *f).launches.is_empty()));
    before.extend(launching.map(|call| call.expr));
    if before.is_empty() {
        return false;
    }
    let flow = Flow::of(&body(db, function));
    before.iter().any(|expr| comes_before(&flow, *expr, facts.expr))
}

/// A grid in the one may have to wait for one in the other. A stream that device code creates waits for no other.
fn share_a_stream(a: &Stream, b: &Stream) -> bool {
    match (a, b) {
        (Stream::FireAndForget | Stream::TailLaunch, _) | (_, Stream::FireAndForget | Stream::TailLaunch) => false,
        (Stream::Other, _) | (_, Stream::Other) => true,
        _ => a == b,
    }
}

/// The thread may come to `to` after it has been at `from`.
fn comes_before(flow: &Flow, from: ExprId, to: ExprId) -> bool {
    let (Some(start), Some(end)) = (flow.expr_block.get(&from), flow.expr_block.get(&to)) else {
        return true;
    };
    let at = |e: ExprId| flow.block(*start).steps.iter().position(|step| *step == Step::Expr(e));
    if start == end && at(from) < at(to) {
        return true;
    }
    let mut seen = vec![false; flow.blocks.len()];
    let mut todo: Vec<BlockId> = flow.block(*start).targets().to_vec();
    while let Some(block) = todo.pop() {
        if block == *end {
            return true;
        }
        if !std::mem::replace(&mut seen[block.index()], true) {
            todo.extend(flow.block(block).targets());
        }
    }
    false
}
