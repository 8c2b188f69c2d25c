// Atomic operations with a scope: _block and _system.
#include "conformance.cuh"

__global__ void scopes(int* blocks, unsigned long long* all, int* winners) {
    __shared__ unsigned count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    atomicAdd_block(&count, 2u);
    atomicAdd_block(&blocks[2 * blockIdx.x], static_cast<int>(threadIdx.x));
    atomicMax_block(&blocks[2 * blockIdx.x + 1], static_cast<int>(threadIdx.x * 7 % 40));
    if (atomicCAS_block(&winners[blockIdx.x], 0, 1) == 0) atomicAdd_system(&all[1], 1ull);
    atomicAdd_system(&all[0], 1000000000000ull);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&all[2], count);
}

int main() {
    Array<int> blocks(3 * 2), winners(3);
    Array<unsigned long long> all(3);
    scopes<<<3, 60>>>(blocks, all, winners);
    blocks.show("blocks");
    all.show("all");
    winners.show("winners");
}
