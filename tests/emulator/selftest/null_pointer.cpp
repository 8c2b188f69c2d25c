// expect: invalid-address
#include "selftest.hpp"
__global__ void k(int* p) { p[threadIdx.x] = 1; }
int main() {
    LAUNCH(k, 1, 4)(nullptr);
    cudaDeviceSynchronize();
}
