// expect: out-of-bounds
// One array of shared memory runs into the next.
#include "selftest.hpp"
__global__ void k(int* out) {
    SHARED(int[16], first);
    SHARED(int[16], second);
    second[threadIdx.x] = 1;
    first[threadIdx.x + 1] = 2;
    __syncthreads();
    out[threadIdx.x] = second[threadIdx.x];
}
int main() {
    int* out = device_array<int>(16);
    LAUNCH(k, 1, 16)(out);
    cudaDeviceSynchronize();
}
