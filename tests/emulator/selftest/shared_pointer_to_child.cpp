// expect: invalid-address
#include "selftest.hpp"
__global__ void child(int* p) { *p = 1; }
__global__ void parent() {
    SHARED(int, value);
    value = 0;
    LAUNCH(child, 1, 1)(&value);
}
int main() {
    LAUNCH(parent, 1, 1)();
    cudaDeviceSynchronize();
}
