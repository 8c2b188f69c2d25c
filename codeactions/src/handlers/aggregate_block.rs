//! `aggregate-block`

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Axis, Family, Launches, Layer, Measured, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::transforms::aggregate::{Granularity, aggregate};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "aggregate-block",
    title: "Collect launches per block",
    doc: DOC,
    options: &[],
    target: Target::Launch(Launches::Any),
    family: Family::Aggregation,
    measured: Measured::BehindThreshold,
    tunes: Some(Axis::Granularity(2)),
    unattended: false,
    undo: Undo::Layer(Layer::Collected("PerBlock")),
    run: apply,
};

const DOC: &str = r#"Collects the child grids that the threads of a block launch, and launches them as one grid when the last thread of the
block leaves the kernel.

The child's body becomes a device function that can run as any block of any grid. The aggregated kernel finds out, for each of
its blocks, which launch it belongs to. Arguments that are the same for a whole block are passed once; the others are written
to an arena that the host passes to the parent kernel. Launches may come from any control flow: loops, divergent branches,
before an early return. All launches of the parent kernel are collected, those of each child into a grid of their own. A launch
that doesn't fit into the arena gets a grid to itself.

Launches in device functions that the kernel calls are collected as well: the functions get the aggregator as a parameter. A child that
launches its parent or itself again collects its own launches, too, and so does a kernel that launches a parent from the device: all of
that changes at once. A child that launches other kernels still launches them; apply this rewrite to its launch then. The host's arena has
`gridfuse::kNestedBytes` of memory for what children collect. That memory is used again as soon as the launches in it have begun.

## Needs
- A parent kernel whose launches are all in sight: by the host, with a launch configuration that can be written twice, or by kernels that
  collect their launches, too.
- The NULL stream, `cudaStreamFireAndForget`, or a stream that each thread creates for this launch alone.
- A child without inline assembly or waiting; arguments that are plain values. Functions that it calls and that read `blockIdx` and the
  like get copies that take them as parameters.
- Blocks of the child that are one-dimensional, or of the same size for all launches of a block. Blocks of
  other shapes run in one dimension, where the child and what it calls take `threadIdx` as a parameter and don't launch in turn.
- Enough registers for a thread of the parent to launch: 32, and 48 if the child launches, too. A parent whose blocks have more than 512
  threads gets `__launch_bounds__`, so that it doesn't take too many; so does the aggregated kernel of a child whose blocks have more than
  256 threads. Compiled for debugging (`-G`), a launching thread takes two more registers for each word of the child's arguments. Where
  there may not be so many, the rewrite assumes that the program isn't compiled for debugging.

In the NULL stream it assumes that the grids don't rely on each other's order, unless only one thread of a block launches, once.
Where a thread launches two kernels, and the second reads what the first has written, their order is kept: all grids of the first are done
before those of the second begin.

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

void run(const int* row, const int* col, int* dist, int n, cudaStream_t stream) {
    for (int level = 0; level < 10; ++level)
        visit<<<(n + 255) / 256, 256, 0, stream>>>(row, col, dist, level, n);
}
```

## After
```cuda
#include "gridfuse.cuh"

// The body of expand, for any block of any grid; `gridfuse revert` takes it back.
__device__ __forceinline__ void expand_body(uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                                            const int* col, int* dist, int level, int begin,
                                            int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicMin(&dist[col[begin + i]], level + 1);
}

// What a plain launch of expand runs; `gridfuse revert` takes it back.
__global__ void expand(const int* col, int* dist, int level, int begin, int count) {
    expand_body(blockIdx, gridDim, blockDim, col, dist, level, begin, count);
}

// The arguments of expand that differ within a block of visit.
struct expand_args { int begin; int count; };

// Runs the launches of expand by a block of visit; `gridfuse revert` takes it back.
__global__ void expand_aggregated(gridfuse::Batch<expand_args> batch, const int* col, int* dist,
                                  int level) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const expand_args& args) {
        expand_body(blockIdx, gridDim, blockDim, col, dist, level, args.begin, args.count);
    });
}

__global__ void visit(const int* row, const int* col, int* dist, int level, int n,
                      gridfuse::Arena arena) {
    gridfuse::Aggregator<gridfuse::PerBlock, expand_aggregated> expands(arena, col, dist, level);
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || dist[v] != level) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expands.launch((count + 127) / 128, 128, {begin, count});
}

void run(const int* row, const int* col, int* dist, int n, cudaStream_t stream) {
    for (int level = 0; level < 10; ++level)
        visit<<<(n + 255) / 256, 256, 0, stream>>>(row, col, dist, level, n,
            gridfuse::arena_for((n + 255) / 256, 256, stream));
}
```

## Source
El Hajj: Techniques for Optimizing Dynamic Parallelism on Graphics Processing Units, dissertation 2018, §3.1 (aggregation) and
§3.4.1 (scalarisation); El Hajj et al.: KLAP, MICRO 2016.
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    aggregate(Draft::begin(ctx)?, Granularity::Block)
}
