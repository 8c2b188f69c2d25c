// expect: barrier-divergence
// Takes it for granted that the lanes of a branch run together.
#include "selftest.hpp"
__global__ void k(int* out) {
    if (threadIdx.x < 20) {
        unsigned mask = __activemask();
        if (threadIdx.x == 0) mask |= 0xfffff;
        *out = __any_sync(mask, 1);
    }
}
int main() {
    int* out = device_array<int>(1);
    LAUNCH(k, 1, 32)(out);
    cudaDeviceSynchronize();
}
