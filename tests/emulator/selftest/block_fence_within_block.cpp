// expect: pass
// Within a block a fence of block scope is enough.
#include "selftest.hpp"
__global__ void k(int* out) {
    SHARED(int[64], data);
    SHARED(int, count);
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    data[threadIdx.x] = threadIdx.x;
    __threadfence_block();
    if (atomicAdd(&count, 1) == 63) {
        __threadfence_block();
        int sum = 0;
        for (int i = 0; i < 64; ++i) sum += data[i];
        *out = sum;
    }
}
int main() {
    int* out = device_array<int>(1);
    LAUNCH(k, 1, 64)(out);
    return fetch(out) == 2016 ? 0 : 1;
}
