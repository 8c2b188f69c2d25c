//! `single-launcher-call`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::effects::summary;
use crate::facts::launch::{
    Bound, Child, LaunchId, Launchers, Stream, in_recursion, launch_counts, launches, who_launches,
};
use crate::hir::items::FunctionItem;

pub(super) const KIND: Kind = Kind {
    id: "single-launcher-call",
    severity: Severity::Info,
    doc: DOC,
    rewrites: &[],
    find: single_launcher_call,
};

const DOC: &str = r#"One thread launches a grid of one thread: a call would do.

## What it does
Finds the first launch in a function if one thread of the grid executes it, once, and the child grid is a single thread that launches
nothing itself. Launches into the tail stream and those after other launches are left alone: they determine when the child runs.

## Why is this bad
A launch costs microseconds, a call nanoseconds, and there is no parallelism to gain. The two run side by side only where the parent has
much left to do and the child takes long.

## Example
```cuda
__global__ void publish(int* out, int n) { *out = n; }

__global__ void parent(int* out, const int* counts) {
    if (blockIdx.x == 0 && threadIdx.x == 0) publish<<<1, 1>>>(out, counts[0]);
}
```

## Use instead
```cuda
__device__ void publish(int* out, int n) { *out = n; }

__global__ void parent(int* out, const int* counts) {
    if (blockIdx.x == 0 && threadIdx.x == 0) publish(out, counts[0]);
}
```
"#;

fn single_launcher_call<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let id = LaunchId { function, index: 0 };
    let (Some(facts), Some(count)) = (launches(db, function).first(), launch_counts(db, function).first()) else {
        return Vec::new();
    };
    let Child::Kernel(child) = facts.child else {
        return Vec::new();
    };
    let summary = summary(db, child);
    let once = facts.loops.is_empty() && !facts.in_lambda && who_launches(db, id) == Launchers::OnePerGrid;
    let simple = summary.launches.is_empty() && summary.unknown_calls.is_empty() && !in_recursion(db, id);
    if !once || !simple || facts.stream == Stream::TailLaunch || count.child_threads != Bound::Constant(1) {
        return Vec::new();
    }
    let kernel = facts.kernel_name.as_deref().unwrap_or("the child");
    vec![Finding {
        span: facts.span,
        message: format!(
            "one thread launches `{kernel}` for one thread: a device function call costs a thousandth of a launch"
        ),
        label: "one thread for one thread".to_owned(),
        related: Vec::new(),
        help: Some("call a device function with the child's body".to_owned()),
    }]
}
