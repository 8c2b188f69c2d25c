//! `partial-warp`

use super::origin::origins;
use crate::base::db::Db;
use crate::base::limits::WARP;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::launch::{Launchers, launches};
use crate::hir::body;
use crate::hir::items::FunctionItem;

pub(super) const KIND: Kind = Kind {
    id: "partial-warp",
    severity: Severity::Info,
    doc: DOC,
    rewrites: &[],
    find: partial_warp,
};

const DOC: &str = r#"A child grid's block size is not a multiple of the warp size.

## What it does
Finds device-side launches of several blocks, or of an unknown number of blocks, whose constant block size is not a multiple of 32.

## Why is this bad
The hardware runs whole warps of 32 threads. In every block the lanes that are left over do nothing, but take registers and time.

## Example
```cuda
__global__ void child(float* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] *= 2.0f;
}

__global__ void parent(float* values, int n) {
    if (threadIdx.x == 0) child<<<(n + 99) / 100, 100>>>(values, n);
}
```

## Use instead
```cuda
__global__ void child(float* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] *= 2.0f;
}

__global__ void parent(float* values, int n) {
    if (threadIdx.x == 0) child<<<(n + 127) / 128, 128>>>(values, n);
}
```
"#;

fn partial_warp<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let device_side = launches(db, function).iter().filter(|l| l.launchers != Launchers::Host);
    device_side
        .filter_map(|facts| {
            let [x, y, z] = facts.block.constant?;
            let threads = x.saturating_mul(y).saturating_mul(z);
            let rest = threads % WARP;
            // A grid of one block is as small as its work; whether it's too small is another matter.
            if rest == 0 || threads > 1024 || facts.grid.constant == Some([1, 1, 1]) {
                return None;
            }
            let idle = WARP - rest;
            let blocks = if threads == 1 {
                "a single thread".to_owned()
            } else {
                format!("{threads} threads")
            };
            Some(Finding {
                span: facts.block.operand.span,
                message: format!("blocks of {blocks} leave {idle} of 32 lanes of their last warp idle"),
                label: "not a multiple of 32".to_owned(),
                related: origins(function, &body(db, function), facts.block.operand.expr),
                help: None,
            })
        })
        .collect()
}
