// expect: race
// A strong write that hides the earlier ones: nobody sees them, so nothing says that they come before the plain write.
#include "selftest.hpp"
__global__ void k(int* x) {
    if (threadIdx.x == 0) atomicAdd(x, 1);
    if (threadIdx.x == 1) {
        *static_cast<volatile int*>(x) = 5;
        atomicAdd(x, 1);
        *x = 9;
    }
}
int main() {
    int* x = device_array<int>(1);
    LAUNCH(k, 1, 2)(x);
    cudaDeviceSynchronize();
}
