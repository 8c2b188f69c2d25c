//! `promote-overlap`

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Family, Launches, Layer, Measured, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::transforms::promotion::{Promotion, promote};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "promote-overlap",
    title: "Turn the chain into one grid; overlap blocks",
    doc: DOC,
    options: &[],
    target: Target::Launch(Launches::Recursive),
    family: Family::Promotion,
    measured: Measured::Alone,
    tunes: None,
    unattended: false,
    undo: Undo::Layer(Layer::Promoted("overlap")),
    run: apply,
};

const DOC: &str = r#"Does what [promote](promote.md) does, and lets a link begin before it has been launched: what needs nothing from the link
before runs at once. Only then does the block wait for the arguments. So a link that waits has loaded its data already.

Arguments that stay the same or change by a constant step are computed from the link's number. So is whether there is such a link at all:
no link begins that the original wouldn't have launched.

The front of the kernel may run early. It ends at the first statement that uses an argument known only when the link before has run, or
that writes memory that others see. No link writes, before its launch, anything that the front reads. What a link writes after the launch
is in no order with the next link in the original either, so a program without races doesn't read it there.

## What only you know
Put a comment `// gridfuse: independent` above a statement (or at the end of its first line), and it runs early although it writes memory,
or calls what isn't known. Statements that read need the comment where a link writes memory before the launch. The comment says: this
statement touches no memory that other links of the chain write, and writes none that they touch. The rewrite shows what it assumes for it,
with the line of the comment. It refuses the comment where that can't be: the statement needs what the link before has to say, or touches a
place that is the same in each link and that they write.

```cuda
__global__ void walk(const int* in, int* sums, int* state, int n, int tile) {
    // gridfuse: independent (each link has its own part of sums)
    atomicAdd(&sums[tile], in[tile * 128 + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        *state = *state * 31 + sums[tile];
        if (tile + 1 < n) walk<<<1, 128>>>(in, sums, state, n, tile + 1);
    }
}
```

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
- Something at the front of the kernel that doesn't need the link before; the condition of the launch is made of arguments that stay the
  same or change by a constant step. No memory is written before the launch; or nothing that runs early reads memory; or comments say that
  the two have nothing to do with each other.

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
struct compact_args { int offset; };

// The body of compact, as one link of its chain; `gridfuse revert` takes it back.
__device__ __forceinline__ void compact_link(gridfuse::Chain<compact_args>& chain, const int* in,
                                             int* out, int* kept, int n, int tile) {
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
    int offset = chain.wait_at_once().offset;
    if (threadIdx.x == 0) {
        if ((tile + 1) * 256 < n)
            // was: compact<<<1, 256>>>(in, out, kept, n, tile + 1, offset + sums[255])
            chain.launch_at_once({offset + sums[255]});
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
    gridfuse::Chain<compact_args> chain(memory, {offset});
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
El Hajj: Techniques for Optimizing Dynamic Parallelism on Graphics Processing Units, dissertation 2018, §4.3 (overlap) and §4.4 (its combination with aggregation).
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    promote(Draft::begin(ctx)?, &Promotion::Overlap)
}
