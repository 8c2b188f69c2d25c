//! `oversized-block`

use super::origin::origins;
use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::launch::{Launchers, launches};
use crate::hir::body;
use crate::hir::items::FunctionItem;

pub(super) const KIND: Kind = Kind {
    id: "oversized-block",
    severity: Severity::Error,
    doc: DOC,
    rewrites: &[],
    find: oversized_block,
};

/// The largest block that any GPU takes: in all, and in each dimension.
const LIMIT: u64 = 1024;
const LIMITS: [u64; 3] = [1024, 1024, 64];

const DOC: &str = r#"A child grid's blocks have more threads than any GPU takes, or none.

## What it does
Finds device-side launches with a constant block size of more than 1024 threads (64 in the z dimension), or of 0.

## Why is this bad
The launch fails. Unless the launching thread calls `cudaGetLastError()`, you only see a wrong result.

## Example
```cuda
__global__ void child(float* out) { out[threadIdx.y * 64 + threadIdx.x] = 0.0f; }

__global__ void parent(float* out) {
    if (threadIdx.x == 0) child<<<1, dim3(64, 64)>>>(out);
}
```

## Use instead
More blocks of at most 1024 threads.

```cuda
__global__ void child(float* out) { out[(blockIdx.x * 16 + threadIdx.y) * 64 + threadIdx.x] = 0.0f; }

__global__ void parent(float* out) {
    if (threadIdx.x == 0) child<<<4, dim3(64, 16)>>>(out);
}
```
"#;

fn oversized_block<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let device_side = launches(db, function).iter().filter(|l| l.launchers != Launchers::Host);
    device_side
        .filter_map(|facts| {
            let size = facts.block.constant?;
            let [x, y, z] = size;
            let threads = x.saturating_mul(y).saturating_mul(z);
            let dimension = size.iter().zip(LIMITS).any(|(n, limit)| *n > limit);
            if threads > 0 && threads <= LIMIT && !dimension {
                return None;
            }
            let limit = if threads > LIMIT || threads == 0 {
                "1 to 1024 threads"
            } else {
                "at most 64 threads in the z dimension"
            };
            Some(Finding {
                span: facts.block.operand.span,
                message: format!("the launch fails: its blocks have {threads} threads, and a block has {limit}"),
                label: format!("{x} x {y} x {z} threads"),
                related: origins(function, &body(db, function), facts.block.operand.expr),
                help: None,
            })
        })
        .collect()
}
