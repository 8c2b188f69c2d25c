// expect: pass
// env: GRIDFUSE_EMU_DEVICE_SYNC=1
// What all children of the block have done, and what those launched, is there behind the wait.
#include "selftest.hpp"
__global__ void grandchild(int* out) { out[threadIdx.x] += 1; }
__global__ void child(int* out) {
    out[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) LAUNCH(grandchild, 1, 32)(out);
}
__global__ void parent(int* out, int* sum) {
    if (threadIdx.x == 1) LAUNCH(child, 1, 32)(out);
    __syncthreads();
    if (threadIdx.x == 0) cudaDeviceSynchronize();
    __syncthreads();
    atomicAdd(sum, out[threadIdx.x]);
}
int main() {
    int *out = device_array<int>(32), *sum = device_array<int>(1);
    LAUNCH(parent, 1, 32)(out, sum);
    return fetch(sum) == 31 * 16 + 32 ? 0 : 1;
}
