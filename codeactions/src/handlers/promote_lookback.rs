//! `promote-lookback`

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Family, Launches, Layer, Measured, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::transforms::promotion::{Promotion, promote};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "promote-lookback",
    title: "Turn the chain into one grid with look-back",
    doc: DOC,
    options: &[],
    target: Target::Launch(Launches::Recursive),
    family: Family::Promotion,
    measured: Measured::Alone,
    tunes: None,
    unattended: false,
    undo: Undo::Layer(Layer::Promoted("lookback")),
    run: apply,
};

const DOC: &str = r#"Does what [promote-overlap](promote-overlap.md) does, for chains whose links pass on nothing but a running value: a sum, or the
largest or smallest so far. No link waits for the one before to be launched. Each link says what it adds. A warp looks back at 32 links at
a time and adds up what they have said, until one knows its own value. So the links run side by side: the time no longer grows with the
length of the chain times the time that it takes to pass something on.

It also works where links pass on nothing at all, and a link only must not begin before the one before has read its data: a link goes on
when all links before it have passed that point.

Values are combined in another order, which depends on which links know their values when others look. That changes nothing for sums of
integers, and for the largest or smallest. Sums of `float`s and `double`s are rounded differently, and differently in each run. Only you
can say whether that is all right (it is an assumption); with `promote-overlap` they stay the same to the last bit.

## Why it can't hang
Blocks take the numbers of links in order, when they run. So every earlier link is running or done. The earliest unfinished one
waits for nothing, and makes progress as every running block of a grid does (compute capability 7.0 or newer: also
where threads of its warp wait). It makes no difference how many blocks are resident: one is enough. What links have said stands in a ring.
Before a link writes over what others may still look at, it waits for links further back, which wait for nothing that comes later. The
device launches nothing any more, so it doesn't matter either when, or whether, children of a running kernel run.

## Needs
- A kernel that launches itself once, not in a loop, and not into a stream of its own. The launch always has one block, comes from one
  thread, and has the block size and shared memory of the kernel's own launch. The kernel launches nothing else.
- The host launches the first link, with one block, and all of these launches are in sight.
- Nothing in the kernel asks for `blockIdx` or `gridDim`, or waits for other threads in a loop. Where threads wait for each other
  (barriers, shuffles), all of a block leave together.
- A kernel with non-coherent loads (`__restrict__`, `__ldg`, `ld.global.nc`, textures, surfaces) writes nothing before the launch.
- A template launches its own instance. Its launches by the host name the template arguments, or these are deduced from variables of types
  that can be written down.
- What `promote-overlap` needs. At most one argument is known only when the link before has run: a parameter of an integer type of 32 or 64
  bits, or `float` or `double`. The next link gets it plus what the first thread of the link has computed, or `max`, `min`, `fmax`, `fmin`…
  of the two (of the same type; sums may add integers of any size).
- The launch comes directly after what runs early, by the first thread of the block.

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

// The body of compact, as one link of its chain; `gridfuse revert` takes it back.
__device__ __forceinline__ void compact_link(
    gridfuse::DecoupledLookback<int, gridfuse::plus>& chain, const int* in, int* out, int* kept,
    int n, int tile) {
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
    int offset = chain.before(sums[255]);
    if (threadIdx.x == 0) {
        if ((tile + 1) * 256 < n)
            // was: compact<<<1, 256>>>(in, out, kept, n, tile + 1, offset + sums[255])
            chain.launch();
        else
            *kept = offset + sums[255];
    }
    if (value != 0) out[offset + sums[threadIdx.x] - 1] = value;
}

// Whether a link launches another one.
__device__ __forceinline__ bool compact_goes_on(int n, int tile) {
    return (tile + 1) * 256 < n;
}

__global__ void compact(const int* in, int* out, int* kept, int n, int tile, int offset,
                        gridfuse::ChainMemory memory) {
    gridfuse::DecoupledLookback<int, gridfuse::plus> chain(memory, offset);
    auto goes_on = [&](unsigned long long link) {
        return compact_goes_on(n, tile + static_cast<int>(link));
    };
    while (chain.next(goes_on))
        compact_link(chain, in, out, kept, n, tile + static_cast<int>(chain.number()));
}

void run(const int* in, int* out, int* kept, int n, cudaStream_t stream) {
    compact<<<gridfuse::chain_blocks<compact>(256), 256, 0, stream>>>(in, out, kept, n, 0, 0,
                                   gridfuse::chain_for(stream));
}
```

## Source
El Hajj: Techniques for Optimizing Dynamic Parallelism on Graphics Processing Units, dissertation 2018, §4.3; Merrill and Garland: Single-pass Parallel Prefix Scan with
Decoupled Look-back, NVIDIA technical report, 2016.
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    promote(Draft::begin(ctx)?, &Promotion::Lookback)
}
