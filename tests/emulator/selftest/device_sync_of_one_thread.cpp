// expect: race
// env: GRIDFUSE_EMU_DEVICE_SYNC=1
// The other threads of the block have not waited.
#include "selftest.hpp"
__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }
__global__ void parent(int* out, int* sum) {
    if (threadIdx.x == 0) {
        LAUNCH(child, 1, 32)(out);
        cudaDeviceSynchronize();
    }
    atomicAdd(sum, out[threadIdx.x]);
}
int main() {
    int *out = device_array<int>(32), *sum = device_array<int>(1);
    LAUNCH(parent, 1, 32)(out, sum);
    cudaDeviceSynchronize();
}
