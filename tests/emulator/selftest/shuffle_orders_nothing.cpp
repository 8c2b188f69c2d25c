// expect: race
#include "selftest.hpp"
__global__ void k(int* data, int* out) {
    int i = threadIdx.x;
    data[i] = i + 1;
    (void)__ballot_sync(0xffffffffu, 1);
    out[i] = data[i ^ 1];
}
int main() {
    int *data = device_array<int>(32), *out = device_array<int>(32);
    LAUNCH(k, 1, 32)(data, out);
    cudaDeviceSynchronize();
}
