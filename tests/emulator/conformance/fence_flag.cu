// One block hands data to the others through a flag in global memory, with fences. Blocks are numbered as they start, so that
// those which wait do so for one that runs already.
#include "conformance.cuh"

__global__ void hand_over(unsigned* started, volatile int* flag, int* data, int* out) {
    __shared__ unsigned number;
    if (threadIdx.x == 0) number = atomicAdd(started, 1u);
    __syncthreads();
    if (number == 0) {
        data[threadIdx.x] = threadIdx.x * threadIdx.x;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            *flag = 1;
        }
    } else {
        if (threadIdx.x == 0) {
            while (*flag == 0) {
            }
            __threadfence();
        }
        __syncthreads();
        out[(number - 1) * blockDim.x + threadIdx.x] = data[blockDim.x - 1 - threadIdx.x] + number;
    }
}

int main() {
    Array<unsigned> started(1);
    Array<int> flag(1), data(32), out(5 * 32);
    hand_over<<<6, 32>>>(started, flag, data, out);
    show("second block", out.read(), 32);
    out.show_digest("all");
}
