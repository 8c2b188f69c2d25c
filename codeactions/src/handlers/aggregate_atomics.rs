//! `aggregate-atomics`

use gridfuse_analysis::base::place::FileRange;

use crate::api::refusal::Ineligible;
use crate::api::refusal::refuse;
use crate::api::rewrite::{Axis, Family, Launches, Layer, Measured, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::facts::combinable::{NAMESPACE, refuse_order, uncombined, worker};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "aggregate-atomics",
    title: "Combine the child's atomics within a warp",
    doc: DOC,
    options: &[],
    target: Target::Launch(Launches::Any),
    family: Family::Atomics,
    measured: Measured::BehindThreshold,
    tunes: Some(Axis::Combination),
    unattended: false,
    undo: Undo::Layer(Layer::Combined),
    run: apply,
};

const DOC: &str = r#"Combines the atomic operations within a warp: the threads that are at the same atomic operation of the child together combine
their values first, and one of them does it for all. Where every thread of a child grid adds to the same place, as in the sum over the
neighbours of one vertex, the operations run one at a time. With this rewrite a warp does one of them instead of 32.

The result is the same to the last bit. Integers are combined (by the instruction `redux.sync`, on GPUs that have it). Floating-point
numbers, whose sum depends on the order, are added as before. Threads whose places differ do their operations as before, too, so the
child's code stays right wherever it runs.

## Needs
- `atomicAdd`, `atomicSub`, `atomicMin`, `atomicMax`, `atomicAnd`, `atomicOr` or `atomicXor` as a statement, so that nobody uses the old
  value. The child's arguments alone decide the place, and the operation isn't left to one thread of a block (`if (threadIdx.x == 0)`).
- No fence (`__threadfence()`), nor anything that may be one: it would be the fence of another thread than the one that does the operation.

## Before
```cuda
__global__ void check(const int* col, const int* weight, int* too_light, int v, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && weight[begin + i] < col[begin + i]) atomicAdd(&too_light[v], 1);
}

__global__ void verify(const int* row, const int* col, const int* weight, int* too_light, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) check<<<(count + 127) / 128, 128>>>(col, weight, too_light, v, begin, count);
}
```

## After
```cuda
#include "gridfuse.cuh"

__global__ void check(const int* col, const int* weight, int* too_light, int v, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && weight[begin + i] < col[begin + i]) gridfuse::warp_aggregated::atomicAdd(&too_light[v], 1);
}

__global__ void verify(const int* row, const int* col, const int* weight, int* too_light, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) check<<<(count + 127) / 128, 128>>>(col, weight, too_light, v, begin, count);
}
```

## Source
Adinets: CUDA Pro Tip: Optimized Filtering with Warp-Aggregated Atomics, NVIDIA 2014; for places that are the same for a whole grid.
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let db = ctx.db;
    let mut draft = Draft::begin(ctx)?;
    draft.site.refuse_common(&mut draft.refusals);
    let child = draft.site.child(&mut draft.refusals);
    let header = draft.header();
    let (child, header) = draft.settle(child.zip(header))?;
    let Draft {
        site, edit, refusals, ..
    } = &mut draft;
    let worker = worker(db, child);
    let found = uncombined(db, worker);
    if found.is_empty() {
        let name = worker.signature(db).name_span.shift(worker.start(db));
        return Err(refuse(
            format!(
                "`{}` has no atomic statement whose address depends on its arguments alone",
                site.child_name()
            ),
            Some(FileRange {
                file: worker.file(db),
                range: name,
            }),
        ));
    }
    refuse_order(db, worker, site.child_name(), refusals);
    refusals.check()?;
    header.include_in(db, edit, worker.file(db));
    for start in found {
        edit.insert(worker.file(db), start + worker.start(db), NAMESPACE.to_owned());
    }
    draft.finish()
}
