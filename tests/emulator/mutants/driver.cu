// Kernels of which each launches several others into the NULL stream and into the tail, and the next one of their kind last, as one loop.
#include <cstdio>

#include "gridfuse.cuh"

constexpr int kThreads = 4, kNumbers = 24, kRounds = 5, kMost = 64;

enum Kernel { kDrive, kMix, kAdd };

struct drive_args { int kernel; unsigned* from; unsigned* to; int round; int what; };
__global__ void drive_loop(gridfuse::Iterations<drive_args, 2, 3> iterations, unsigned* order, unsigned* count);

using Loop = gridfuse::Loop<drive_loop>;

// Everything reads what others have written in the grid before.
__device__ void mix(uint3 blockIdx, dim3 gridDim, unsigned* from, unsigned* to, int what) {
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < kNumbers; i += gridDim.x * kThreads)
        to[i] = 3 * from[(i * 5 + 1) % kNumbers] + what;
}

__device__ void add(uint3 blockIdx, dim3 gridDim, unsigned* numbers, int what) {
    __shared__ unsigned sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, what + threadIdx.x);
    __syncthreads();
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < kNumbers; i += gridDim.x * kThreads) numbers[i] = 7 * numbers[i] + sum;
}

// In round 0 to 4: all, only children, no child, only the next one, nothing.
__device__ void drive(Loop& loop, unsigned* from, unsigned* to, int round) {
    const bool last = round + 1 == kRounds;
    const dim3 block(kThreads);
    // Not in the order in which they are run.
    if (round == 0 || round == 2) loop.launch(3, block, {kAdd, to, nullptr, round, 3});
    if (round < 2) loop.launch_child(5, block, {kMix, from, to, round, 1});
    if (round < 2) loop.launch_child(2, block, {kAdd, to, nullptr, round, 2});
    if (round == 2) loop.launch(2, block, {kAdd, to, nullptr, round, 4});
    loop.launch(0, block, {kMix, from, to, round, 9});   // refused
    if (!last) loop.launch(round == 1 ? 3 : 1, block, {kDrive, to, from, round + 1, 0});
}

__global__ void drive_loop(gridfuse::Iterations<drive_args, 2, 3> iterations, unsigned* order, unsigned* count) {
    Loop loop(iterations, order, count);
    loop.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const drive_args& args) {
        if (blockIdx.x == 0 && threadIdx.x == 0) order[(*count)++] = 10 * args.kernel + args.what;
        if (args.kernel == kDrive) {
            if (blockIdx.x == 0 && threadIdx.x == 0) drive(loop, args.from, args.to, args.round);
        } else if (args.kernel == kMix) {
            mix(blockIdx, gridDim, args.from, args.to, args.what);
        } else {
            add(blockIdx, gridDim, args.from, args.what);
        }
    });
}

// The same by hand.
struct Expected {
    unsigned a[kNumbers], b[kNumbers], order[kMost], count = 0;

    void run_mix(const unsigned* from, unsigned* to, int what) {
        order[count++] = 10 * kMix + what;
        for (int i = 0; i < kNumbers; ++i) to[i] = 3 * from[(i * 5 + 1) % kNumbers] + what;
    }
    void run_add(unsigned* numbers, int what) {
        order[count++] = 10 * kAdd + what;
        unsigned sum = 0;
        for (int t = 0; t < kThreads; ++t) sum += what + t;
        for (int i = 0; i < kNumbers; ++i) numbers[i] = 7 * numbers[i] + sum;
    }
    void run() {
        unsigned *from = a, *to = b;
        for (int round = 0; round < kRounds; ++round) {
            order[count++] = 10 * kDrive;
            if (round < 2) run_mix(from, to, 1);
            if (round < 2) run_add(to, 2);
            if (round == 0 || round == 2) run_add(to, 3);
            if (round == 2) run_add(to, 4);
            unsigned* other = from;
            from = to;
            to = other;
        }
    }
};

// `alone`: without memory, as the launches of a kernel that the rewrite doesn't see.
__global__ void drive_alone(unsigned* a, unsigned* b, unsigned* order, unsigned* count) {
    Loop loop({}, order, count);
    order[(*count)++] = 10 * kDrive;
    drive(loop, a, b, 0);
}

bool run(bool alone, unsigned* a, unsigned* b, unsigned* order, unsigned* count) {
    Expected expected;
    for (int i = 0; i < kNumbers; ++i) a[i] = b[i] = expected.a[i] = expected.b[i] = i * i + 1;
    *count = 0;
    expected.run();
    if (alone) drive_alone<<<1, 1>>>(a, b, order, count);
    else gridfuse::launch_growing_loop<drive_loop>(3, kThreads, 0, 0, {kDrive, a, b, 0, 0}, order, count);
    bool right = cudaDeviceSynchronize() == cudaSuccess && *count == expected.count;
    for (int i = 0; i < kNumbers; ++i) right = right && a[i] == expected.a[i] && b[i] == expected.b[i];
    for (unsigned i = 0; i < expected.count; ++i) right = right && order[i] == expected.order[i];
    if (!right) {
        std::printf("wrong%s:", alone ? " alone" : "");
        for (unsigned i = 0; i < *count; ++i) std::printf(" %u", order[i]);
        std::printf("\n");
    }
    return right;
}

int main() {
    unsigned *a, *b, *order, *count;
    cudaMallocManaged(&a, kNumbers * sizeof(unsigned));
    cudaMallocManaged(&b, kNumbers * sizeof(unsigned));
    cudaMallocManaged(&order, kMost * sizeof(unsigned));
    cudaMallocManaged(&count, sizeof(unsigned));
    bool right = run(false, a, b, order, count) && gridfuse::direct_launches() == 0;
    right = run(true, a, b, order, count) && right;
    std::printf("%s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
}
