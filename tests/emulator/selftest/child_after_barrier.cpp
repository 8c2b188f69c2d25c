// expect: pass
#include "selftest.hpp"
__global__ void child(const int* p, int* out) { out[threadIdx.x] = p[threadIdx.x]; }
__global__ void parent(int* p, int* out) {
    p[threadIdx.x] = threadIdx.x + 1;
    __syncthreads();
    if (threadIdx.x == 0) LAUNCH(child, 1, 32)(p, out);
}
int main() {
    int *p = device_array<int>(32), *out = device_array<int>(32);
    LAUNCH(parent, 1, 32)(p, out);
    return fetch(out + 31) == 32 ? 0 : 1;
}
