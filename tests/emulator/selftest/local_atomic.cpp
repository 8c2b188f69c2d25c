// expect: invalid-address
// Local memory has no atomics: a GPU traps where it isn't the compiler that finds out where a pointer leads.
#include "selftest.hpp"
__attribute__((noinline)) void bump(int* counter) { atomicAdd(counter, 1); }
__global__ void k(int* out) {
    int counter = 0;
    bump(&counter);
    out[threadIdx.x] = counter;
}
int main() {
    LAUNCH(k, 1, 4)(device_array<int>(4));
    cudaDeviceSynchronize();
}
