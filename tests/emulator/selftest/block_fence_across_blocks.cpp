// expect: race
// A fence of block scope orders nothing for another block.
#include "selftest.hpp"
__global__ void k(int* data, int* count, int* out) {
    data[blockIdx.x] = blockIdx.x + 1;
    __threadfence_block();
    if (atomicAdd(count, 1) == 3) {
        __threadfence();
        int sum = 0;
        for (int i = 0; i < 4; ++i) sum += data[i];
        *out = sum;
    }
}
int main() {
    int *data = device_array<int>(4), *count = device_array<int>(1), *out = device_array<int>(1);
    LAUNCH(k, 4, 1)(data, count, out);
    cudaDeviceSynchronize();
}
