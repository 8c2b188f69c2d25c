// expect: invalid-address
#include "selftest.hpp"
__global__ void child(int* p) { *p = 1; }
__global__ void parent() {
    int local = 0;
    LAUNCH(child, 1, 1)(&local);
}
int main() {
    LAUNCH(parent, 1, 1)();
    cudaDeviceSynchronize();
}
