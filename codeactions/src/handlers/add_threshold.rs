//! `add-threshold`

use super::REWRITES;
use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Family, Layer, Measured, Offered, OptionSpec, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::undo;

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "add-threshold",
    title: "Run small collected grids as a loop",
    doc: DOC,
    options: &[OptionSpec {
        name: "threshold",
        default: "64",
        doc: "Child grids of fewer threads run in the launching thread.",
    }],
    target: Target::Place(Offered::Everywhere),
    family: Family::InLauncher,
    measured: Measured::No,
    tunes: None,
    unattended: false,
    undo: Undo::Layer(Layer::Thresholded),
    run: apply,
};

const DOC: &str = r#"Applies [threshold](threshold.md) to a launch that is collected: as if it had been applied before `aggregate-*`.

## Needs
- Generated code that has not been edited. (The bodies of kernels may have been.)
- What [threshold](threshold.md) needs.

## Before
```cuda
#include "gridfuse.cuh"

// The body of expand, for any block of any grid; `gridfuse revert` takes it back.
__device__ __forceinline__ void expand_body(uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                                            const int* col, int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(&out[col[begin + i]], 1);
}

__global__ void expand(const int* col, int* out, int begin, int count) {
    expand_body(blockIdx, gridDim, blockDim, col, out, begin, count);
}

// The arguments of expand that differ within a grid of visit.
struct expand_args { int begin; int count; };

// Runs the launches of expand by a grid of visit; `gridfuse revert` takes it back.
__global__ void expand_aggregated(gridfuse::Batch<expand_args> batch, const int* col, int* out) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const expand_args& args) {
        expand_body(blockIdx, gridDim, blockDim, col, out, args.begin, args.count);
    });
}

__global__ void visit(const int* row, const int* col, int* out, int n, gridfuse::Arena arena) {
    gridfuse::Aggregator<gridfuse::PerGrid, expand_aggregated> expands(arena, col, out);
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expands.launch((count + 127) / 128, 128, {begin, count});
}

void run(const int* row, const int* col, int* out, int n) {
    visit<<<(n + 255) / 256, 256>>>(row, col, out, n, gridfuse::arena_for((n + 255) / 256, 256));
}
```

## After
```cuda
#include "gridfuse.cuh"

// Child grids of expand with fewer threads run in the launching thread.
constexpr int kExpandThreshold = 64;

// The body of expand, for any thread of any grid; `gridfuse revert` takes it back.
__device__ __forceinline__ void expand_thread(uint3 threadIdx, uint3 blockIdx, dim3 gridDim,
                                              dim3 blockDim, const int* col, int* out, int begin,
                                              int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(&out[col[begin + i]], 1);
}

// What a plain launch of expand runs; `gridfuse revert` takes it back.
__global__ void expand(const int* col, int* out, int begin, int count) {
    expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, out, begin, count);
}

// The arguments of expand that differ within a grid of visit.
struct expand_args { int begin; int count; };

// Runs the launches of expand by a grid of visit; `gridfuse revert` takes it back.
__global__ void expand_aggregated(gridfuse::Batch<expand_args> batch, const int* col, int* out) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const expand_args& args) {
        expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, out, args.begin, args.count);
    });
}

// Runs a grid of expand in one thread; `gridfuse revert` takes it back.
__device__ inline void expand_serial(dim3 grid, dim3 block, const int* col, int* out, int begin,
                                     int count) {
    gridfuse::for_each_thread(grid, block, count,
                              [&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
        expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, out, begin, count);
    });
}

__global__ void visit(const int* row, const int* col, int* out, int n, gridfuse::Arena arena) {
    gridfuse::Aggregator<gridfuse::PerGrid, expand_aggregated> expands(arena, col, out);
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) {
        if (count < kExpandThreshold)
            expand_serial((count + 127) / 128, 128, col, out, begin, count);
        else
            expands.launch((count + 127) / 128, 128, {begin, count});
    }
}

void run(const int* row, const int* col, int* out, int n) {
    visit<<<(n + 255) / 256, 256>>>(row, col, out, n, gridfuse::arena_for((n + 255) / 256, 256));
}
```

## Source
The rewrites `threshold` and `aggregate-*`.
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    undo::add_threshold(ctx, REWRITES)
}
