// expect: pass
// A message from one block to another: fence, flag; flag, fence.
#include "selftest.hpp"
__global__ void k(int* data, volatile int* flag, int* out) {
    if (blockIdx.x == 0) {
        *data = 42;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence();
        *out = *data;
    }
}
int main() {
    int *data = device_array<int>(1), *flag = device_array<int>(1), *out = device_array<int>(1);
    int blocks = 0;
    cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0);
    if (blocks < 2) return 0;
    LAUNCH(k, 2, 1)(data, flag, out);
    return fetch(out) == 42 ? 0 : 1;
}
