// expect: invalid-address
// The same by cuda::atomic_ref, whose object is one of the thread's own.
#include "selftest.hpp"
#include <cuda/atomic>
__global__ void k(int* out) {
    int counter = 0;
    cuda::atomic_ref<int, cuda::thread_scope_block> shared(counter);
    shared += 2;
    out[threadIdx.x] = counter;
}
int main() {
    LAUNCH(k, 1, 4)(device_array<int>(4));
    cudaDeviceSynchronize();
}
