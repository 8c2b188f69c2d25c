// expect: out-of-bounds
#include "selftest.hpp"
__global__ void k(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = i;
}
int main() {
    int* out = device_array<int>(100);
    LAUNCH(k, 1, 128)(out, 100);
    cudaDeviceSynchronize();
}
