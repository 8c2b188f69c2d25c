// expect: use-after-free
#include "selftest.hpp"
__global__ void k(int* out) { *out = 1; }
int main() {
    int* out = device_array<int>(1);
    cudaFree(out);
    LAUNCH(k, 1, 1)(out);
    cudaDeviceSynchronize();
}
