//! `serialized-launches`

use std::collections::HashSet;

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::launch::{
    LaunchId, Launchers, Stream, depends_on_thread_index, launches, statement_places, who_launches,
};
use crate::facts::uniformity::{Level, calls_of, only_known_calls, uniformity};
use crate::hir::items::FunctionItem;
use crate::hir::{ExprKind, body};

pub(super) const KIND: Kind = Kind {
    id: "serialized-launches",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &["optimize", "aggregate-grid", "aggregate-block", "fire-and-forget"],
    find: serialized_launches,
};

const DOC: &str = r#"The child grids of one block run one at a time: its threads launch into the same (NULL) stream.

## What it does
Finds launches into the NULL stream (no stream given) that several threads of a block may execute, typically under a divergent condition:
those of kernels, and those of device functions of which all calls are in sight.
It is silent at a launch at which `tiny-child-grid` is reported: without the launch, nothing is left to serialize.

## Why is this bad
All threads of a block share one NULL stream, so their child grids run one at a time, however small they are. On an H200, a
breadth-first search that launches this way takes 30 to 150 times as long as one that launches once per block.

## Example
```cuda
__global__ void expand(const int* neighbours, int* distance, int begin, int count, int level) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicMin(&distance[neighbours[begin + i]], level);
}

__global__ void visit(const int* row, const int* neighbours, int* distance, int n, int level) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || distance[v] != level - 1) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expand<<<(count + 127) / 128, 128>>>(neighbours, distance, begin, count, level);
}
```

## Use instead
If the children don't depend on each other's order, say so (`fire-and-forget`), run small ones in the launching thread
(`threshold`), or collect the launches of a grid or a block into one (`aggregate-grid`, `aggregate-block`: these help most).

```cuda
__global__ void expand(const int* neighbours, int* distance, int begin, int count, int level) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicMin(&distance[neighbours[begin + i]], level);
}

__global__ void visit(const int* row, const int* neighbours, int* distance, int n, int level) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || distance[v] != level - 1) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0)
        expand<<<(count + 127) / 128, 128, 0, cudaStreamFireAndForget>>>(neighbours, distance, begin, count, level);
}
```
"#;

/// Whether the threads of a block that call a device function, directly or not, call it under conditions that differ, or with arguments that
/// do. Each function is looked at once, as callers may share theirs.
fn differing_threads_call<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let (mut seen, mut todo) = (HashSet::from([function]), vec![function]);
    while let Some(called) = todo.pop() {
        for call in calls_of(db, called) {
            let (body, places) = (body(db, call.caller), statement_places(db, call.caller));
            let divergence = places
                .around(call.expr)
                .find_map(|stmt| uniformity(db, call.caller).divergence.get(&stmt).map(|u| u.level));
            let differs = match &body.expr(call.expr).kind {
                ExprKind::Call { args, .. } => args.iter().any(|arg| depends_on_thread_index(&body, *arg)),
                _ => false,
            };
            if differs || divergence.is_some_and(|level| level > Level::Block) {
                return true;
            }
            if !call.caller.signature(db).kernel && seen.insert(call.caller) {
                todo.push(call.caller);
            }
        }
    }
    false
}

fn serialized_launches<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let mut found = Vec::new();
    let all = launches(db, function);
    // Who calls the many functions that launch nothing isn't asked.
    if all.is_empty() {
        return found;
    }
    // A device function may be called by one thread only: its callers have to be known.
    let kernel = function.signature(db).kernel;
    if !kernel && (calls_of(db, function).is_empty() || !only_known_calls(db, function)) {
        return found;
    }
    let body = body(db, function);
    // Who launches may be said in a branch of an `#if` that isn't shown.
    if body.cut {
        return found;
    }
    for (index, facts) in all.iter().enumerate() {
        let who = who_launches(
            db,
            LaunchId {
                function,
                index: index as u32,
            },
        );
        let several = matches!(who, Launchers::ManyThreads | Launchers::OnePerWarp);
        // Without any divergence every thread launches the same: more often a kernel meant for a single thread.
        let diverges = facts.divergence.level > Level::Block
            || facts
                .args
                .iter()
                .chain([&facts.grid.operand])
                .any(|o| depends_on_thread_index(&body, o.expr))
            || !kernel && differing_threads_call(db, function);
        if facts.stream != Stream::Null || !several || !diverges || facts.in_lambda {
            continue;
        }
        let kernel = facts.kernel_name.as_deref().unwrap_or("a kernel");
        let launchers = match who {
            Launchers::OnePerWarp => "all warps",
            _ => "all threads",
        };
        let related = facts
            .divergence
            .why
            .iter()
            .map(|cause| (function, cause.span, cause.text.clone()))
            .collect();
        found.push(Finding {
            span: facts.span,
            message: format!(
                "child grids of `{kernel}` run one at a time: {launchers} of a block launch into the same (NULL) stream"
            ),
            label: "serialized with the other launches of the block".to_owned(),
            related,
            help: None,
        });
    }
    found
}
