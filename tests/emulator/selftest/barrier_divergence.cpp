// expect: barrier-divergence
#include "selftest.hpp"
__global__ void k(int* out) {
    if (threadIdx.x % 2 == 0) {
        out[threadIdx.x] = 1;
        __syncthreads();
    } else {
        out[threadIdx.x] = 2;
        __syncthreads();
    }
}
int main() {
    int* out = device_array<int>(64);
    LAUNCH(k, 1, 64)(out);
    cudaDeviceSynchronize();
}
