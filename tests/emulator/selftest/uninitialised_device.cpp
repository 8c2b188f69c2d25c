// expect: uninitialised
#include "selftest.hpp"
__global__ void k(int* counter) { atomicAdd(counter, 1); }
int main() {
    int* counter;
    cudaMalloc(&counter, 4);
    LAUNCH(k, 1, 32)(counter);
    cudaDeviceSynchronize();
}
