//! `extract-launch`

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Family, Measured, Offered, OptionSpec, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::transforms::extraction::extract_loop;

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "extract-launch",
    title: "Launch the loop's iterations as a grid",
    doc: DOC,
    options: &[OptionSpec {
        name: "block",
        default: "128",
        doc: "Threads of a block of the child: a power of two from 32 to 1024.",
    }],
    target: Target::Place(Offered::ByDiagnostics),
    family: Family::Extraction,
    measured: Measured::No,
    tunes: None,
    unattended: false,
    undo: Undo::Not("`serialize` runs the child in its launcher again"),
    run: apply,
};

const DOC: &str = r#"Makes a child kernel of a `for` loop in a kernel: each iteration becomes a thread of a grid, which the thread launches where it looped.

Where threads loop over rows of different lengths, a warp takes as long as its longest row. A launch for each row is slow by itself; it is
what `optimize`, `threshold`, `aggregate-*` and `reuse-threads` begin with: small rows stay loops, and large ones get as many threads as they need.

The body moves as it stands. The child runs some time after the launch, beside the parent, and is done when the parent's grid is. The
launches go into `cudaStreamFireAndForget`: threads of a grid have no order among them. Where a loop around this one launches again, they
go into the NULL stream, which keeps the order.

## Needs
- A loop `for (int i = a; i < b; ++i)`, or with `<=` or `i += 4`, in a kernel; the counter is an `int` or an `unsigned`. No macro makes it.
- Iterations that don't use what others write, but for atomic operations. Nothing leaves the loop early, and no variable in front of it
  changes in it: a sum is collected by `atomicAdd`.
- Iterations that use neither `threadIdx` and the like nor barriers, warps, shared memory, local arrays, references, `printf` or inline
  assembly.
- A kernel that does nothing after the loop, or in a later round of a loop around it, with what an iteration uses; it has no barrier or fence there,
  launches nothing and asks for no errors.
- Where `compile_commands.json` says how the file is compiled: with `-rdc=true`.

## Assumes
- Atomic operations whose results are used, and elements whose numbers come from memory: that iterations don't depend on their order.
  Pointers that may lead to the same memory don't.
- Sums of floating-point numbers may be rounded in another way.
- Few enough launches are pending, as each thread launches: apply `optimize` to the launch next.
- The program is compiled and linked for device-side launches, if it has none yet.

## Before
```cuda
__global__ void scatter(const int* __restrict__ row, const int* __restrict__ col, const int* __restrict__ weight,
                        int* __restrict__ out, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    for (int e = row[v]; e < row[v + 1]; ++e) {
        if (col[e] == v) continue;
        atomicAdd(&out[col[e]], weight[e]);
    }
}
```

## After
```cuda
// An iteration of the loop in scatter, for each thread.
__global__ void scatter_loop(const int* __restrict__ col, const int* __restrict__ weight,
                             int* __restrict__ out, int v, int begin, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int e = begin + i;
    if (col[e] == v) return;
    atomicAdd(&out[col[e]], weight[e]);
}

__global__ void scatter(const int* __restrict__ row, const int* __restrict__ col, const int* __restrict__ weight,
                        int* __restrict__ out, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], end = row[v + 1];
    if (begin < end) {
        unsigned count = (unsigned)end - begin;
        scatter_loop<<<(count - 1) / 128 + 1, 128, 0, cudaStreamFireAndForget>>>(
            col, weight, out, v, begin, count);
    }
}
```

## Source
Yang and Zhou: CUDA-NP: Realizing Nested Thread-Level Parallelism in GPGPU Applications, PPoPP 2014 (parallel loops in threads); CUDA C++ Programming
Guide, CUDA Dynamic Parallelism.
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    extract_loop(ctx)
}
