//! `promote`

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Family, Launches, Layer, Measured, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::transforms::promotion::{Promotion, promote};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "promote",
    title: "Turn the launch chain into one grid",
    doc: DOC,
    options: &[],
    target: Target::Launch(Launches::Recursive),
    family: Family::Promotion,
    measured: Measured::Alone,
    tunes: None,
    unattended: false,
    undo: Undo::Layer(Layer::Promoted("wait")),
    run: apply,
};

const DOC: &str = r#"Makes one grid of a kernel of one block that launches itself again. Scans that go over their data tile by tile do that. Each
launch becomes a link of a chain. The host launches many blocks; each runs links in order. A link begins when the one before launches it:
that one writes down the arguments that differ, and a flag (release), and the block of the next link waits for the flag (acquire). What a
link does after the launch runs beside the next link, as before.

The chain may be of any length. A chain of nested launches breaks off where more of them are pending than the limit allows (2048, if the
program doesn't set `cudaLimitDevRuntimePendingLaunchCount`; CUDA's documentation allows 24).

The dissertation has two steps. In promotion, a link launches the next one when it begins, and that one waits. In aggregation of promoted
kernels, a number of links is launched at once; those after the end of the chain give up, and the last one launches as many again. Here,
the two are one: blocks that take links in order do both, and no pool has to be launched.

## Why it can't hang
Blocks take the numbers of links in order, when they run. So every earlier link is running or done. The earliest unfinished one
waits for nothing, and makes progress as every running block of a grid does (compute capability 7.0 or newer: also
where threads of its warp wait). It makes no difference how many blocks are resident: one is enough. The device launches nothing any more,
so it doesn't matter either when, or whether, children of a running kernel run.

## Needs
- A kernel that launches itself once, not in a loop, and not into a stream of its own. The launch always has one block, comes from one
  thread, and has the block size and shared memory of the kernel's own launch. The kernel launches nothing else.
- The host launches the first link, with one block, and all of these launches are in sight.
- Nothing in the kernel asks for `blockIdx` or `gridDim`, or waits for other threads in a loop. Where threads wait for each other
  (barriers, shuffles), all of a block leave together.
- A kernel with non-coherent loads (`__restrict__`, `__ldg`, `ld.global.nc`, textures, surfaces) writes nothing before the launch.
- A template launches its own instance. Its launches by the host name the template arguments, or these are deduced from variables of types
  that can be written down.

## Before
```cuda
__global__ void compact(const int* in, int* out, int* kept, int n, int tile, int offset) {
    __shared__ int sums[256];
    int i = tile * 256 + threadIdx.x;
    int value = i < n ? in[i] : 0;
    sums[threadIdx.x] = value != 0;
    for (int distance = 1; distance < 256; distance *= 2) {
        __syncthreads();
        int before = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        if ((tile + 1) * 256 < n)
            compact<<<1, 256>>>(in, out, kept, n, tile + 1, offset + sums[255]);
        else
            *kept = offset + sums[255];
    }
    if (value != 0) out[offset + sums[threadIdx.x] - 1] = value;
}

void run(const int* in, int* out, int* kept, int n, cudaStream_t stream) {
    compact<<<1, 256, 0, stream>>>(in, out, kept, n, 0, 0);
}
```

## After
```cuda
#include "gridfuse.cuh"

// What a link of the chain of compact gets from the one before.
struct compact_args { int tile; int offset; };

// The body of compact, as one link of its chain; `gridfuse revert` takes it back.
__device__ __forceinline__ void compact_link(gridfuse::Chain<compact_args>& chain, const int* in,
                                             int* out, int* kept, int n, int tile, int offset) {
    __shared__ int sums[256];
    int i = tile * 256 + threadIdx.x;
    int value = i < n ? in[i] : 0;
    sums[threadIdx.x] = value != 0;
    for (int distance = 1; distance < 256; distance *= 2) {
        __syncthreads();
        int before = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        if ((tile + 1) * 256 < n)
            // was: compact<<<1, 256>>>(in, out, kept, n, tile + 1, offset + sums[255])
            chain.launch({tile + 1, offset + sums[255]});
        else
            *kept = offset + sums[255];
    }
    if (value != 0) out[offset + sums[threadIdx.x] - 1] = value;
}

__global__ void compact(const int* in, int* out, int* kept, int n, int tile, int offset,
                        gridfuse::ChainMemory memory) {
    gridfuse::Chain<compact_args> chain(memory, {tile, offset});
    while (chain.next()) {
        const compact_args args = chain.args();
        compact_link(chain, in, out, kept, n, args.tile, args.offset);
    }
}

void run(const int* in, int* out, int* kept, int n, cudaStream_t stream) {
    compact<<<gridfuse::chain_blocks<compact>(256), 256, 0, stream>>>(in, out, kept, n, 0, 0,
                                   gridfuse::chain_for(stream));
}
```

## Source
El Hajj: Techniques for Optimizing Dynamic Parallelism on Graphics Processing Units, dissertation 2018, §4.1 (promotion) and §4.2 (aggregation of promoted kernels).
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    promote(Draft::begin(ctx)?, &Promotion::Wait)
}
