// gridfuse.cuh: grids of two and three dimensions, block sizes that differ, early returns, shared memory.
#include "conformance.cuh"

#include "gridfuse.cuh"

struct shape_args {
    int number;
};

__global__ void spread(gridfuse::Batch<shape_args> batch, unsigned* cells) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const shape_args& args) {
        unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        atomicAdd(&cells[2 * args.number], 1u);
        atomicAdd(&cells[2 * args.number + 1], block * 100 + thread + gridDim.z);
    });
}

__global__ void reverse(gridfuse::Batch<shape_args> batch, unsigned* cells) {
    batch.for_each_block([&](uint3, dim3, dim3 blockDim, const shape_args& args) {
        extern __shared__ unsigned buffer[];
        buffer[threadIdx.x] = threadIdx.x + args.number;
        __syncthreads();
        atomicAdd(&cells[2 * args.number + 1], buffer[blockDim.x - 1 - threadIdx.x] * (threadIdx.x + 1));
    });
}

__global__ void parent(unsigned* cells, gridfuse::Arena arena) {
    gridfuse::Aggregator<gridfuse::PerBlock, spread, 1> solid(arena, cells);
    gridfuse::Aggregator<gridfuse::PerBlock, spread, 2> linear(arena, cells);
    gridfuse::Aggregator<gridfuse::PerBlock, reverse> shared(arena, cells);
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t % 11 == 10) return;
    if (t % 3 == 0) {
        solid.launch(dim3(1 + t % 3, 1 + t % 2, 1 + t % 4), dim3(4, 2, 2), {t});
        if (t % 2 == 0) return;
    }
    if (t % 3 == 1) linear.launch(1 + t % 2, 1 + t % 40, {t});
    if (t == 50) {
        linear.launch(dim3(2, 0), 8, {t});   // no blocks: nothing
        linear.launch(3, dim3(3, 3), {t});
    }
    if (t % 16 == 5) shared.launch(1, 32, 32 * sizeof(unsigned), {t});
}

int main() {
    for (int bytes : {96, 8}) {
        Array<unsigned> cells(2 * 64);
        parent<<<2, 32>>>(cells, gridfuse::arena_for(2, 32, 0, bytes, 3));
        cells.show("cells");
    }
}
