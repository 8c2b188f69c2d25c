// What runs behind a parent by warps: of each grid those that have something to do. A thread launches more often than there is room for
// in every second round, and runs what finds none by itself.
#include "gridfuse.cuh"

#include <cstdio>

constexpr int kThreads = 40, kRounds = 4, kPlaces = kThreads, kBlock = 64;

struct add_args { unsigned place; int count; __device__ int threads() const { return count; } };

__device__ void add(uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, unsigned* sums, const add_args& args) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < args.count) atomicAdd(&sums[args.place], 1 + i * 3u + gridDim.x * 5 + blockIdx.x * 7 + threadIdx.x * 11);
}

__global__ void add_behind(gridfuse::StreamBatch<add_args, kBlock> batch, unsigned* sums) {
    batch.for_each_warp([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, const add_args& args) {
        add(threadIdx, blockIdx, gridDim, blockDim, sums, args);
    });
}

// How many of the threads of a grid do something: none, a part of a warp, all, and more than there are.
__host__ __device__ int wanted(unsigned thread, int k) { return int(thread * 37 + k * 61) % 290 - 20; }
__host__ __device__ unsigned blocks(unsigned thread) { return 1 + thread % 4; }

__global__ void parent(int launches, unsigned* sums, gridfuse::StreamArena arena) {
    gridfuse::Aggregator<gridfuse::PerGridInStream, add_behind> adds(arena);
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= kThreads) return;
    for (int k = 0; k < launches; ++k)
        adds.launch(blocks(thread), kBlock, {thread, wanted(thread, k)}, [&](dim3 grid, dim3 block, const add_args& args) {
            gridfuse::for_each_thread(grid, block, [&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
                add(threadIdx, blockIdx, gridDim, blockDim, sums, args);
            });
        });
}

int main() {
    cudaStream_t stream;
    unsigned *sums, got[kPlaces], expected[kPlaces] = {};
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(&sums, sizeof got);
    cudaMemsetAsync(sums, 0, sizeof got, stream);
    for (int round = 0; round < kRounds; ++round) {
        const int launches = round % 2 == 0 ? 2 : 5;
        parent<<<2, 32, 0, stream>>>(launches, sums, gridfuse::followed_by<add_behind, 2>(2, 32, stream, sums));
        for (unsigned thread = 0; thread < kThreads; ++thread)
            for (int k = 0; k < launches; ++k)
                for (int i = 0; i < wanted(thread, k) && i < int(blocks(thread)) * kBlock; ++i)
                    expected[thread] += 1 + i * 3u + blocks(thread) * 5 + i / kBlock * 7 + i % kBlock * 11;
    }
    cudaMemcpyAsync(got, sums, sizeof got, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    int wrong = 0;
    for (int place = 0; place < kPlaces; ++place) wrong += got[place] != expected[place];
    std::printf("%s\n", wrong == 0 ? "right" : "wrong");
    return wrong == 0 ? 0 : 1;
}
