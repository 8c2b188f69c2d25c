// expect: race
#include "selftest.hpp"
__global__ void k(int* p, int v) { *p = v; }
int main() {
    int* p = device_array<int>(1);
    cudaStream_t a, b;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    cudaDeviceSynchronize();
    LAUNCH(k, 1, 1, 0, a)(p, 1);
    LAUNCH(k, 1, 1, 0, b)(p, 2);
    cudaDeviceSynchronize();
}
