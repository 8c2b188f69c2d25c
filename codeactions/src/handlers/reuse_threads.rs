//! `reuse-threads`

use crate::api::refusal::Ineligible;
use crate::api::refusal::refuse;
use crate::api::rewrite::{Family, Launches, Layer, Measured, OptionSpec, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::transforms::aggregate::{Assignment, reuse_threads};
use crate::transforms::in_launcher::{Grids, run_in_launcher};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "reuse-threads",
    title: "Run child grids in the parent's threads",
    doc: DOC,
    options: &[OptionSpec {
        name: "assignment",
        default: "auto",
        doc: "Which threads run a child grid: `thread`, `warp`, `block` (those of the thread that launches it), `grid` (a warp small ones, a grid \
              right after the parent large ones), `size` (a warp small ones, the block large ones); `auto`: `grid` where that can be, else `size`.",
    }],
    target: Target::Launch(Launches::Any),
    family: Family::InLauncher,
    measured: Measured::Alone,
    tunes: None,
    unattended: false,
    undo: Undo::Layer(Layer::Reused),
    run: apply,
};

const DOC: &str = r#"Runs all child grids in threads that are there already: those of the parent kernel. No launch is left. The parent's body moves
to a function. When a thread returns from it, wherever that is, the thread helps with what its warp or its block has launched. No thread
waits for another one that never comes.

With `assignment=auto`, the kernel decides at run time which threads run what, by what its threads have launched:

- Small grids run in the warp. The threads of all grids that its 32 lanes have launched stand in a row, and the lanes take 32 of them at a
  time. So no lane is idle because another one has more to do.
- What is too much for a warp goes to a grid that the host launches right after the parent, as with
  [aggregate-grid-stream](aggregate-grid-stream.md): a vertex with 100,000 neighbours is a matter for the whole GPU. That grid is there for
  the first launches of the parent, and for those shortly after one that needed it: each time it costs some microseconds, and a road
  network never needs it. Where it isn't there, the block runs what is too much for a warp, so the result doesn't depend on it.
- Where the parent's whole grid runs at a time, everything goes to the grid that follows, if there is one: then all wait for the slowest
  thread.

With `assignment=size` the block always runs what is too much for a warp: the host's launches stay as they are, wherever they are, and the
program needs neither `-rdc=true` nor the device runtime. `auto` falls back to it where no grid can follow the parent. `warp`, `block` and
`grid` each do one of these; `thread` is [serialize](serialize.md).

## Needs
- A child whose threads don't work together (no barrier, no shared memory, no exchange within a warp), launch nothing and aren't recursive.
- A child with a constant block, without dynamic shared memory, that is defined above the parent.
- A parent whose barriers all threads of a block reach, if it has any, and whose threads leave it by `return`.
- A launch in a kernel, or in a function that can get another parameter. A thread runs its second and later grids itself, unless a
  grid follows.
- For `auto` and `grid`: what `aggregate-grid-stream` needs, and an argument that says how many threads have something to do
  (`if (i < count)`).

In the NULL stream it assumes what [serialize](serialize.md) does; and that child grids write nothing that the parent reads through a
`__restrict__` pointer, as they run in the same kernel.

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

// The body of visit, whose launches the kernel runs; `gridfuse revert` takes it back.
__device__ __forceinline__ void visit_body(
    gridfuse::ThreadReuseInStream<expand_aggregated>& expands, const int* row, const int* col,
    int* dist, int level, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || dist[v] != level) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expands.launch((count + kExpandBlock - 1) / kExpandBlock, kExpandBlock,
                                  {begin, count});
}

// Runs visit_body, and then the launches that it has collected; `gridfuse revert` takes it back.
__global__ void visit(const int* row, const int* col, int* dist, int level, int n,
                      gridfuse::StreamArena arena) {
    gridfuse::ThreadReuseInStream<expand_aggregated> expands(arena);
    visit_body(expands, row, col, dist, level, n);
    expands.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                                const expand_args& args) {
        expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, dist, level, args.begin,
                      args.count);
    });
}

void run(const int* row, const int* col, int* dist, int n, cudaStream_t stream) {
    for (int level = 0; level < 10; ++level)
        visit<<<(n + 255) / 256, 256, 0, stream>>>(row, col, dist, level, n,
            gridfuse::followed_at_need<expand_aggregated>((n + 255) / 256, 256, stream, col, dist,
                                                          level));
}
```

## Source
Chen and Shen: Free Launch: Optimizing GPU Dynamic Kernel Launches through Thread Reuse, MICRO 2015: §2 (T1 to T4: which of the parent's threads
do the children's work), §3 (the choice while the kernel runs). Merrill, Garland and Grimshaw: Scalable GPU Graph Traversal, PPoPP 2012, §5.1
(scan-based gathering within a warp).
"#;

/// The most bytes of local memory that a child with barriers may take in one thread, as for `serialize`.
const LOCAL_MEMORY: u64 = 4096;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let reuse = |assignment| reuse_threads(Draft::begin(ctx)?, assignment);
    match ctx.given("assignment").unwrap_or("auto") {
        "auto" => reuse(Assignment::Grid).or_else(|_| reuse(Assignment::Size)),
        "thread" => run_in_launcher(Draft::begin(ctx)?, Grids::All, LOCAL_MEMORY),
        "warp" => reuse(Assignment::Warp),
        "block" => reuse(Assignment::Block),
        "size" => reuse(Assignment::Size),
        "grid" => reuse(Assignment::Grid),
        other => Err(refuse(
            format!("`{other}` is no assignment; there are auto, thread, warp, block, size and grid"),
            None,
        )),
    }
}
