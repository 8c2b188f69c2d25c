//! `retune-grid`, `retune-grid-host`, `retune-grid-stream`, `retune-multiblock`, `retune-block` and `retune-warp`

use super::REWRITES;
use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Family, Layer, Measured, Offered, OptionSpec, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::undo;

/// The example.
macro_rules! program {
    ($granularity:literal, $noun:literal, $arena:literal) => {
        concat!(
            "#include \"gridfuse.cuh\"

// The body of expand, for any block of any grid; `gridfuse revert` takes it back.
__device__ __forceinline__ void expand_body(uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                                            const int* col, int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(&out[col[begin + i]], 1);
}

// What a plain launch of expand runs; `gridfuse revert` takes it back.
__global__ void expand(const int* col, int* out, int begin, int count) {
    expand_body(blockIdx, gridDim, blockDim, col, out, begin, count);
}

// The arguments of expand that differ within a ",
            $noun,
            " of visit.
struct expand_args { int begin; int count; };

// Runs the launches of expand by a ",
            $noun,
            " of visit; `gridfuse revert` takes it back.
__global__ void expand_aggregated(gridfuse::Batch<expand_args> batch, const int* col, int* out) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const expand_args& args) {
        expand_body(blockIdx, gridDim, blockDim, col, out, args.begin, args.count);
    });
}

__global__ void visit(const int* row, const int* col, int* out, int n, gridfuse::Arena arena) {
    gridfuse::Aggregator<gridfuse::",
            $granularity,
            ", expand_aggregated> expands(arena, col, out);
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expands.launch((count + 127) / 128, 128, {begin, count});
}

void run(const int* row, const int* col, int* out, int n) {
    visit<<<(n + 255) / 256, 256>>>(row, col, out, n,",
            $arena,
            "((n + 255) / 256, 256));
}
"
        )
    };
}

/// The example where they run after the parent.
macro_rules! in_stream {
    () => {
        r#"#include "gridfuse.cuh"

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

// The threads of a block of expand, for its launches and for what runs them.
constexpr int kExpandBlock = 128;

// The arguments of expand that differ within a grid of visit.
// threads(): how many threads of the grid have work.
struct expand_args { int begin; int count; __device__ int threads() const { return count; } };

// Runs the launches of expand by a grid of visit; `gridfuse revert` takes it back.
__global__ void expand_aggregated(gridfuse::StreamBatch<expand_args, kExpandBlock> batch,
                                  const int* col, int* out) {
    batch.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                              const expand_args& args) {
        expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, out, args.begin, args.count);
    });
}

__global__ void visit(const int* row, const int* col, int* out, int n,
                      gridfuse::StreamArena arena) {
    gridfuse::Aggregator<gridfuse::PerGridInStream, expand_aggregated> expands(arena);
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expands.launch((count + kExpandBlock - 1) / kExpandBlock, kExpandBlock,
                                  {begin, count});
}

void run(const int* row, const int* col, int* out, int n) {
    visit<<<(n + 255) / 256, 256>>>(row, col, out, n,
        gridfuse::followed_by<expand_aggregated>((n + 255) / 256, 256, /*stream=*/0, col, out));
}
"#
    };
}

/// The documentation of one: all are the same but for the granularity.
macro_rules! doc {
    ($what:literal, $rewrite:literal, $from:literal, $from_noun:literal, $to:literal, $to_noun:literal) => {
        doc!($what, $rewrite, $from, $from_noun, program!($to, $to_noun, " gridfuse::arena_for"))
    };
    ($what:literal, $rewrite:literal, $from:literal, $from_noun:literal, $after:expr) => {
        concat!(
            "Takes launches that are collected at another granularity, and collects them ",
            $what,
            r#".

Arguments that all launches collected together share are passed once, and the others are written down. Which these are may change with the
granularity, and so do the aggregated kernel and its record. All launches of the kernel change together.

## Needs
- Generated code that has not been edited. (The bodies of kernels may have been.)
- What ["#,
            $rewrite,
            "](",
            $rewrite,
            ".md) needs.\n\n## Before\n```cuda\n",
            program!($from, $from_noun, " gridfuse::arena_for"),
            "```\n\n## After\n```cuda\n",
            $after,
            "```\n\n## Source\nThe rewrites `aggregate-*`.\n"
        )
    };
}

/// What all of them are.
const AGAIN: Rewrite = Rewrite {
    id: "",
    title: "",
    doc: "",
    options: &[],
    target: Target::Place(Offered::Everywhere),
    family: Family::Aggregation,
    measured: Measured::No,
    tunes: None,
    unattended: false,
    undo: Undo::Layer(Layer::Collected("")),
    run: apply,
};

pub(super) const GRID: Rewrite = Rewrite {
    id: "retune-grid",
    title: "Collect launches per grid instead",
    doc: doc!("per grid", "aggregate-grid", "PerBlock", "block", "PerGrid", "grid"),
    undo: Undo::Layer(Layer::Collected("PerGrid")),
    ..AGAIN
};

pub(super) const GRID_HOST: Rewrite = Rewrite {
    id: "retune-grid-host",
    title: "Launch the collected grids from the host",
    doc: doc!(
        "per grid and leaves them to the host",
        "aggregate-grid-host",
        "PerGrid",
        "grid",
        program!(
            "PerGridFromHost",
            "grid",
            "\n        gridfuse::launchpad_for<expand_aggregated>"
        )
    ),
    undo: Undo::Layer(Layer::Collected("PerGridFromHost")),
    ..AGAIN
};

pub(super) const GRID_STREAM: Rewrite = Rewrite {
    id: "retune-grid-stream",
    title: "Run collected grids right after the parent",
    doc: doc!(
        "per grid and runs them right after the parent",
        "aggregate-grid-stream",
        "PerGrid",
        "grid",
        in_stream!()
    ),
    undo: Undo::Layer(Layer::Collected("PerGridInStream")),
    ..AGAIN
};

pub(super) const MULTIBLOCK: Rewrite = Rewrite {
    id: "retune-multiblock",
    title: "Collect launches per group of blocks instead",
    doc: doc!(
        "per group of blocks",
        "aggregate-multiblock",
        "PerGrid",
        "grid",
        "PerMultiBlock<8>",
        "group of blocks"
    ),
    options: &[OptionSpec {
        name: "blocks",
        default: "8",
        doc: "So many neighbouring blocks launch together.",
    }],
    undo: Undo::Layer(Layer::Collected("PerMultiBlock")),
    ..AGAIN
};

pub(super) const BLOCK: Rewrite = Rewrite {
    id: "retune-block",
    title: "Collect launches per block instead",
    doc: doc!("per block", "aggregate-block", "PerGrid", "grid", "PerBlock", "block"),
    undo: Undo::Layer(Layer::Collected("PerBlock")),
    ..AGAIN
};

pub(super) const WARP: Rewrite = Rewrite {
    id: "retune-warp",
    title: "Collect launches per warp instead",
    doc: doc!("per warp", "aggregate-warp", "PerBlock", "block", "PerWarp", "warp"),
    undo: Undo::Layer(Layer::Collected("PerWarp")),
    ..AGAIN
};

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    undo::collect_again(ctx, REWRITES)
}
