//! `outline-iteration`

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Family, Measured, Offered, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::transforms::rounds::outline_loop;

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "outline-iteration",
    title: "Run the host's loop in one grid",
    doc: DOC,
    options: &[],
    target: Target::Place(Offered::ByDiagnostics),
    family: Family::Iteration,
    measured: Measured::No,
    tunes: None,
    unattended: false,
    undo: Undo::Not(
        "the host's loop has become a kernel, and what each round did by calls of CUDA's runtime is no more in the text",
    ),
    run: apply,
};

const DOC: &str = r#"Runs a loop of the host as one cooperative grid that loops by itself. The host's loop launches kernels in rounds until a flag
says that nothing is left.

The host waits in each round: for the kernels, and for the copy of the flag. That takes 10 µs and more, and many rounds of a search through
a long graph compute for less time. In the grid, a round costs only the time that its blocks need to meet.

It pays where rounds are short ([measured](../scale.md), as `outlined`). Where each round keeps the whole GPU busy there is nothing to gain, and a
grid whose blocks take turns may even take longer.

The kernels' bodies become functions. The loop moves into a kernel as it stands: launches become `rounds.run`, which runs all blocks of a
grid, a few for each block that there is. `cudaMemset` becomes `rounds.fill`; copies of a flag become `rounds.store` and `rounds.load`;
`++level` and `std::swap(a, b)` stay, in variables that every thread has. Each of these begins when those before are done, as in a stream:
the blocks meet in between. What one block reads, it reads for all, so all threads decide alike.

`gridfuse::run_rounds` launches as many blocks as the device can run at a time, and no more than the largest grid has. It waits for them,
and gives the host's variables the values that the loop left in them. If the device has no cooperative launches, one block runs all.

## Needs
- In the loop nothing but launches, `cudaMemset`, copies of single variables (`&flag`) and within the device's memory, waits, checks of errors, and
  statements about numbers and pointers. Take out of it what prints, measures times, allocates memory or calls other functions.
- One stream, and blocks and shared memory that are the same in all rounds. Grids may differ.
- Kernels whose blocks don't wait for each other, whose barriers all threads of a block reach, or none, and that launch nothing: apply `serialize` first.
- Device code can reach the memory that the host reads or writes through a pointer (`*flag`): it is mapped or managed.
- Kernels that are defined above the function with the loop, which is neither a template nor a member.

Errors are checked once, after the loop, as the loop did it for its last copy and where it asked for CUDA's last error. If CUDA refuses a
launch, that of an empty grid for example, the loop goes on; `cudaGetLastError` reports it after the loop.

## Assumes
- Where the size of a grid changes, CUDA refuses none of the launches.
- Where the loop looks for errors, no call fails: what the program does about an error, it does once, after the loop.
- A variable that the function has by reference is no other variable of the loop, nor memory that the kernels use.
- The host may now compute in front of the loop what it computed in its rounds before. If that divides or reads through a pointer, it can
  do so where there is no round, and nothing in the loop changes it.

## Before
```cuda
__global__ void relax(const int* row, const int* col, int* dist, int* changed, int level, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || dist[v] != level) return;
    for (int e = row[v]; e < row[v + 1]; ++e)
        if (atomicCAS(&dist[col[e]], -1, level + 1) == -1) *changed = 1;
}

int search(const int* row, const int* col, int* dist, int* changed, int n) {
    int level = 0;
    int again;
    do {
        cudaMemset(changed, 0, sizeof(int));
        relax<<<(n + 255) / 256, 256>>>(row, col, dist, changed, level, n);
        cudaMemcpy(&again, changed, sizeof(int), cudaMemcpyDeviceToHost);
        ++level;
    } while (again);
    return level;
}
```

## After
```cuda
#include "gridfuse.cuh"

// The body of relax, for any block of any grid.
__device__ __forceinline__ void relax_body(uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                                           const int* row, const int* col, int* dist, int* changed,
                                           int level, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || dist[v] != level) return;
    for (int e = row[v]; e < row[v + 1]; ++e)
        if (atomicCAS(&dist[col[e]], -1, level + 1) == -1) *changed = 1;
}

// What a plain launch of relax runs.
__global__ void relax(const int* row, const int* col, int* dist, int* changed, int level, int n) {
    relax_body(blockIdx, gridDim, blockDim, row, col, dist, changed, level, n);
}

// What the loop of search leaves in the host's variables.
struct relax_state { int level; };

// The loop of search, in one grid: its blocks meet between the kernels.
__global__ void relax_rounds(gridfuse::Rounds<relax_state> rounds, int* changed, dim3 blocks,
                             const int* row, const int* col, int* dist, int n) {
    int level = rounds.state().level;
    int again;
    do {
        rounds.fill(changed, 0, sizeof(int));
        rounds.run(blocks, [&](uint3 blockIdx, dim3 gridDim) {
            relax_body(blockIdx, gridDim, blockDim, row, col, dist, changed, level, n);
        });
        rounds.load(&again, changed, sizeof(int));
        ++level;
    } while (again);
    rounds.finish({level});
}

int search(const int* row, const int* col, int* dist, int* changed, int n) {
    int level = 0;
    relax_state state = {level};
    gridfuse::run_rounds<relax_rounds>((n + 255) / 256, 256, /*shared_bytes=*/0, /*stream=*/0,
                                       state, changed, (n + 255) / 256, row, col, dist, n);
    level = state.level;
    return level;
}
```

## Source
Pai and Pingali: A Compiler for Throughput Optimization of Graph Algorithms on GPUs, OOPSLA 2016, §4.1 (iteration outlining), and Lowering IrGL to
CUDA (Pipe, Iterate). Blocks that meet while all are resident: CUDA C++ Programming Guide, Cooperative Groups, "Grid Synchronization";
Xiao and Feng, IPDPS 2010.
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    outline_loop(ctx)
}
