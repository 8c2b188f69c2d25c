//! `aggregate-grid-stream`

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Axis, Family, Launches, Layer, Measured, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::transforms::aggregate::{Granularity, aggregate};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "aggregate-grid-stream",
    title: "Collect per grid; run right after the parent",
    doc: DOC,
    options: &[],
    target: Target::Launch(Launches::Any),
    family: Family::Aggregation,
    measured: Measured::BehindThreshold,
    tunes: Some(Axis::Granularity(6)),
    unattended: false,
    undo: Undo::Layer(Layer::Collected("PerGridInStream")),
    run: apply,
};

const DOC: &str = r#"Collects all child grids that a grid of the parent kernel launches, as [aggregate-grid](aggregate-grid.md) does, and runs them
in a grid that the host launches into the same stream, right after the parent. The device launches nothing, and nobody waits. With
[aggregate-grid-host](aggregate-grid-host.md) the host waits for the parent; here it doesn't. Nor do the threads of the parent wait for
each other to know which is the last one. A kernel without launches in its code starts sooner, and one that launches nothing pays nothing.

The host doesn't know what the parent will have collected. So it launches as many blocks of the child as the GPU can run at a time.
Each of them runs its share of the collected blocks, one at a time, and finds out for each which launch it belongs to. If nothing
was collected, they end at once.

Some children are dealt out by warps and not by blocks, and only the warps with something to do: a grid of 16 threads in a block of 128
takes one warp and not four. The threads of such a child have nothing to do with each other (no barrier, no shared memory, no exchange
within a warp). An argument of the launch says from which number on they do nothing (`if (i < count)`).

If the number of a thread's launches isn't known, as in a loop, the thread has room for some of them (`gridfuse::kNotKnown`). A launch that
finds no room runs in that thread, as with [serialize](serialize.md), and is counted (`gridfuse::direct_launches`).

`gridfuse::followed_by`, the last argument of the parent's launch, provides the memory and launches the grid at the end of that statement.
It gets the arguments that all launches share, which are the parent's; the others are written down. If the stream is being captured into a
graph, the graph gets both kernels.

## Needs
- What `aggregate-grid` needs, but for the registers.
- A child with a constant block size, without dynamic shared memory, that collects no launches itself. Launches with another block size
  have a kernel of their own that follows.
- Barriers of the child that all threads of a block reach, or none, as for [coarsen](coarsen.md).
- A known number of launches of each thread, 32 at most; or a child that can run in the launching thread, and whose threads don't work
  together.
- A launch of the parent by the host that is a statement of its own, in a place where the children are declared.
- Template arguments of the children that the host can write: none that depend on the parent's.

It assumes that no other thread of the host launches into the stream between the parent and what follows it. Where the launches of a thread
are counted, it also assumes memory for as many as all threads of the parent may have: 12 bytes and the arguments for each. If there is
less, and that isn't enough, the parent is stopped (`cudaErrorLaunchFailure`). In the NULL stream of the parent it assumes what
`aggregate-grid` does.

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

// The threads of a block of expand, for its launches and for what runs them.
constexpr int kExpandBlock = 128;

// The arguments of expand that differ within a grid of visit.
// threads(): how many threads of the grid have work.
struct expand_args { int begin; int count; __device__ int threads() const { return count; } };

// Runs the launches of expand by a grid of visit; `gridfuse revert` takes it back.
__global__ void expand_aggregated(gridfuse::StreamBatch<expand_args, kExpandBlock> batch,
                                  const int* col, int* dist, int level) {
    batch.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                              const expand_args& args) {
        expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, dist, level, args.begin,
                      args.count);
    });
}

__global__ void visit(const int* row, const int* col, int* dist, int level, int n,
                      gridfuse::StreamArena arena) {
    gridfuse::Aggregator<gridfuse::PerGridInStream, expand_aggregated> expands(arena);
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || dist[v] != level) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expands.launch((count + kExpandBlock - 1) / kExpandBlock, kExpandBlock,
                                  {begin, count});
}

void run(const int* row, const int* col, int* dist, int n, cudaStream_t stream) {
    for (int level = 0; level < 10; ++level)
        visit<<<(n + 255) / 256, 256, 0, stream>>>(row, col, dist, level, n,
            gridfuse::followed_by<expand_aggregated>((n + 255) / 256, 256, stream, col, dist,
                                                     level));
}
```

## Source
El Hajj: Techniques for Optimizing Dynamic Parallelism on Graphics Processing Units, dissertation 2018, §3.1 (aggregation) and
§3.4.1 (scalarisation). A kernel of constant size that runs what the one before it has written down: Gupta, Stuart and Owens: A Study
of Persistent Threads Style GPU Programming for GPGPU Workloads, InPar 2012.
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    aggregate(Draft::begin(ctx)?, Granularity::GridInStream)
}
