// expect: invalid-address
// A compare-and-swap that changes nothing is an atomic operation all the same.
#include "selftest.hpp"
__global__ void k(int* out) {
    int flags[4] = {0, 1, 2, 3};
    out[threadIdx.x] = atomicCAS_block(&flags[threadIdx.x], 7, 1);
}
int main() {
    LAUNCH(k, 1, 4)(device_array<int>(4));
    cudaDeviceSynchronize();
}
