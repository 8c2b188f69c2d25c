// A kernel that launches itself, flattened, with little room and with enough: every block runs once, by all its threads, and sees
// what the thread that launched it has written.
#include <cstdio>

#include "gridfuse.cuh"

constexpr int kThreads = 7, kSteps = 40;

__host__ __device__ inline unsigned blocks_of(int id) { return 1 + id % 3; }

struct grow_args { int id; };
__global__ void grow_flattened(gridfuse::Worklist<grow_args> worklist, unsigned* written, unsigned* counts);

__device__ void grow_body(gridfuse::Recursion<grow_flattened>& grows, uint3 blockIdx, unsigned* written, unsigned* counts, int id) {
    __shared__ unsigned sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, written[id] == 3u * id + 1 ? 1u : 0u);
    __syncthreads();
    if (threadIdx.x == 3) atomicAdd(&counts[id], sum == kThreads ? 1u : 100u);
    int child = 2 * id + 1 + threadIdx.x;
    if (blockIdx.x != 0 || threadIdx.x >= 2 || child >= kSteps) return;
    written[child] = 3 * child + 1;
    grows.launch(blocks_of(child), kThreads, {child});
}

__global__ void grow_flattened(gridfuse::Worklist<grow_args> worklist, unsigned* written, unsigned* counts) {
    gridfuse::Recursion<grow_flattened> grows(worklist, written, counts);
    grows.for_each_block([&](uint3 blockIdx, dim3, dim3, const grow_args& args) {
        grow_body(grows, blockIdx, written, counts, args.id);
    });
}

template <unsigned Bits>
bool run(unsigned* written, unsigned* counts) {
    for (int id = 0; id < kSteps; ++id) counts[id] = written[id] = 0;
    written[0] = 1;
    gridfuse::launch_recursion<grow_flattened, Bits>(blocks_of(0), kThreads, 0, 0, {0}, written, counts);
    bool right = cudaDeviceSynchronize() == cudaSuccess;
    for (int id = 0; id < kSteps; ++id) right = right && counts[id] == blocks_of(id);
    if (!right) std::printf("wrong: room for 2^%u records\n", Bits);
    return right;
}

int main() {
    unsigned *written, *counts;
    cudaMallocManaged(&written, kSteps * sizeof(unsigned));
    cudaMallocManaged(&counts, kSteps * sizeof(unsigned));
    bool right = run<1>(written, counts);
    right = run<3>(written, counts) && right;
    right = run<8>(written, counts) && right;
    std::printf("%s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
}
