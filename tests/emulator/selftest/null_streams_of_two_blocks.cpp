// expect: race
// Each block has a NULL stream of its own.
#include "selftest.hpp"
__global__ void step(int* p, int i) { *p = *p * 3 + i; }
__global__ void parent(int* p) { LAUNCH(step, 1, 1)(p, blockIdx.x + 1); }
int main() {
    int* p = device_array<int>(1);
    LAUNCH(parent, 2, 1)(p);
    cudaDeviceSynchronize();
}
