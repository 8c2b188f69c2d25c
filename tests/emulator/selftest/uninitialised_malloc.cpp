// expect: uninitialised
#include "selftest.hpp"
__global__ void k(int* out) {
    int* p = static_cast<int*>(::emu::device_malloc(8));
    p[0] = 1;
    *out = p[1];
}
int main() {
    int* out = device_array<int>(1);
    LAUNCH(k, 1, 1)(out);
    cudaDeviceSynchronize();
}
