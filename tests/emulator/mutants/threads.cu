// What runs behind a parent thread by thread: of each grid those that have something to do. A thread launches more often than there is room
// for in every second round, and runs what finds none by itself. Blocks are small, so that there are many of them.
#include "gridfuse.cuh"

#include <cstdio>

constexpr int kRounds = 6, kPlaces = 2080, kBlock = 64;

struct add_args { unsigned place; int count; __device__ int threads() const { return count; } };

__device__ void add(uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, unsigned* sums, const add_args& args) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < args.count) atomicAdd(&sums[args.place], 1 + i * 3u + gridDim.x * 5 + blockIdx.x * 7 + threadIdx.x * 11);
}

__global__ void add_behind(gridfuse::StreamBatch<add_args, kBlock> batch, unsigned* sums) {
    batch.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, const add_args& args) {
        add(threadIdx, blockIdx, gridDim, blockDim, sums, args);
    });
}

// How many of the threads of a grid do something: none, a part of a warp, all, and more than there are; of a few grids very many. Or one.
__host__ __device__ int wanted(bool tiny, unsigned thread, int k) {
    if (thread % 97 == 11) return 1500;
    return tiny ? 1 : int(thread * 37 + k * 61) % 290 - 20;
}
__host__ __device__ unsigned blocks(unsigned thread) { return thread % 97 == 11 ? 25 : 1 + thread % 4; }

__host__ __device__ bool launches_some(bool tiny, unsigned thread) { return tiny || thread % 8 == 3 || thread % 97 == 11; }

__global__ void parent(bool tiny, unsigned threads, int launches, unsigned* sums, gridfuse::StreamArena arena) {
    gridfuse::Aggregator<gridfuse::PerGridInStream, add_behind> adds(arena);
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= threads || !launches_some(tiny, thread)) return;
    for (int k = 0; k < launches; ++k) {
        if (launches == 2)   // there is room for them
            adds.launch(blocks(thread), kBlock, {thread, wanted(tiny, thread, k)});
        else
            adds.launch(blocks(thread), kBlock, {thread, wanted(tiny, thread, k)}, [&](dim3 grid, dim3 block, const add_args& args) {
                gridfuse::for_each_thread(grid, block, [&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
                    add(threadIdx, blockIdx, gridDim, blockDim, sums, args);
                });
            });
    }
}

int main() {
    cudaStream_t stream;
    unsigned *sums, got[kPlaces], expected[kPlaces] = {};
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(&sums, sizeof got);
    cudaMemsetAsync(sums, 0, sizeof got, stream);
    for (int round = 0; round < kRounds; ++round) {
        const int launches = round % 2 == 0 ? 2 : 3;
        // Many blocks, one of many threads, and many blocks again, in the same memory.
        const bool tiny = round % 3 == 1;
        const unsigned grid = tiny ? 1 : 130, block = tiny ? 1024 : 16, threads = grid * block - 3;
        parent<<<grid, block, 0, stream>>>(tiny, threads, launches, sums, gridfuse::followed_by<add_behind, 2>(grid, block, stream, sums));
        for (unsigned thread = 0; thread < threads; ++thread)
            for (int k = 0; k < launches && launches_some(tiny, thread); ++k)
                for (int i = 0; i < wanted(tiny, thread, k) && i < int(blocks(thread)) * kBlock; ++i)
                    expected[thread] += 1 + i * 3u + blocks(thread) * 5 + i / kBlock * 7 + i % kBlock * 11;
    }
    cudaMemcpyAsync(got, sums, sizeof got, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    int wrong = 0;
    for (int place = 0; place < kPlaces; ++place) wrong += got[place] != expected[place];
    std::printf("%s\n", wrong == 0 ? "right" : "wrong");
    return wrong == 0 ? 0 : 1;
}
