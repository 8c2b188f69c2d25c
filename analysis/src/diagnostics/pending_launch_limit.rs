//! `pending-launch-limit`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::launch::{Launchers, launch_counts, launches, pending_launch_limit as limit};
use crate::hir::items::FunctionItem;

pub(super) const KIND: Kind = Kind {
    id: "pending-launch-limit",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &["optimize", "aggregate-block", "threshold", "raise-pending-launch-limit"],
    find: pending_launch_limit,
};

const DOC: &str = r#"A grid launches more child grids than may be pending.

## What it does
Finds launch sites where one grid certainly makes more launches than the pool of pending launches has room for: 2048, or the limit that
the program (`cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, …)` with a constant) or `pending-launches` in `gridfuse.toml` sets.

## Why is this bad
When the pool is full, further launches fail or wait for a long time, depending on how fast the children run. The work of a failed launch
is not done, and the host does not learn of it.

## Example
```cuda
__global__ void child(float* row) { row[threadIdx.x] *= 2.0f; }

__global__ void parent(float* matrix) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    child<<<1, 64, 0, cudaStreamFireAndForget>>>(matrix + 64 * r);
}

void run(float* matrix) { parent<<<64, 128>>>(matrix); }
```

## Use instead
One launch for many rows, or the rewrite `aggregate-block`, which collects the launches of a block into one. Raising the limit helps as
well, at the price of memory.

```cuda
__global__ void child(float* matrix) { matrix[64 * blockIdx.x + threadIdx.x] *= 2.0f; }

__global__ void parent(float* matrix) {
    if (threadIdx.x == 0) child<<<blockDim.x, 64>>>(matrix + 64 * blockIdx.x * blockDim.x);
}

void run(float* matrix) { parent<<<64, 128>>>(matrix); }
```
"#;

fn pending_launch_limit<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let all = launches(db, function);
    if all.iter().all(|l| l.launchers == Launchers::Host) {
        return Vec::new();
    }
    let Some(limit) = limit(db, function.file(db)) else {
        return Vec::new();
    };
    let counted = all.iter().zip(launch_counts(db, function));
    counted
        .filter(|(facts, count)| facts.launchers != Launchers::Host && count.per_grid.at_least > limit)
        .map(|(facts, count)| {
            let kernel = facts.kernel_name.as_deref().unwrap_or("the child");
            Finding {
                span: facts.span,
                message: format!(
                    "one grid launches `{kernel}` at least {} times, and {limit} launches may be pending",
                    count.per_grid.at_least
                ),
                label: "more launches than may be pending".to_owned(),
                related: facts
                    .loops
                    .iter()
                    .map(|l| (function, l.span, "this loop".to_owned()))
                    .collect(),
                help: Some("launch fewer, larger grids, or raise `cudaLimitDevRuntimePendingLaunchCount`".to_owned()),
            }
        })
        .collect()
}
