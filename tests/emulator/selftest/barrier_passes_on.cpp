// expect: pass
// What one thread learns from another block through a fence, its whole block knows after a barrier.
#include "selftest.hpp"
__global__ void k(int* data, int* count, int* out) {
    SHARED(int, last);
    if (threadIdx.x == 0) {
        data[blockIdx.x] = blockIdx.x + 1;
        __threadfence();
        last = atomicAdd(count, 1) == int(gridDim.x) - 1;
        __threadfence();
    }
    __syncthreads();
    if (last) out[threadIdx.x] = data[threadIdx.x % gridDim.x];
}
int main() {
    int *data = device_array<int>(4), *count = device_array<int>(1), *out = device_array<int>(40);
    LAUNCH(k, 4, 40)(data, count, out);
    return fetch(out + 39) == 4 ? 0 : 1;
}
