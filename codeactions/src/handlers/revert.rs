//! `revert`

use super::REWRITES;
use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Family, Measured, Offered, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::undo;

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "revert",
    title: "Go back to plain launches",
    doc: DOC,
    options: &[],
    target: Target::Place(Offered::Everywhere),
    family: Family::Reversal,
    measured: Measured::No,
    tunes: None,
    unattended: false,
    undo: Undo::Not("the rewrite can be applied again"),
    run: apply,
};

const DOC: &str = r#"Takes back what `aggregate-*`, `coarsen`, `threshold`, `serialize`, `promote*`, `persistent-loop`, `flatten-recursion`,
`aggregate-atomics`, `reuse-threads` (with a grid that may follow), `skip-silent-stores` and `fire-and-forget` have made of a launch, the
last one first. The launch is back. Kernels, functions and constants that nothing else uses are gone, and so are the arena and the include.
Where no file of the workspace includes `gridfuse.cuh` any more, that goes, too, unless somebody has edited it.

A launch comes back as it was. Where the code that has taken its place doesn't say all of it (its stream, its line breaks, its arguments),
the rewrite has put a comment above: `// was: child<<<grid, 128, 0, stream>>>(out, n)`. A statement that it took out of a line with others
left `/* was: cudaStreamDestroy(s); */` there. Without the comment above it, what was collected becomes a launch into the NULL stream; a comment that you have changed counts as yours, and stays. Where `threshold` or `serialize` has put braces
around a launch, nothing says whether the launch stood on the line of its `if` or on the next one. It comes back on a line of its own where
the line of the `if` would be wider than the file's lines, or where the statements around it stand on lines of their own.

The result is checked: `revert` takes a step only if the rewrite, applied to what comes out, gives what is there now, white space aside. So
it never loses what you have changed in generated code: it refuses.

## Needs
- Generated code that has not been edited. (The bodies of kernels may have been.)

Code that was added after the launch may need the order in which things happen now. It may use what a grid has computed that ran in the
launching thread, or change what a collected grid will read. Where that isn't excluded, `revert` says what it assumes. It assumes nothing
where no code of the workspace has changed since the rewrite: the program becomes what it was.

It also takes back, to the byte, what the rewritten code doesn't tell (`aggregate-malloc`, `outline-iteration`; on the command line fixes, too)
until somebody edits a file that the rewrite has changed: `rewrite --in-place` keeps what it changes in the user's state directory, an editor's
server in memory.

## Before
```cuda
#include "gridfuse.cuh"

__device__ __forceinline__ void expand_body(uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                                            const int* col, int* dist, int level, int begin,
                                            int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicMin(&dist[col[begin + i]], level + 1);
}

__global__ void expand(const int* col, int* dist, int level, int begin, int count) {
    expand_body(blockIdx, gridDim, blockDim, col, dist, level, begin, count);
}

// The arguments of expand that differ within a block of visit.
struct expand_args { int begin; int count; };

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

## After
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

## Source
The inverse of the rewrites.
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    undo::all(ctx, REWRITES)
}
