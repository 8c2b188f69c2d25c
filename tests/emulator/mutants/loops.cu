// Kernels that launch themselves into the tail stream, as loops: every iteration reads what others of the one before have written.
#include <cstdio>

#include "gridfuse.cuh"

constexpr int kThreads = 5, kNumbers = 48, kRounds = 6;

__host__ __device__ inline unsigned blocks_in(int round, bool grows) { return grows ? 1 + round * 4 % 9 : 4; }

struct mix_args { const unsigned* from; unsigned* to; int round; };
__global__ void mix_loop(gridfuse::Iterations<mix_args> iterations, bool grows);

template <class Launch>
__device__ void mix(uint3 blockIdx, dim3 gridDim, const unsigned* from, unsigned* to, int round, const Launch& launch) {
    __shared__ unsigned sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, from[(blockIdx.x * 7 + threadIdx.x * 3) % kNumbers]);
    __syncthreads();
    // Not the last thing that it does: an iteration begins when all are done.
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 2 && round + 1 < kRounds) launch();
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < kNumbers; i += gridDim.x * kThreads) to[i] = 3 * from[(i * 5 + 1) % kNumbers] + sum;
}

__global__ void mix_loop(gridfuse::Iterations<mix_args> iterations, bool grows) {
    gridfuse::Loop<mix_loop> mixes(iterations, grows);
    mixes.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const mix_args& args) {
        mix(blockIdx, gridDim, args.from, args.to, args.round, [&] {
            mixes.launch(blocks_in(args.round + 1, grows), blockDim, {args.to, const_cast<unsigned*>(args.from), args.round + 1});
        });
    });
}

__global__ void mix_block(const unsigned* from, unsigned* to, int round) {
    gridfuse::BlockLoop<mix_args> mixes({from, to, round});
    while (mixes.next()) {
        const mix_args args = mixes.args();
        mix(blockIdx, gridDim, args.from, args.to, args.round,
            [&] { mixes.launch({args.to, const_cast<unsigned*>(args.from), args.round + 1}); });
    }
}

// No barrier: a thread may launch when another one doesn't know yet what it has been given.
__global__ void count_block(unsigned* counts, const unsigned* from, unsigned* to, int round) {
    gridfuse::BlockLoop<mix_args> launches({from, to, round});
    while (launches.next()) {
        const mix_args args = launches.args();
        atomicAdd(&counts[args.round], 1u);
        if (threadIdx.x == 0 && args.round + 1 < kRounds) launches.launch({from, to, args.round + 1});
    }
}

bool count(unsigned* counts) {
    for (int round = 0; round < kRounds; ++round) counts[round] = 0;
    count_block<<<1, kThreads>>>(counts, nullptr, nullptr, 0);
    bool right = cudaDeviceSynchronize() == cudaSuccess;
    for (int round = 0; round < kRounds; ++round) right = right && counts[round] == kThreads;
    if (!right) std::printf("wrong: count\n");
    return right;
}

enum Kind { kFixed, kGrowing, kBlock };

bool run(const char* name, Kind kind, unsigned* a, unsigned* b) {
    unsigned expected[kNumbers], next[kNumbers];
    for (int i = 0; i < kNumbers; ++i) a[i] = b[i] = expected[i] = i * i + 1;
    for (int round = 0; round < kRounds; ++round) {
        const unsigned blocks = kind == kBlock ? 1 : blocks_in(round, kind == kGrowing);
        for (int i = 0; i < kNumbers; ++i) {
            const unsigned block = i / kThreads % blocks;
            unsigned sum = 0;
            for (int t = 0; t < kThreads; ++t) sum += expected[(block * 7 + t * 3) % kNumbers];
            next[i] = 3 * expected[(i * 5 + 1) % kNumbers] + sum;
        }
        for (int i = 0; i < kNumbers; ++i) expected[i] = next[i];
    }
    if (kind == kBlock) mix_block<<<1, kThreads>>>(a, b, 0);
    else if (kind == kFixed) gridfuse::launch_loop<mix_loop>(blocks_in(0, false), kThreads, 0, 0, {a, b, 0}, false);
    else gridfuse::launch_growing_loop<mix_loop>(blocks_in(0, true), kThreads, 0, 0, {a, b, 0}, true);
    bool right = cudaDeviceSynchronize() == cudaSuccess;
    const unsigned* found = kRounds % 2 == 0 ? a : b;
    for (int i = 0; i < kNumbers; ++i) right = right && found[i] == expected[i];
    if (!right) std::printf("wrong: %s\n", name);
    return right;
}

int main() {
    unsigned *a, *b;
    cudaMallocManaged(&a, kNumbers * sizeof(unsigned));
    cudaMallocManaged(&b, kNumbers * sizeof(unsigned));
    bool right = run("a grid", kFixed, a, b);
    right = run("grids of several sizes", kGrowing, a, b) && right;
    right = run("a block", kBlock, a, b) && right;
    right = count(a) && right;
    right = right && gridfuse::direct_launches() == 0;
    std::printf("%s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
}
