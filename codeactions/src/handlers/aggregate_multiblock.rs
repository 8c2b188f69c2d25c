//! `aggregate-multiblock`

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Axis, Family, Launches, Layer, Measured, OptionSpec, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::transforms::aggregate::{Granularity, aggregate};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "aggregate-multiblock",
    title: "Collect launches per group of blocks",
    doc: DOC,
    options: &[OptionSpec {
        name: "blocks",
        default: "8",
        doc: "How many neighbouring blocks launch together.",
    }],
    target: Target::Launch(Launches::Any),
    family: Family::Aggregation,
    measured: Measured::BehindThreshold,
    tunes: Some(Axis::Granularity(3)),
    unattended: false,
    undo: Undo::Layer(Layer::Collected("PerMultiBlock")),
    run: apply,
};

const DOC: &str = r#"Collects the child grids that the threads of some neighbouring blocks launch, and launches them as one grid when the last
of these blocks leaves the kernel.

The child's body becomes a device function that can run as any block of any grid. The aggregated kernel finds out, for each of
its blocks, which launch it belongs to. Arguments that are the same for a whole group are passed once; the others are written
to an arena that the host passes to the parent kernel. Launches may come from any control flow: loops, divergent branches,
before an early return. All launches of the parent kernel are collected, those of each child into a grid of their own. A launch
that doesn't fit into the arena gets a grid to itself.

Launches in device functions that the kernel calls are collected as well: the functions get the aggregator as a parameter. A child that
launches its parent or itself again collects its own launches, too, and so does a kernel that launches a parent from the device: all of
that changes at once. A child that launches other kernels still launches them; apply this rewrite to its launch then. The host's arena has
`gridfuse::kNestedBytes` of memory for what children collect. That memory is used again as soon as the launches in it have begun.

This is the middle between `aggregate-block`, whose children start earlier, and `aggregate-grid`, which launches least. The number of
blocks is an argument of the type in the rewritten code.

## Needs
- A parent kernel whose launches are all in sight: by the host, with a launch configuration that can be written twice, or by kernels that
  collect their launches, too.
- The NULL stream, `cudaStreamFireAndForget`, or a stream that each thread creates for this launch alone.
- A child without inline assembly or waiting; arguments that are plain values. Functions that it calls and that read `blockIdx` and the
  like get copies that take them as parameters.
- Blocks of the child that are one-dimensional, or of the same size for all launches of a group. Blocks of
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
__global__ void refine(const float* image, float* out, int width, int x, int y, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < size && j < size) out[(y + j) * width + x + i] = 2 * image[(y + j) * width + x + i];
}

__global__ void tiles(const float* image, const int* sizes, float* out, int width, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    int size = sizes[t], grid = (size + 15) / 16;
    if (size > 0)
        refine<<<dim3(grid, grid), dim3(16, 16)>>>(image, out, width, t % 64 * 64, t / 64 * 64, size);
}

void run(const float* image, const int* sizes, float* out, int width, int n) {
    tiles<<<(n + 127) / 128, 128>>>(image, sizes, out, width, n);
}
```

## After
```cuda
#include "gridfuse.cuh"

// The body of refine, for any block of any grid; `gridfuse revert` takes it back.
__device__ __forceinline__ void refine_body(uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                                            const float* image, float* out, int width, int x, int y,
                                            int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < size && j < size) out[(y + j) * width + x + i] = 2 * image[(y + j) * width + x + i];
}

// What a plain launch of refine runs; `gridfuse revert` takes it back.
__global__ void refine(const float* image, float* out, int width, int x, int y, int size) {
    refine_body(blockIdx, gridDim, blockDim, image, out, width, x, y, size);
}

// The arguments of refine that differ within a group of blocks of tiles.
struct refine_args { int x; int y; int size; };

// Runs the launches of refine by a group of blocks of tiles; `gridfuse revert` takes it back.
__global__ void refine_aggregated(gridfuse::Batch<refine_args> batch, const float* image,
                                  float* out, int width) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const refine_args& args) {
        refine_body(blockIdx, gridDim, blockDim, image, out, width, args.x, args.y, args.size);
    });
}

__global__ void tiles(const float* image, const int* sizes, float* out, int width, int n,
                      gridfuse::Arena arena) {
    gridfuse::Aggregator<gridfuse::PerMultiBlock<8>, refine_aggregated> refines(
        arena, image, out, width);
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    int size = sizes[t], grid = (size + 15) / 16;
    if (size > 0)
        refines.launch(dim3(grid, grid), dim3(16, 16), {t % 64 * 64, t / 64 * 64, size});
}

void run(const float* image, const int* sizes, float* out, int width, int n) {
    tiles<<<(n + 127) / 128, 128>>>(image, sizes, out, width, n,
                                    gridfuse::arena_for((n + 127) / 128, 128));
}
```

## Source
El Hajj: Techniques for Optimizing Dynamic Parallelism on Graphics Processing Units, dissertation 2018, §3.1 (aggregation) and
§3.4.1 (scalarisation); El Hajj et al.: KLAP, MICRO 2016; Olabi et al.: A Compiler Framework for Optimizing
Dynamic Parallelism on GPUs, CGO 2022, §5 (multi-block granularity).
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let granularity = Granularity::MultiBlock(ctx.positive("blocks")?);
    aggregate(Draft::begin(ctx)?, granularity)
}
