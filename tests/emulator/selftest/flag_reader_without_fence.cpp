// expect: race
// The reader has no fence between flag and data.
#include "selftest.hpp"
__global__ void k(int* data, volatile int* flag, int* out) {
    if (blockIdx.x == 0) {
        *data = 42;
        __threadfence();
        *flag = 1;
    } else if (*flag == 1) {
        *out = *data;
    }
}
int main() {
    int *data = device_array<int>(1), *flag = device_array<int>(1), *out = device_array<int>(1);
    LAUNCH(k, 2, 1)(data, flag, out);
    cudaDeviceSynchronize();
}
