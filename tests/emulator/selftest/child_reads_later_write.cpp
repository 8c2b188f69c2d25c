// expect: race
// What a parent writes after the launch is in no order with its child.
#include "selftest.hpp"
__global__ void child(const int* p, int* out) { *out = *p; }
__global__ void parent(int* p, int* out) {
    *p = 1;
    LAUNCH(child, 1, 1)(p, out);
    *p = 2;
}
int main() {
    int *p = device_array<int>(1), *out = device_array<int>(1);
    LAUNCH(parent, 1, 1)(p, out);
    cudaDeviceSynchronize();
}
