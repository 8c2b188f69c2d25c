// Kernels that launch themselves into the tail stream, as loops: every iteration reads what others of the one before have written.
#include <cstdio>

#include "gridfuse.cuh"

constexpr int kThreads = 5, kNumbers = 48, kRounds = 6;

enum Kind { kFixed, kGrowing, kMany, kBlock };

// kMany: several blocks for each ticket, where few are resident.
__host__ __device__ inline dim3 grid_of(int round, Kind kind) {
    if (kind == kMany) return dim3(5, 3, 2 + round % 3);
    return kind == kGrowing ? 1 + round * 4 % 9 : kind == kFixed ? 4 : 1;
}
__host__ __device__ inline unsigned blocks_of(dim3 grid) { return grid.x * grid.y * grid.z; }

struct mix_args { const unsigned* from; unsigned* to; int round; };
__global__ void mix_loop(gridfuse::Iterations<mix_args> iterations, unsigned* runs, Kind kind);

template <class Launch>
__device__ void mix(uint3 blockIdx, dim3 gridDim, const unsigned* from, unsigned* to, unsigned* runs, int round, const Launch& launch) {
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z), blocks = blocks_of(gridDim);
    __shared__ unsigned sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, from[(block * 7 + threadIdx.x * 3) % kNumbers]);
    __syncthreads();
    // Not the last thing that it does: an iteration begins when all are done.
    if (block == blocks - 1 && threadIdx.x == 2 && round + 1 < kRounds) launch();
    if (threadIdx.x == 3) atomicAdd(&runs[round], block + 1);
    for (int i = block * kThreads + threadIdx.x; i < kNumbers; i += blocks * kThreads) to[i] = 3 * from[(i * 5 + 1) % kNumbers] + sum;
}

__global__ void mix_loop(gridfuse::Iterations<mix_args> iterations, unsigned* runs, Kind kind) {
    gridfuse::Loop<mix_loop> mixes(iterations, runs, kind);
    mixes.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const mix_args& args) {
        mix(blockIdx, gridDim, args.from, args.to, runs, args.round, [&] {
            mixes.launch(grid_of(args.round + 1, kind), blockDim, {args.to, const_cast<unsigned*>(args.from), args.round + 1});
        });
    });
}

__global__ void mix_block(const unsigned* from, unsigned* to, unsigned* runs, int round) {
    gridfuse::BlockLoop<mix_args> mixes({from, to, round});
    while (mixes.next()) {
        const mix_args args = mixes.args();
        mix(blockIdx, gridDim, args.from, args.to, runs, args.round,
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

bool run(const char* name, Kind kind, unsigned* a, unsigned* b, unsigned* runs) {
    unsigned expected[kNumbers], next[kNumbers], sums[kRounds];
    for (int i = 0; i < kNumbers; ++i) a[i] = b[i] = expected[i] = i * i + 1;
    for (int round = 0; round < kRounds; ++round) {
        const unsigned blocks = blocks_of(grid_of(round, kind));
        runs[round] = 0;
        sums[round] = blocks * (blocks + 1) / 2;
        for (int i = 0; i < kNumbers; ++i) {
            const unsigned block = i / kThreads % blocks;
            unsigned sum = 0;
            for (int t = 0; t < kThreads; ++t) sum += expected[(block * 7 + t * 3) % kNumbers];
            next[i] = 3 * expected[(i * 5 + 1) % kNumbers] + sum;
        }
        for (int i = 0; i < kNumbers; ++i) expected[i] = next[i];
    }
    const dim3 grid = grid_of(0, kind);
    if (kind == kBlock) mix_block<<<grid, kThreads>>>(a, b, runs, 0);
    else if (kind == kFixed) gridfuse::launch_loop<mix_loop>(grid, kThreads, 0, 0, {a, b, 0}, runs, kind);
    else gridfuse::launch_growing_loop<mix_loop>(grid, kThreads, 0, 0, {a, b, 0}, runs, kind);
    bool right = cudaDeviceSynchronize() == cudaSuccess;
    const unsigned* found = kRounds % 2 == 0 ? a : b;
    for (int i = 0; i < kNumbers; ++i) right = right && found[i] == expected[i];
    for (int round = 0; round < kRounds; ++round) right = right && runs[round] == sums[round];
    if (!right) std::printf("wrong: %s\n", name);
    return right;
}

int main() {
    unsigned *a, *b, *runs;
    cudaMallocManaged(&a, kNumbers * sizeof(unsigned));
    cudaMallocManaged(&b, kNumbers * sizeof(unsigned));
    cudaMallocManaged(&runs, kRounds * sizeof(unsigned));
    bool right = run("a grid", kFixed, a, b, runs);
    right = run("grids of several sizes", kGrowing, a, b, runs) && right;
    right = run("many blocks", kMany, a, b, runs) && right;
    right = run("a block", kBlock, a, b, runs) && right;
    right = count(a) && right;
    right = right && gridfuse::direct_launches() == 0;
    std::printf("%s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
}
