// expect: deadlock
#include "selftest.hpp"
__global__ void k(int* lock, int* sum) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    *sum += 1;
    __threadfence();
    if (threadIdx.x != 5) atomicExch(lock, 0);
}
int main() {
    int *lock = device_array<int>(1), *sum = device_array<int>(1);
    LAUNCH(k, 1, 32)(lock, sum);
    cudaDeviceSynchronize();
}
