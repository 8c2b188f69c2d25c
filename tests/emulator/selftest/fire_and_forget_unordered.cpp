// expect: race
// The same without the stream's order.
#include "selftest.hpp"
__global__ void step(int* p, int i) { *p = *p * 3 + i; }
__global__ void parent(int* p) {
    for (int i = 1; i < 10; ++i) LAUNCH(step, 1, 1, 0, cudaStreamFireAndForget)(p, i);
}
int main() {
    int* p = device_array<int>(1);
    LAUNCH(parent, 1, 1)(p);
    cudaDeviceSynchronize();
}
