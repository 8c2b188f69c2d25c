// More launches than there is memory for, from loops of different lengths: those that fit are written down while others that
// don't are taken back. Every launch runs once.
#include <cstdio>

#include "gridfuse.cuh"

constexpr int kThreads = 40, kBlocks = 5, kMost = 3;

__host__ __device__ inline int launches_of(int t) { return (t * 7 + 3) % (kMost + 1); }

struct count_args { int slot; };
__global__ void count_aggregated(gridfuse::Batch<count_args> batch, unsigned* counts) {
    batch.for_each_block([&](uint3, dim3, dim3, const count_args& args) { atomicAdd(&counts[args.slot], 1u); });
}

template <class Granularity>
__global__ void parent(unsigned* counts, gridfuse::Arena arena) {
    gridfuse::Aggregator<Granularity, count_aggregated> launches(arena, counts);
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < launches_of(t); ++i) {
        if ((t + i) % 3 == 0) atomicAdd(&counts[kMost * t + i], 0u);   // threads of a warp drift apart
        launches.launch(1, 1, {kMost * t + i});
    }
}

template <class Granularity>
bool run(const char* name, unsigned* counts) {
    bool right = true;
    for (int bytes = 8; bytes <= 72; bytes += 4) {
        cudaMemset(counts, 0, kBlocks * kThreads * kMost * sizeof(unsigned));
        parent<Granularity><<<kBlocks, kThreads>>>(counts, gridfuse::arena_for(kBlocks, kThreads, 0, bytes));
        if (cudaDeviceSynchronize() != cudaSuccess) return false;
        for (int t = 0; t < kBlocks * kThreads; ++t)
            for (int i = 0; i < kMost; ++i) right = right && counts[kMost * t + i] == (i < launches_of(t) ? 1 : 0);
    }
    if (!right) std::printf("wrong: %s\n", name);
    return right;
}

int main() {
    unsigned* counts;
    cudaMallocManaged(&counts, kBlocks * kThreads * kMost * sizeof(unsigned));
    bool right = run<gridfuse::PerGrid>("per grid", counts);
    right = run<gridfuse::PerBlock>("per block", counts) && right;
    right = run<gridfuse::PerWarp>("per warp", counts) && right;
    std::printf("%s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
}
