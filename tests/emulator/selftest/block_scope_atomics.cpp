// expect: race
// An atomic of block scope does not reach another block.
#include "selftest.hpp"
__global__ void k(int* p) { atomicAdd_block(p, 1); }
int main() {
    int* p = device_array<int>(1);
    LAUNCH(k, 2, 32)(p);
    cudaDeviceSynchronize();
}
