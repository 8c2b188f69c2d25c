//! `threshold`

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Axis, Family, Launches, Layer, Measured, OptionSpec, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::transforms::in_launcher::{Grids, run_in_launcher};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "threshold",
    title: "Run small grids as a loop",
    doc: DOC,
    options: &[
        OptionSpec {
            name: "threshold",
            default: "64",
            doc: "Child grids of fewer threads run in the launching thread. A child with barriers: by default, grids of one block of up to 256 threads.",
        },
        OptionSpec {
            name: "local-memory",
            default: "4096",
            doc: "The most bytes of local memory that a child with barriers may take in one thread.",
        },
    ],
    target: Target::Launch(Launches::Any),
    family: Family::InLauncher,
    measured: Measured::Alone,
    tunes: Some(Axis::Threshold("threshold")),
    unattended: false,
    undo: Undo::Layer(Layer::Thresholded),
    run: apply,
};

const DOC: &str = r#"Runs child grids that are too small to be worth a launch serially, in the thread that would have launched them.

The child's body becomes a device function for one thread of a grid; a small grid is a loop over its threads. What counts as
small is a named constant to be tuned. If the grid size tells how many threads are wanted, as in `(count + 127) / 128`, that number is
compared, and only those threads run.

A child whose threads meet at `__syncthreads()` is split there: a loop runs what stands between two barriers for the threads of the block,
one at a time. Control flow around a barrier stays around these loops, shared memory becomes a local array, and so does a variable of a
thread that is used on both sides of a barrier:

```cuda
gridfuse::for_each_block(grid, block, [&](uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
    /* __shared__ */ int sums[64];
    gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx) {
        sums[threadIdx.x] = in[threadIdx.x];
    });
    // __syncthreads();
    for (int stride = 32; stride > 0; stride /= 2) {
        gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx) {
            if (threadIdx.x < stride) sums[threadIdx.x] += sums[threadIdx.x + stride];
        });
        // __syncthreads();
    }
});
```

A parameter that the child changes gets a copy: one for the block where all threads change it alike, else one for each thread. A
cooperative group that only tells who a thread is becomes arithmetic, and its `sync()` is a barrier. Dynamic shared memory of a size that
the launch computes gets 8 bytes for each thread below the threshold; a grid that needs more is launched.

Local memory is set aside for every thread that the GPU can hold, so its size is limited (`local-memory`). Atomics on shared memory become
plain operations: within one thread, nothing can interrupt them.

## Needs
- Threads of the child that communicate only at barriers, which all threads of the block reach alike, and through shared memory: no warp
  operations but `__syncwarp()`, no waiting. Where the size of a shared array isn't known, it assumes that it fits.
- Parameters that the child changes are numbers or pointers, whose address nobody takes. Objects may be asked and called: their functions
  compute something and change nothing.
- No launches in the child, no recursion, no inline assembly. Functions that it calls and that read the built-in variables get copies that
  take them as parameters; not those that wait at a barrier.
- A configuration without side effects, the NULL stream, `cudaStreamFireAndForget` or a stream that the function has created.

In the NULL stream it assumes that the grids don't rely on each other's order, unless only one thread of a block launches, once. It assumes that CUDA accepts each
launch, where that isn't clear: a block of more threads than the `__launch_bounds__` of the child allow, or with more shared memory than 48 KiB,
would never have run.

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

// Child grids of expand with fewer threads run in the launching thread.
constexpr int kExpandThreshold = 64;

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
    if (count > 0) {
        if (count < kExpandThreshold)
            expand_serial((count + 127) / 128, 128, col, dist, level, begin, count);
        else
            expand<<<(count + 127) / 128, 128>>>(col, dist, level, begin, count);
    }
}
```

## Source
Olabi, Gómez Luna, Mutlu, Hwu, El Hajj: A Compiler Framework for Optimizing Dynamic Parallelism on GPUs, CGO 2022, §3.1
(thresholding). Stratton, Stone, Hwu: MCUDA: An Efficient Implementation of CUDA Kernels for Multi-core CPUs, LCPC 2008 (barriers).
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let grids = Grids::Below {
        threads: ctx.positive("threshold")?,
        given: ctx.given("threshold").is_some(),
    };
    let local_memory = ctx.positive("local-memory")?;
    run_in_launcher(Draft::begin(ctx)?, grids, local_memory)
}
