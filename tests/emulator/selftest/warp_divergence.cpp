// expect: barrier-divergence
// Some lanes vote, the others wait for them in a barrier of the block.
#include "selftest.hpp"
__global__ void k(int* out) {
    if (threadIdx.x < 16) *out = __any_sync(0xffffffffu, 1);
    __syncthreads();
}
int main() {
    int* out = device_array<int>(1);
    LAUNCH(k, 1, 32)(out);
    cudaDeviceSynchronize();
}
