// A thread that goes on launching when there is no room behind the parent any more: what it launches then has, all together, more blocks
// than 2^32, which would stop the parent if they were counted.
#include "gridfuse.cuh"

#include <cstdio>

constexpr int kRounds = 3, kRoom = 2, kLarge = 14;

struct add_args { unsigned place; };

__global__ void add_behind(gridfuse::StreamBatch<add_args, 6> batch, unsigned* sums) {
    batch.for_each_block([&](uint3, dim3, dim3, const add_args& args) { atomicAdd(&sums[args.place], 1u); });
}

__global__ void parent(unsigned* sums, gridfuse::StreamArena arena) {
    gridfuse::Aggregator<gridfuse::PerGridInStream, add_behind> adds(arena);
    const auto alone = [&](dim3 grid, dim3, const add_args& args) { atomicAdd(&sums[args.place], grid.x * 6u); };
    for (int k = 0; k < kRoom; ++k) adds.launch(2, 6, {0}, alone);
    for (int k = 0; k < kLarge; ++k) adds.launch(1u << 29, 6, {0}, alone);
}

int main() {
    unsigned *sums, got[kRounds];
    cudaMalloc(&sums, sizeof got);
    cudaMemset(sums, 0, sizeof got);
    for (int round = 0; round < kRounds; ++round)
        parent<<<1, 1>>>(sums + round, gridfuse::followed_by<add_behind, kRoom>(1, 1, 0, sums + round));
    cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (unsigned sum : got) wrong += sum != kRoom * 2 * 6 + kLarge * 6 * (1u << 29);
    std::printf("%s\n", wrong == 0 ? "right" : "wrong");
    return wrong == 0 ? 0 : 1;
}
