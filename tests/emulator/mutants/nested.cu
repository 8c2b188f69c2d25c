// A tree of launches, collected at every level: a kernel that launches itself and, beside that, another one.
#include "gridfuse.cuh"

#include <cstdio>

constexpr int kLevels = 4;

__host__ __device__ inline unsigned mix(unsigned hash, unsigned value) { return (hash ^ value) * 0x9e3779b1u + (hash >> 15); }

struct tree_args { unsigned id; int level; };
struct leaf_args { unsigned id; };

__global__ void leaf_aggregated(gridfuse::NestedBatch<leaf_args> batch, unsigned* marks) {
    batch.for_each_block([&](uint3 blockIdx, dim3, dim3, const leaf_args& args) {
        atomicAdd(&marks[kLevels], mix(args.id, blockIdx.x) + threadIdx.x);
    });
}

template <class G>
__global__ void tree_aggregated(gridfuse::NestedBatch<tree_args> batch, unsigned* marks);

template <class Trees, class Leaves>
__device__ void tree_body(Trees& trees, Leaves& leaves, uint3 blockIdx, dim3 gridDim, dim3 blockDim, unsigned* marks, unsigned id,
                          int level) {
    __shared__ unsigned first;
    const unsigned thread = mix(mix(id, blockIdx.x + gridDim.x), threadIdx.x);
    if (threadIdx.x == 0) first = thread;
    __syncthreads();
    atomicAdd(&marks[level], thread ^ first ^ blockDim.x);
    if (thread % 9 == 1) leaves.launch(1 + thread % 2, 3, {thread});
    if (level + 1 == kLevels || thread % 12 != 0) return;
    trees.launch(1 + thread % 3, 1 + thread / 5 % 40, {thread, level + 1});
}

template <class G>
__global__ void tree_aggregated(gridfuse::NestedBatch<tree_args> batch, unsigned* marks) {
    gridfuse::Aggregator<G, tree_aggregated<G>> trees(batch.arena(), marks);
    gridfuse::Aggregator<G, leaf_aggregated> leaves(batch.arena(), marks);
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const tree_args& args) {
        tree_body(trees, leaves, blockIdx, gridDim, blockDim, marks, args.id, args.level);
    });
}

template <class G>
__global__ void tree(unsigned* marks, gridfuse::Arena arena) {
    gridfuse::Aggregator<G, tree_aggregated<G>> trees(arena, marks);
    gridfuse::Aggregator<G, leaf_aggregated> leaves(arena, marks);
    tree_body(trees, leaves, blockIdx, gridDim, blockDim, marks, 5, 0);
}

void grow(unsigned id, unsigned grid, unsigned block, int level, unsigned* marks) {
    for (unsigned b = 0; b < grid; ++b) {
        const unsigned first = mix(mix(id, b + grid), 0);
        for (unsigned t = 0; t < block; ++t) {
            const unsigned thread = mix(mix(id, b + grid), t);
            marks[level] += thread ^ first ^ block;
            if (thread % 9 == 1)
                for (unsigned i = 0; i < 3 * (1 + thread % 2); ++i) marks[kLevels] += mix(thread, i / 3) + i % 3;
            if (level + 1 < kLevels && thread % 12 == 0) grow(thread, 1 + thread % 3, 1 + thread / 5 % 40, level + 1, marks);
        }
    }
}

template <class G>
bool right(int units) {
    unsigned expected[kLevels + 1] = {}, got[2][kLevels + 1];
    grow(5, 3, 10, 0, expected);
    cudaStream_t streams[2];
    unsigned* marks[2];
    for (int i = 0; i < 2; ++i) {
        cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
        cudaMalloc(&marks[i], sizeof expected);
    }
    bool same = true;
    for (int turn = 0; turn < 2; ++turn) {
        for (int i = 0; i < 2; ++i) {
            cudaMemsetAsync(marks[i], 0, sizeof expected, streams[i]);
            tree<G><<<3, 10, 0, streams[i]>>>(marks[i], gridfuse::arena_for(3, 10, streams[i], 64, 2, units * 4200));
        }
        for (int i = 0; i < 2; ++i) {
            cudaMemcpyAsync(got[i], marks[i], sizeof expected, cudaMemcpyDeviceToHost, streams[i]);
            cudaStreamSynchronize(streams[i]);
            for (int k = 0; k <= kLevels; ++k) same = same && got[i][k] == expected[k];
        }
    }
    for (int i = 0; i < 2; ++i) {
        cudaStreamDestroy(streams[i]);
        cudaFree(marks[i]);
    }
    return same;
}

int main() {
    bool all = true;
    for (int units : {100, 6, 0}) all = right<gridfuse::PerWarp>(units) && right<gridfuse::PerBlock>(units) && right<gridfuse::PerGrid>(units) && all;
    std::printf("%s\n", all ? "right" : "wrong");
    return all ? 0 : 1;
}
