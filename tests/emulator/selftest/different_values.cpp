// expect: race
#include "selftest.hpp"
__global__ void k(int* p) { *p = threadIdx.x; }
int main() {
    int* p = device_array<int>(1);
    LAUNCH(k, 1, 2)(p);
    cudaDeviceSynchronize();
}
