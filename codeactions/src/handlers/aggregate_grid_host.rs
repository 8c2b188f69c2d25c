//! `aggregate-grid-host`

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Axis, Family, Launches, Layer, Measured, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::transforms::aggregate::{Granularity, aggregate};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "aggregate-grid-host",
    title: "Collect per grid; launch from the host",
    doc: DOC,
    options: &[],
    target: Target::Launch(Launches::Any),
    family: Family::Aggregation,
    measured: Measured::BehindThreshold,
    tunes: Some(Axis::Granularity(5)),
    unattended: false,
    undo: Undo::Layer(Layer::Collected("PerGridFromHost")),
    run: apply,
};

const DOC: &str = r#"Collects all child grids that a grid of the parent kernel launches, as [aggregate-grid](aggregate-grid.md) does, and lets the host
launch them as one grid when the parent is done. The device launches nothing any more.

The host's launch gets an arena that is a launchpad, too: `gridfuse::launchpad_for` lists the kernels. At the end of that statement
the host waits until the parent is done, reads what its last thread has written down (how many blocks of which kernel, with which
arguments), and launches that into the same stream. If children collect launches, too (a kernel that launches its parent or itself again),
the host waits for them as well, and goes on until no launch is left.

What is launched next in the stream comes after the children, as before. As with `aggregate-grid`, the device launches what finds no room
in the arena and what is large by itself. It also launches everything in a stream that is being captured into a graph, as the host takes no
part in that. So no launch is lost. An error of a launch by the host is left for `cudaGetLastError`.

To change the granularity, change one word, here too; `launchpad_for` then waits for nothing and can go.

## Needs
- What `aggregate-grid` needs.
- A launch of the parent that is a statement of its own, in a place where the children are declared.
- Template arguments of the children that the host can write: none that depend on the parent's.

It assumes that the host may wait at its launch of the parent: nothing that comes before in the stream waits for what the host does later.
It also assumes that no other thread of the host launches into the stream meanwhile: that launch would come between parent and children. In
the NULL stream of the parent it assumes what `aggregate-grid` does.

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

// The arguments of expand that differ within a grid of visit.
struct expand_args { int begin; int count; };

// Runs the launches of expand by a grid of visit; `gridfuse revert` takes it back.
__global__ void expand_aggregated(gridfuse::Batch<expand_args> batch, const int* col, int* dist,
                                  int level) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const expand_args& args) {
        expand_body(blockIdx, gridDim, blockDim, col, dist, level, args.begin, args.count);
    });
}

__global__ void visit(const int* row, const int* col, int* dist, int level, int n,
                      gridfuse::Arena arena) {
    gridfuse::Aggregator<gridfuse::PerGridFromHost, expand_aggregated> expands(
        arena, col, dist, level);
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || dist[v] != level) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expands.launch((count + 127) / 128, 128, {begin, count});
}

void run(const int* row, const int* col, int* dist, int n, cudaStream_t stream) {
    for (int level = 0; level < 10; ++level)
        visit<<<(n + 255) / 256, 256, 0, stream>>>(row, col, dist, level, n,
            gridfuse::launchpad_for<expand_aggregated>((n + 255) / 256, 256, stream));
}
```

## Source
El Hajj: Techniques for Optimizing Dynamic Parallelism on Graphics Processing Units, dissertation 2018, §3.1 (aggregation),
§3.2 (launching from the host) and §3.4.1 (scalarisation).
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    aggregate(Draft::begin(ctx)?, Granularity::GridFromHost)
}
