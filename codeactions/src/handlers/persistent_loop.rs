//! `persistent-loop`

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Family, Launches, Layer, Measured, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::transforms::iteration::make_loop;

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "persistent-loop",
    title: "Replace the tail launch with a loop",
    doc: DOC,
    options: &[],
    target: Target::Launch(Launches::Any),
    family: Family::Iteration,
    measured: Measured::Alone,
    tunes: None,
    unattended: false,
    undo: Undo::Layer(Layer::Looped),
    run: apply,
};

const DOC: &str = r#"Runs a kernel that ends by launching itself into `cudaStreamTailLaunch` as a loop. Such a launch begins when the whole grid is
done: it is the next iteration.

The kernel's body becomes a function, `relax_body`. Where it launched itself, it now hands over the arguments of the next iteration.
`relax_loop` has as many blocks as the device can run at a time, and no more than the grid has. They run the blocks of an iteration, wait
for each other, and go on to the next one, until an iteration launches none.

The host launches `relax_loop`. `relax` itself stays, for launches that the rewrite doesn't see; from there each iteration is
launched by the one before.

Where all grids have one block no other kernel is needed, and the host doesn't change: the block runs a loop,

```cuda
__global__ void relax(float* x, int n, int round) {
    gridfuse::BlockLoop<relax_args> relaxes({round});
    while (relaxes.next()) {
        const relax_args args = relaxes.args();
        relax_body(relaxes, x, n, args.round);
    }
}
```

Kernels that launch each other in turn (`propose` launches `accept`, which launches `propose` again) become one loop, too. The arguments of
an iteration then say which kernel it runs:

```cuda
    loop.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const propose_args& args) {
        if (args.kernel == 0)
            propose_body(loop, blockIdx, gridDim, blockDim, x, args.round);
        else
            accept_body(loop, blockIdx, gridDim, blockDim, x, args.round);
    });
```

So do the stages of a pipeline, which don't come back, and what is run before a loop or after it: all kernels that come of the first one by
tail launches. `optimize` leaves a pipeline alone, as it is run once: what it saves is a few launches, and each stage gets the registers and
the block size of the largest one.

Real programs often have a driver: one thread launches work, and then itself or a partner into the tail. That becomes one loop, too,
whichever of its launches you apply the rewrite to:

```cuda
__global__ void step(float* a, float* b, State* state) {
    if (state->changed == 0) return;
    state->changed = 0;
    sweep<<<(state->n + 127) / 128, 128>>>(a, b, state);
    step<<<1, 1, 0, cudaStreamTailLaunch>>>(b, a, state);
}
```

has the body

```cuda
    loop.launch_child((state->n + 127) / 128, 128, {1, {}, {}, a, b});
    loop.launch(1, 128, {0, b, a, {}, {}});
```

Each of these grids is an iteration: first the children, then what was launched into the tail, each in their order.
`gridfuse::Iterations<step_args, 1, 1>` says how many there are at most. Children wait for their launcher, and for each other: that is one
of the orders that CUDA allows. All blocks of the loop have as many threads as the largest ones; smaller ones leave the other threads
unused.

It saves the launch of each iteration. Where an iteration is short, that is most of the time. Where a grid has many times as many blocks as
the device runs at a time, handing them out takes about as long as a launch, and the gain is small or none: measure it.

A launch is never lost. If its block has another size or more dynamic shared memory than the first grid's, it is done as before, and so are
all launches after it. `gridfuse::direct_launches()` counts those. Grids may be of different sizes.

## Needs
- A kernel with a launch of itself into `cudaStreamTailLaunch` in its own body, not in a loop, by one thread of the grid (of the
  block, where grids have one block).
- Or up to eight kernels that launch each other so, in a ring, or in stages that begin with one that the host launches. They are in one file and
  namespace, and have the same launch bounds. They may be templates where the template arguments show that each kernel is one instance:
  then `relax_loop` is a template with the parameters of the kernel that the host launches.
- Such kernels may launch others besides: by the same thread, not in a loop, into the NULL stream, `cudaStreamFireAndForget` or
  `cudaStreamTailLaunch`. These others launch nothing. On each path, a kernel that launches is the last one launched into the tail. So all
  that was launched before has run when it begins, and there is always room for what it launches. These grids have blocks of constant sizes
  and no dynamic shared memory: none turns out to be unlike the others when it is launched. A grid that CUDA refuses is launched as before,
  and `cudaGetLastError` says so.
- Blocks of the same size, and as much dynamic shared memory: `blockDim`, constants, or the template parameter that is given the size
  at all launches. Several kernels may have blocks of different sizes; all blocks of the loop have as many threads as the largest one.
- Every barrier is reached by all threads of a block or by none, as the block goes on with the next one. Blocks that are smaller than those
  of the loop have no barrier, or no more threads than a warp.
- A kernel that doesn't wait for other blocks, nor use events. Where it asks for errors, the rewrite assumes that no launch fails.
- A launch by the host that can be changed, where grids have several blocks.
- No read-only loads (`__ldg`, `__restrict__` pointers in functions that it calls) where iterations pass on pointers, to buffers
  that change places for example. Where they don't, the rewrite assumes that the kernel doesn't write what it loads in this way. The
  kernel's own parameters lose `__restrict__`: nvcc would load through `const T* __restrict__` in the same way.

## Why it can't hang
No barrier waits for all blocks of the grid, so they needn't be resident together. A block that wants work takes a ticket. The tickets, in
order, stand for the blocks of the first iteration, of the second one, and so on (for several neighbouring blocks each where there are
many). A block whose iteration hasn't begun waits. So:

- Only blocks that run have tickets, and an iteration begins when the tickets of the one before are done. A block waits only for
  tickets that were taken before its own: for blocks that have begun. It is enough that those go on, which is what CUDA promises
  for compute capability 7.0 and newer. With fewer resident blocks than expected (another kernel, a debugger, a partition of the GPU)
  the others begin when these are done, and find nothing to do. One block is enough.
- Among blocks that run, the one with the smallest ticket that isn't done never waits: all tickets before it are done, so its
  iteration has begun. A block may take its next ticket while it runs the one before, and counts several as done at a time; it has
  counted all of them when it waits.
- Nothing waits for a launch that goes out by itself: this grid ends, then the launched one begins.

## What an iteration sees
All that the iterations before have written, as after a launch into the tail stream. In the terms of CUDA's memory model: the threads
of a block meet at a barrier when they are done; its first thread passes a fence and counts its tickets as done (release). The
thread that counts the last one passes a fence and opens the next iteration (acquire, and release). Whoever sees it open passes a
fence (acquire), and its block meets at a barrier. Fences and counters have the scope of the device, and
synchronisation is cumulative, so each thread's writes come before each thread's loads of the next iteration, also of what was in a
multiprocessor's cache. Shared memory is free when the block is done; its contents were undefined at the beginning, and still are.

## Before
```cuda
// Sweeps over a rod until it hardly changes. An iteration knows the change in the one before.
__global__ void relax(float* from, float* to, int n, float* change, int round) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) {
        to[i] = (from[i - 1] + from[i + 1]) / 2;
        atomicAdd(&change[round % 3], fabsf(to[i] - from[i]));
    }
    if (i == 0) {
        change[(round + 1) % 3] = 0;
        bool moves = round == 0 || change[(round + 2) % 3] > 1e-3f;
        if (moves && round < 1000)
            relax<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(to, from, n, change, round + 1);
    }
}

void run(float* x, float* y, int n, float* change, cudaStream_t stream) {
    relax<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n, change, 0);
}
```

## After
```cuda
#include "gridfuse.cuh"

// The arguments of relax that differ between its launches.
struct relax_args { float* from; float* to; int round; };

__global__ void relax_loop(gridfuse::Iterations<relax_args> iterations, int n, float* change);

// Sweeps over a rod until it hardly changes. An iteration knows the change in the one before.
// The body of relax, for any block of any grid; `gridfuse revert` takes it back.
__device__ __forceinline__ void relax_body(gridfuse::Loop<relax_loop>& relaxes, uint3 blockIdx,
                                           dim3 gridDim, dim3 blockDim, float* from, float* to,
                                           int n, float* change, int round) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) {
        to[i] = (from[i - 1] + from[i + 1]) / 2;
        atomicAdd(&change[round % 3], fabsf(to[i] - from[i]));
    }
    if (i == 0) {
        change[(round + 1) % 3] = 0;
        bool moves = round == 0 || change[(round + 2) % 3] > 1e-3f;
        if (moves && round < 1000)
            // was: relax<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(to, from, n, change,
            //      round + 1)
            relaxes.launch(gridDim, blockDim, {to, from, round + 1});
    }
}

// What a plain launch of relax runs; `gridfuse revert` takes it back.
__global__ void relax(float* from, float* to, int n, float* change, int round) {
    // One iteration, which launches the next one by itself.
    gridfuse::Loop<relax_loop> relaxes({}, n, change);
    relax_body(relaxes, blockIdx, gridDim, blockDim, from, to, n, change, round);
}

// Runs the grids that follow each other of relax; `gridfuse revert` takes it back.
__global__ void relax_loop(gridfuse::Iterations<relax_args> iterations, int n, float* change) {
    gridfuse::Loop<relax_loop> relaxes(iterations, n, change);
    relaxes.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                               const relax_args& args) {
        relax_body(relaxes, blockIdx, gridDim, blockDim, args.from, args.to, n, change, args.round);
    });
}

void run(float* x, float* y, int n, float* change, cudaStream_t stream) {
    // was: relax<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n, change, 0)
    gridfuse::launch_loop<relax_loop>((n + 255) / 256, 256, 0, stream, {x, y, 0}, n, change);
}
```

## Source
Persistent threads: Gupta, Stuart and Owens, InPar 2012. Tail launches are CUDA's own iteration (CUDA C++ Programming Guide, CUDA Dynamic
Parallelism, 12.0 and newer); a block that doesn't wait for blocks that haven't begun: Sorensen, Evrard and Donaldson, OOPSLA 2016.
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    make_loop(Draft::begin(ctx)?)
}
