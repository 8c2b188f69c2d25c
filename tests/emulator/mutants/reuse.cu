// Child grids that run in the parent's threads: small and large ones, of warps that aren't full, of threads that return at once and of
// threads that launch twice, with grids and blocks of several dimensions; by the warp, by the block, by size, and with a grid behind the parent,
// which is there for the first launches alone, as long as there isn't much.
#include "gridfuse.cuh"

#include <cstdio>

constexpr int kThreads = 230, kBlocks = 2, kPlaces = kBlocks * kThreads, kBlock = 32;

struct add_args { unsigned place; int count; __device__ int threads() const { return count; } };
struct mark_args { unsigned place; unsigned char by; };

__device__ void add(uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, unsigned* sums, const int* written, const add_args& args) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < args.count) atomicAdd(&sums[args.place], unsigned(written[args.place]) + i * 3u + gridDim.x * 5 + blockIdx.x * 7 + threadIdx.x * 11);
}

__device__ void mark(uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, unsigned* sums, const mark_args& args) {
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    atomicAdd(&sums[args.place], args.by * (1 + block * 5 + thread * 7 + threadIdx.z * 11 + blockIdx.y * 13));
}

// How many of the threads of a grid do something: mostly some, of a few much more, of the last block's ones little. And how many blocks they
// ask for: often too few.
__host__ __device__ int wanted(int round, unsigned place) {
    if (round == 1) return place == 5 ? 4500 : 0;
    if (round >= 2) return int(place % 3) - 1;
    if (place == 8 || place == 9) return 4500;   // two of a warp
    return place % 61 == 7 ? 300 + int(place) : place % 2 ? int(place * 37 % 90) - 9 : int(place % 5);
}
__host__ __device__ unsigned blocks(int round, unsigned place) { return wanted(round, place) > 4000 ? 150 : 1 + place % 9; }
__host__ __device__ bool returns(int round, unsigned place) { return round == 0 && place % 7 == 4; }
__host__ __device__ bool again(int round, unsigned place) { return round == 0 && place % 10 == 3; }

template <class Reuse>
__device__ void parent_body(Reuse& adds, int round, unsigned* sums, int* written) {
    const unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
    if (returns(round, place)) return;
    written[place] = int(place) + 1;
    for (int k = 0; k <= again(round, place); ++k)
        adds.launch(blocks(round, place), kBlock, {place, wanted(round, place)}, [&](dim3 grid, dim3 block, const add_args& args) {
            gridfuse::for_each_thread(grid, block, [&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
                add(threadIdx, blockIdx, gridDim, blockDim, sums, written, args);
            });
        });
}

template <class Assignment>
__global__ void parent(int round, unsigned* sums, int* written) {
    gridfuse::ThreadReuse<Assignment, add_args, kBlock> adds;
    parent_body(adds, round, sums, written);
    adds.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, const add_args& args) {
        add(threadIdx, blockIdx, gridDim, blockDim, sums, written, args);
    });
}

__global__ void add_behind(gridfuse::StreamBatch<add_args, kBlock> batch, unsigned* sums, int* written) {
    batch.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, const add_args& args) {
        add(threadIdx, blockIdx, gridDim, blockDim, sums, written, args);
    });
}

__global__ void parent_in_stream(int round, unsigned* sums, int* written, gridfuse::StreamArena arena) {
    gridfuse::ThreadReuseInStream<add_behind> adds(arena);
    parent_body(adds, round, sums, written);
    adds.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, const add_args& args) {
        add(threadIdx, blockIdx, gridDim, blockDim, sums, written, args);
    });
}

template <class Assignment>
__global__ void mark_parent(unsigned* sums) {
    gridfuse::ThreadReuse<Assignment, mark_args, 3, 2, 2> marks;
    const unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place % 3 == 0) marks.launch(dim3(1 + place % 4, 2, 1 + place % 2), dim3(3, 2, 2), {place, (unsigned char)(1 + place % 2)});
    if (place % 3 == 1) marks.launch(place == 1 ? dim3(1, 1 << 16) : dim3(0), dim3(3, 2, 2), {place, 1});   // CUDA refuses both
    marks.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, const mark_args& args) {
        mark(threadIdx, blockIdx, gridDim, blockDim, sums, args);
    });
}

unsigned expected[kPlaces];

void expect(int round) {
    for (unsigned place = 0; place < kPlaces; ++place)
        for (int k = 0; k <= again(round, place) && !returns(round, place); ++k)
            for (int i = 0; i < wanted(round, place) && i < int(blocks(round, place)) * kBlock; ++i)
                expected[place] += place + 1 + i * 3u + blocks(round, place) * 5 + i / kBlock * 7 + i % kBlock * 11;
}

void expect_marks() {
    for (unsigned place = 0; place < kPlaces; place += 3)
        for (unsigned block = 0; block < (1 + place % 4) * 2 * (1 + place % 2); ++block)
            for (unsigned thread = 0; thread < 12; ++thread)
                expected[place] += (1 + place % 2) * (1 + block * 5 + thread * 7 + thread / 6 * 11 + block / (1 + place % 4) % 2 * 13);
}

int main() {
    cudaStream_t stream;
    unsigned *sums, got[kPlaces];
    int* written;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(&sums, sizeof got);
    cudaMalloc(&written, kPlaces * sizeof *written);
    cudaMemsetAsync(sums, 0, sizeof got, stream);
    for (int round = 0; round < 2; ++round) {
        parent<gridfuse::ByWarp><<<kBlocks, kThreads, 0, stream>>>(round, sums, written);
        parent<gridfuse::ByBlock><<<kBlocks, kThreads, 0, stream>>>(round, sums, written);
        parent<gridfuse::BySize><<<kBlocks, kThreads, 0, stream>>>(round, sums, written);
        for (int k = 0; k < 3; ++k) expect(round);
    }
    mark_parent<gridfuse::ByWarp><<<kBlocks, kThreads, 0, stream>>>(sums);
    mark_parent<gridfuse::ByBlock><<<kBlocks, kThreads, 0, stream>>>(sums);
    mark_parent<gridfuse::BySize><<<kBlocks, kThreads, 0, stream>>>(sums);
    for (int k = 0; k < 3; ++k) expect_marks();
    // Much, then little until nothing follows any more, and much again.
    for (int k = 0; k < 20; ++k) {
        const int round = k == 0 || k == 19 ? 0 : k == 18 ? 1 : 2;
        parent_in_stream<<<kBlocks, kThreads, 0, stream>>>(round, sums, written,
            gridfuse::followed_at_need<add_behind, gridfuse::kNotKnown>(kBlocks, kThreads, stream, sums, written));
        expect(round);
        if (k % 6 == 5) cudaStreamSynchronize(stream);
    }
    cudaMemcpyAsync(got, sums, sizeof got, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    int wrong = 0;
    for (int place = 0; place < kPlaces; ++place) wrong += got[place] != expected[place];
    std::printf("%s\n", wrong == 0 ? "right" : "wrong");
    return wrong == 0 ? 0 : 1;
}
