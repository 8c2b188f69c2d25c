// Threads that go on launching when there is no room behind the parent any more: what they launch then has, all together, more blocks than
// 2^32, which would stop the parent if they had room. However often they come, few of them are counted.
#include <cstdio>
#include <tuple>

// The cursor is looked at.
#define private public
#include "gridfuse.cuh"
#undef private

constexpr int kThreads = 12, kRounds = 3, kRoom = 2, kLarge = 6;

struct add_args { unsigned place; };

__global__ void add_behind(gridfuse::StreamBatch<add_args, 6> batch, unsigned* sums) {
    batch.for_each_block([&](uint3, dim3, dim3, const add_args& args) { atomicAdd(&sums[args.place], 1u); });
}

__global__ void parent(unsigned* sums, gridfuse::StreamArena arena) {
    gridfuse::Aggregator<gridfuse::PerGridInStream, add_behind> adds(arena);
    const auto alone = [&](dim3 grid, dim3, const add_args& args) { atomicAdd(&sums[args.place], grid.x * 6u); };
    for (int k = 0; k < kRoom; ++k) {
        if ((threadIdx.x + k) % 3 == 0) atomicAdd(&sums[threadIdx.x], 0u);   // threads of a warp drift apart
        adds.launch(2, 6, {threadIdx.x}, alone);
    }
    __syncthreads();   // there is no room any more
    for (int k = 0; k < kLarge; ++k) adds.launch(1u << 29, 6, {threadIdx.x}, alone);
    __syncthreads();
    // Each of them once without a look, and once after a look that others were quicker than.
    const unsigned counted = gridfuse::detail::launches_in(arena.state(arena.turn_, 0).cursor);
    if (threadIdx.x == 0 && counted > (kRoom + 2) * kThreads) sums[0] = 0;
}

int main() {
    unsigned *sums, got[kThreads];
    cudaMalloc(&sums, sizeof got);
    int wrong = 0;
    for (int round = 0; round < kRounds; ++round) {
        cudaMemset(sums, 0, sizeof got);
        parent<<<1, kThreads>>>(sums, gridfuse::followed_by<add_behind, kRoom>(1, kThreads, 0, sums));
        cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost);
        for (unsigned sum : got) wrong += sum != kRoom * 2 * 6 + kLarge * 6 * (1u << 29);
    }
    std::printf("%s\n", wrong == 0 ? "right" : "wrong");
    return wrong == 0 ? 0 : 1;
}
