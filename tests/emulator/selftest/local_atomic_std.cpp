// expect: invalid-address
// What g++ makes of a builtin for atomics is one, too.
#include "selftest.hpp"
__attribute__((noinline)) void bump(int* counter) { __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }
__global__ void k(int* out) {
    int counter = 0;
    bump(&counter);
    out[threadIdx.x] = counter;
}
int main() {
    LAUNCH(k, 1, 4)(device_array<int>(4));
    cudaDeviceSynchronize();
}
