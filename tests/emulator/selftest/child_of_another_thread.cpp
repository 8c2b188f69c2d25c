// expect: race
// A child knows what its launcher wrote, not what the other threads of the block did.
#include "selftest.hpp"
__global__ void child(const int* p, int* out) { out[threadIdx.x] = p[threadIdx.x]; }
__global__ void parent(int* p, int* out) {
    p[threadIdx.x] = threadIdx.x + 1;
    if (threadIdx.x == 0) LAUNCH(child, 1, 32)(p, out);
}
int main() {
    int *p = device_array<int>(32), *out = device_array<int>(32);
    LAUNCH(parent, 1, 32)(p, out);
    cudaDeviceSynchronize();
}
