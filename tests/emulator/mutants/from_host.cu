// Launches that are left to the host: of two kernels, one of which launches itself again; by two threads of the host, in a
// stream each.
#include "gridfuse.cuh"

#include <cstdio>
#include <thread>

using G = gridfuse::PerGridFromHost;
constexpr int kLevels = 8;

struct chain_args { int level; };
struct leaf_args { unsigned id; };

__global__ void leaf_aggregated(gridfuse::NestedBatch<leaf_args> batch, unsigned* marks) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3, const leaf_args& args) {
        atomicAdd(&marks[kLevels], args.id * 8 + blockIdx.x * gridDim.x + threadIdx.x);
    });
}

template <class Chains, class Leaves>
__device__ void chain_body(Chains& chains, Leaves& leaves, uint3 blockIdx, unsigned* marks, int level) {
    atomicAdd(&marks[level], 1u);
    if (threadIdx.x % 4 == 1) leaves.launch(2, 3, {threadIdx.x});
    if (level + 1 < kLevels && blockIdx.x == 0 && threadIdx.x == 5) chains.launch(2, 6, {level + 1});
}

__global__ void chain_aggregated(gridfuse::NestedBatch<chain_args> batch, unsigned* marks) {
    gridfuse::Aggregator<G, chain_aggregated> chains(batch.arena(), marks);
    gridfuse::Aggregator<G, leaf_aggregated> leaves(batch.arena(), marks);
    batch.for_each_block([&](uint3 blockIdx, dim3, dim3, const chain_args& args) {
        chain_body(chains, leaves, blockIdx, marks, args.level);
    });
}

__global__ void chain(unsigned* marks, gridfuse::Arena arena) {
    gridfuse::Aggregator<G, chain_aggregated> chains(arena, marks);
    gridfuse::Aggregator<G, leaf_aggregated> leaves(arena, marks);
    chain_body(chains, leaves, blockIdx, marks, 0);
}

// Every level has two blocks of six threads, of which 1 and 5 launch leaves; every leaf, two blocks of three.
bool right() {
    cudaStream_t stream;
    unsigned* marks;
    unsigned got[kLevels + 1];
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(&marks, sizeof got);
    bool same = true;
    for (int turn = 0; turn < 2; ++turn) {
        cudaMemsetAsync(marks, 0, sizeof got, stream);
        chain<<<2, 6, 0, stream>>>(
            marks, gridfuse::launchpad_for<leaf_aggregated, chain_aggregated>(2, 6, stream, 64, 2, 64 * 4200));
        cudaMemcpyAsync(got, marks, sizeof got, cudaMemcpyDeviceToHost, stream);
        cudaStreamSynchronize(stream);
        for (int k = 0; k < kLevels; ++k) same = same && got[k] == 12;
        unsigned leaf = 0;
        for (unsigned id : {1u, 5u})
            for (unsigned b = 0; b < 2; ++b)
                for (unsigned t = 0; t < 3; ++t) leaf += id * 8 + b * 2 + t;
        same = same && got[kLevels] == 2 * kLevels * leaf;
    }
    cudaStreamDestroy(stream);
    cudaFree(marks);
    return same;
}

// What one parent has left to the host stays, though another one takes a launchpad and gives it back meanwhile.
bool apart() {
    cudaStream_t streams[2];
    unsigned* marks[2];
    unsigned got[kLevels + 1];
    for (int k = 0; k < 2; ++k) {
        cudaStreamCreateWithFlags(&streams[k], cudaStreamNonBlocking);
        cudaMalloc(&marks[k], sizeof got);
        cudaMemsetAsync(marks[k], 0, sizeof got, streams[k]);
    }
    bool same;
    {
        const auto held = gridfuse::launchpad_for<leaf_aggregated, chain_aggregated>(2, 6, streams[0], 64, 2, 64 * 4200);
        chain<<<2, 6, 0, streams[0]>>>(marks[0], held);
        cudaStreamSynchronize(streams[0]);
        chain<<<2, 6, 0, streams[1]>>>(
            marks[1], gridfuse::launchpad_for<leaf_aggregated, chain_aggregated>(2, 6, streams[1], 64, 2, 64 * 4200));
        cudaDeviceSynchronize();
        cudaMemcpy(got, marks[0], sizeof got, cudaMemcpyDeviceToHost);
        same = got[0] == 12 && got[1] == 0 && got[kLevels] == 0;
    }
    cudaDeviceSynchronize();
    for (int k = 0; k < 2; ++k) {
        cudaMemcpy(got, marks[k], sizeof got, cudaMemcpyDeviceToHost);
        same = same && got[1] == 12 && got[kLevels - 1] == 12;
        cudaStreamDestroy(streams[k]);
        cudaFree(marks[k]);
    }
    return same;
}

int main() {
    bool first = false;
    std::thread other([&] { first = right(); });
    const bool second = right();
    other.join();
    const bool all = first && second && apart();
    std::printf("%s\n", all ? "right" : "wrong");
    return all ? 0 : 1;
}
