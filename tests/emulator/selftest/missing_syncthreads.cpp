// expect: race
// Neighbours in shared memory, without a barrier between the writes and the reads.
#include "selftest.hpp"
__global__ void k(int* out) {
    SHARED(int[64], data);
    data[threadIdx.x] = 0;
    __syncthreads();
    data[threadIdx.x] = threadIdx.x + 1;
    out[threadIdx.x] = data[threadIdx.x ^ 1];
}
int main() {
    int* out = device_array<int>(64);
    LAUNCH(k, 1, 64)(out);
    cudaDeviceSynchronize();
}
