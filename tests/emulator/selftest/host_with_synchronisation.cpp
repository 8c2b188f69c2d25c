// expect: pass
#include "selftest.hpp"
__global__ void k(int* p) { *p += 7; }
int main() {
    int *p, *q;
    cudaMallocManaged(&p, 4);
    cudaMallocHost(&q, 4);
    *p = *q = 1;
    LAUNCH(k, 1, 1)(p);
    LAUNCH(k, 1, 1)(q);
    cudaDeviceSynchronize();
    int result = *p + *q;
    cudaFree(p);
    cudaFreeHost(q);
    return result == 16 ? 0 : 1;
}
