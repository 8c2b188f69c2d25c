// __threadfence_block: warps of one block hand values to each other through volatile shared memory.
#include "conformance.cuh"

__global__ void relay(int* out, int rounds) {
    __shared__ volatile int turn;
    __shared__ int value;
    int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    if (threadIdx.x == 0) {
        turn = 0;
        value = 1;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        for (int round = 0; round < rounds; ++round) {
            while (turn != round * warps + warp) {
            }
            __threadfence_block();
            value = value * 3 + warp;
            __threadfence_block();
            turn = turn + 1;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = value;
}

int main() {
    Array<int> out(2);
    relay<<<2, 96>>>(out, 4);
    out.show("values");
}
