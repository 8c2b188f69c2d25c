// expect: invalid-address
#include "selftest.hpp"
__global__ void k(int* p) { *p = 1; }
int main() {
    int* p = new int(0);
    LAUNCH(k, 1, 1)(p);
    cudaDeviceSynchronize();
}
