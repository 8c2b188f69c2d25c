// expect: pass
// The last of several blocks reads what all of them have written.
#include "selftest.hpp"
__global__ void k(int* data, int* count, int* out) {
    SHARED(int, last);
    data[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(count, 1) == int(gridDim.x) - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        __threadfence();
        int sum = 0;
        for (unsigned i = 0; i < gridDim.x * blockDim.x; ++i) sum += data[i];
        *out = sum;
    }
}
int main() {
    int *data = device_array<int>(5 * 40), *count = device_array<int>(1), *out = device_array<int>(1);
    LAUNCH(k, 5, 40)(data, count, out);
    return fetch(out) == 200 ? 0 : 1;
}
