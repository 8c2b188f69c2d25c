//! `serialize`

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Axis, Family, Launches, Layer, Measured, OptionSpec, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::transforms::in_launcher::{Grids, run_in_launcher};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "serialize",
    title: "Run all grids as a loop",
    doc: DOC,
    options: &[OptionSpec {
        name: "local-memory",
        default: "4096",
        doc: "The most bytes of local memory that a child with barriers may take in one thread.",
    }],
    target: Target::Launch(Launches::Any),
    family: Family::InLauncher,
    measured: Measured::Alone,
    tunes: Some(Axis::Granularity(7)),
    unattended: false,
    undo: Undo::Layer(Layer::Serialized),
    run: apply,
};

const DOC: &str = r#"Runs all child grids serially, in the thread that would have launched them: what [threshold](threshold.md) does with small
ones, without a threshold. No launch is left. A kernel without a launch in its code starts sooner, whether it would have launched something
or not.

Use it for child grids that are always small: searching a road network, where no vertex has more than a few edges, takes the same time as
with a loop written by hand. Where one of them is large, one thread does all of it, and everybody waits for that. Which it is depends on
the data; `gridfuse measure` tells.

The grids of a thread keep their order. Of two kernels that a thread launches in order, where the second one reads what the first one
has written, the first one fits. Once it has been rewritten, the second one fits as well, and can be collected instead.

The threads of the child may all end with atomic operations on the same place (`atomicAdd(&sum[v], x)`, `atomicMin`, `atomicMax`). Then the
launching thread collects their values in a register, and does one operation for the whole grid (`gridfuse::SumAt`, `MinimumAt`,
`MaximumAt`). That goes for integers: floating-point numbers are added one by one.

## Needs
- What `threshold` needs. A child with barriers has dynamic shared memory of a constant size, and a constant block, unless its threads keep
  nothing from one barrier to the next.

## Before
```cuda
__global__ void expand(const int* col, int* dist, int level, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicMin(&dist[col[begin + i]], level + 1);
}

__global__ void visit(const int* row, const int* col, int* dist, int level, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || dist[v] != level) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expand<<<(count + 127) / 128, 128>>>(col, dist, level, begin, count);
}
```

## After
```cuda
#include "gridfuse.cuh"

// The body of expand, for any thread of any grid; `gridfuse revert` takes it back.
__device__ __forceinline__ void expand_thread(uint3 threadIdx, uint3 blockIdx, dim3 gridDim,
                                              dim3 blockDim, const int* col, int* dist, int level,
                                              int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicMin(&dist[col[begin + i]], level + 1);
}

// What a plain launch of expand runs; `gridfuse revert` takes it back.
__global__ void expand(const int* col, int* dist, int level, int begin, int count) {
    expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, dist, level, begin, count);
}

// Runs a grid of expand in one thread; `gridfuse revert` takes it back.
__device__ inline void expand_serial(dim3 grid, dim3 block, const int* col, int* dist, int level,
                                     int begin, int count) {
    gridfuse::for_each_thread(grid, block, count,
                              [&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
        expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, dist, level, begin, count);
    });
}

__global__ void visit(const int* row, const int* col, int* dist, int level, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || dist[v] != level) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expand_serial((count + 127) / 128, 128, col, dist, level, begin, count);
}
```

## Source
Chen and Shen: Free Launch: Optimizing GPU Dynamic Kernel Launches through Thread Reuse, MICRO 2015, where a thread that would launch does the
work itself. Barriers as in [threshold](threshold.md).
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let local_memory = ctx.positive("local-memory")?;
    run_in_launcher(Draft::begin(ctx)?, Grids::All, local_memory)
}
