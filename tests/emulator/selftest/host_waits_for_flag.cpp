// expect: pass
// The host polls a flag in pinned memory.
#include "selftest.hpp"
__global__ void k(volatile int* flag) { *flag = 1; }
int main() {
    int* flag;
    cudaMallocHost(&flag, 4);
    *(volatile int*)flag = 0;
    LAUNCH(k, 1, 1)(flag);
    while (*(volatile int*)flag == 0) {}
    cudaDeviceSynchronize();
    cudaFreeHost(flag);
    return 0;
}
