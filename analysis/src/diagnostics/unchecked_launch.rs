//! `unchecked-launch`

use std::collections::HashSet;

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::effects::direct;
use crate::facts::launch::{Bound, Launchers, launch_counts, launches, pending_launch_limit};
use crate::hir::body;
use crate::hir::items::FunctionItem;
use crate::hir::visible::visible_names;

pub(super) const KIND: Kind = Kind {
    id: "unchecked-launch",
    severity: Severity::Info,
    doc: DOC,
    rewrites: &["check-launch-error"],
    find: unchecked_launch,
};

const DOC: &str = r#"A device-side launch isn't checked for errors.

## What it does
Finds kernels and device functions that never call `cudaGetLastError()` or `cudaPeekAtLastError()`, not even in a function that they call,
although a block may make more than a few launches (many threads launch, or a loop does). If the whole grid stays below the limit of
pending launches, they are left alone. There is one finding for each function.

It is silent at a launch at which `tiny-child-grid`, `serialized-launches`, `launch-in-loop` or `pending-launch-limit` is reported: once
these are mended, there are fewer launches to check, or none.

## Why is this bad
A device-side launch fails when the pool of pending launches is full (2048 unless the host raises
`cudaLimitDevRuntimePendingLaunchCount`), and when its configuration is invalid. The host does not learn of it: the work is just
not done. Only the launching thread sees the error.

## Example
```cuda
__global__ void child(int* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = n; }

__global__ void parent(int* out, const int* counts) {
    int n = counts[threadIdx.x];
    if (n > 0) child<<<1, 64, 0, cudaStreamFireAndForget>>>(out, n);
}
```

## Use instead
```cuda
__global__ void child(int* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = n; }

__global__ void parent(int* out, const int* counts, int* failed) {
    int n = counts[threadIdx.x];
    if (n > 0) {
        child<<<1, 64, 0, cudaStreamFireAndForget>>>(out, n);
        if (cudaGetLastError() != cudaSuccess) *failed = 1;
    }
}
```
"#;

/// Launches by one block that are few.
const FEW: u64 = 16;

/// More launches than this aren't shown.
const MAX_LAUNCHES: usize = 5;

const ASKS: [&str; 2] = ["cudaGetLastError", "cudaPeekAtLastError"];

fn unchecked_launch<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    // In a branch of an `#if` that isn't shown there may be fewer launchers, and a check.
    if body(db, function).cut {
        return Vec::new();
    }
    let all = launches(db, function).iter().zip(launch_counts(db, function));
    let within = |bound: &Bound, limit: u64| matches!(bound, Bound::Constant(n) if *n <= limit);
    let limit = pending_launch_limit(db, function.file(db));
    let many = all.filter(|(facts, count)| {
        let few =
            within(&count.per_block.at_most, FEW) || limit.is_some_and(|limit| within(&count.per_grid.at_most, limit));
        facts.launchers != Launchers::Host && !facts.in_lambda && !few
    });
    let many: Vec<_> = many.map(|(facts, _)| facts).collect();
    let Some((facts, rest)) = many.split_first() else {
        return Vec::new();
    };
    if asks(db, function) {
        return Vec::new();
    }
    let others = match rest.len() {
        0 => String::new(),
        1 => " (nor is the other launch in this function)".to_owned(),
        n => format!(" (nor are the other {n} launches in this function)"),
    };
    let unchecked = rest.iter().take(MAX_LAUNCHES).map(|l| (l.span, "nor is this one"));
    let repeated = facts
        .loops
        .first()
        .map(|l| (l.span, "again in every iteration of this loop"));
    let related = repeated.into_iter().chain(unchecked);
    let related = related.map(|(span, text)| (function, span, text.to_owned())).collect();
    let kernel = facts.kernel_name.as_deref().unwrap_or("the child");
    vec![Finding {
        span: facts.span,
        message: format!("this launch of `{kernel}` isn't checked{others}: its failure goes unnoticed"),
        label: "may fail unnoticed".to_owned(),
        related,
        help: Some("check `cudaGetLastError()` after the launch".to_owned()),
    }]
}

/// The function, something that it calls, or a macro that it uses looks at errors.
fn asks<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let mut seen = HashSet::from([function]);
    let mut todo = vec![function];
    while let Some(next) = todo.pop() {
        let text = next.text(db);
        if ASKS.iter().any(|name| text.contains(name)) {
            return true;
        }
        let macros = &visible_names(db, next.file(db)).macros;
        let expands = |word: &str| {
            let item = macros.get(word);
            item.is_some_and(|item| ASKS.iter().any(|name| item.body.contains(name)))
        };
        if crate::base::words::words(&text).any(expands) {
            return true;
        }
        let direct = direct(db, next);
        // A function or macro that isn't known may well be there for this.
        let checks = |name: &str| {
            let name = name.to_ascii_lowercase();
            name.contains("check") || name.contains("err")
        };
        if direct.facts.unknown_calls.iter().any(|(name, _)| checks(name)) {
            return true;
        }
        let callees = direct.calls.iter().flat_map(|call| &call.candidates);
        todo.extend(callees.copied().filter(|f| seen.insert(*f)));
    }
    false
}
