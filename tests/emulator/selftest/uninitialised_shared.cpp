// expect: uninitialised
#include "selftest.hpp"
__global__ void k(int* out) {
    SHARED(int[32], data);
    if (threadIdx.x < 16) data[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = data[threadIdx.x];
}
int main() {
    int* out = device_array<int>(32);
    LAUNCH(k, 2, 32)(out);
    cudaDeviceSynchronize();
}
