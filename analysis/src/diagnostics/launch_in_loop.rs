//! `launch-in-loop`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::launch::{LaunchId, Launchers, Repeats, launches, who_launches};
use crate::hir::items::FunctionItem;
use crate::hir::{StmtId, body};

pub(super) const KIND: Kind = Kind {
    id: "launch-in-loop",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &["optimize", "aggregate-grid", "aggregate-block"],
    find: launch_in_loop,
};

const DOC: &str = r#"A device-side launch in a loop.

## What it does
Finds kernel launches that a thread of a kernel executes repeatedly. A loop that is left right after the launch (`break`, `return`) launches
once: there is nothing to find.

## Why is this bad
Each launch costs microseconds in a unit that handles launches one at a time. It also takes a slot in the pool of pending launches (2048
unless the host raises `cudaLimitDevRuntimePendingLaunchCount`). When the pool is full, further launches fail, and the host sees nothing
but wrong results.

## Example
```cuda
__global__ void child(float* row, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < columns) row[i] *= 2.0f;
}

__global__ void parent(float* matrix, int rows, int columns) {
    for (int r = threadIdx.x; r < rows; r += blockDim.x)
        child<<<(columns + 127) / 128, 128>>>(matrix + r * columns, columns);
}
```

## Use instead
One launch for all iterations, here with a second grid dimension; or the rewrites `aggregate-grid` and `aggregate-block`, which collect the
launches of a grid or a block into one.

```cuda
__global__ void child(float* matrix, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < columns) matrix[blockIdx.y * columns + i] *= 2.0f;
}

__global__ void parent(float* matrix, int rows, int columns) {
    if (threadIdx.x == 0)
        child<<<dim3((columns + 127) / 128, rows), 128>>>(matrix, columns);
}
```
"#;

fn launch_in_loop<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let mut all = launches(db, function).iter();
    if !all.any(|facts| facts.launchers != Launchers::Host && !facts.loops.is_empty()) {
        return Vec::new();
    }
    let body = body(db, function);
    let repeats = Repeats::of(&body);
    launches(db, function)
        .iter()
        .enumerate()
        .filter(|(_, facts)| facts.launchers != Launchers::Host)
        .filter_map(|(index, facts)| {
            let around: Vec<StmtId> = facts.loops.iter().map(|around| around.stmt).collect();
            let innermost = *repeats.among(facts.expr, &around).first()?;
            let innermost = facts.loops.iter().find(|around| around.stmt == innermost)?;
            let kernel = facts.kernel_name.as_deref().unwrap_or("a kernel");
            let index = index as u32;
            let each = match who_launches(db, LaunchId { function, index }) {
                Launchers::ManyThreads => " and thread",
                Launchers::OnePerWarp => " and warp",
                Launchers::OnePerBlock => " and block",
                Launchers::OnePerGrid | Launchers::Host => "",
            };
            Some(Finding {
                span: facts.span,
                message: format!("`{kernel}` is launched in a loop: one launch per iteration{each}"),
                label: "launched again in every iteration".to_owned(),
                related: vec![(function, innermost.span, "this loop".to_owned())],
                help: None,
            })
        })
        .collect()
}
