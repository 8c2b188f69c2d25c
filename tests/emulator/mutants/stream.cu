// What runs behind a parent in its stream, launch after launch in the same memory: with other launches between them that collect
// theirs at another granularity, several launches of a thread, grids that CUDA refuses, and blocks that run several others.
#include "gridfuse.cuh"

#include <cstdio>

constexpr int kThreads = 70, kRounds = 4, kPlaces = 2 * kThreads;

struct add_args { unsigned place; unsigned value; };

__device__ void add(uint3 blockIdx, dim3 gridDim, unsigned* sums, unsigned scale, const add_args& args) {
    atomicAdd(&sums[args.place], scale * (args.value + blockIdx.x * 3 + threadIdx.x + gridDim.x * 5));
}

__global__ void add_behind(gridfuse::StreamBatch<add_args, 6> batch, unsigned* sums, unsigned scale) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3, const add_args& args) { add(blockIdx, gridDim, sums, scale, args); });
}

__global__ void add_together(gridfuse::Batch<add_args> batch, unsigned* sums, unsigned scale) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3, const add_args& args) { add(blockIdx, gridDim, sums, scale, args); });
}

// Thread 3 launches many blocks; thread 5 only what CUDA refuses.
template <class Adds>
__device__ void launch(Adds& adds, unsigned thread, int round) {
    const dim3 grid = thread == 3 ? dim3(400) : thread == 5 ? dim3(1, 65536) : dim3(1 + thread % 4);
    if ((thread + round) % 3 != 0) adds.launch(grid, 6, {2 * thread, thread});
    if (thread % 2 == 0) adds.launch(2, 6, {2 * thread + 1, 9});
}

__global__ void parent(int round, gridfuse::StreamArena arena) {
    gridfuse::Aggregator<gridfuse::PerGridInStream, add_behind> adds(arena);
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread < kThreads) launch(adds, thread, round);
}

__global__ void other_parent(unsigned* sums, int round, gridfuse::Arena arena) {
    gridfuse::Aggregator<gridfuse::PerGrid, add_together> adds(arena, sums, 1u);
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread < kThreads) launch(adds, thread, round);
}

int main() {
    cudaStream_t stream;
    unsigned *sums, got[kPlaces], expected[kPlaces] = {};
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(&sums, sizeof got);
    cudaMemsetAsync(sums, 0, sizeof got, stream);
    for (int round = 0; round < kRounds; ++round) {
        parent<<<5, 16, 0, stream>>>(round, gridfuse::followed_by<add_behind, 6>(5, 16, stream, sums, 7u));
        // Smaller than the memory behind the parent, and with as many bytes that begin as zeros.
        if (round != 1) other_parent<<<2, 35, 0, stream>>>(sums, round, gridfuse::arena_for(2, 35, stream, 128));
        const unsigned scale = round != 1 ? 8 : 7;
        for (unsigned thread = 0; thread < kThreads; ++thread) {
            const auto count = [&](unsigned place, unsigned blocks, unsigned value) {
                for (unsigned b = 0; b < blocks; ++b)
                    for (unsigned t = 0; t < 6; ++t) expected[place] += scale * (value + b * 3 + t + blocks * 5);
            };
            if ((thread + round) % 3 != 0) count(2 * thread, thread == 3 ? 400 : thread == 5 ? 0 : 1 + thread % 4, thread);
            if (thread % 2 == 0) count(2 * thread + 1, 2, 9);
        }
    }
    cudaMemcpyAsync(got, sums, sizeof got, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    int wrong = 0;
    for (int place = 0; place < kPlaces; ++place) wrong += got[place] != expected[place];
    std::printf("%s\n", wrong == 0 ? "right" : "wrong");
    return wrong == 0 ? 0 : 1;
}
