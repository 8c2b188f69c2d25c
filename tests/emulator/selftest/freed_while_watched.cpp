// expect: race use-after-free
// The last one of those that count frees the memory, though somebody who doesn't count may still look at the counter.
#include "selftest.hpp"
__global__ void make(int** left) {
    *left = static_cast<int*>(emu::device_malloc(sizeof(int)));
    **left = 2;
}
__global__ void use(int** left) {
    int* const mine = *left;
    if (threadIdx.x == 2) {
        volatile int* watched = mine;
        (void)*watched;
        return;
    }
    __threadfence();
    if (atomicSub(mine, 1) == 1) {
        __threadfence();
        emu::device_free(mine);
    }
}
int main() {
    int** left = device_array<int*>(1);
    LAUNCH(make, 1, 1)(left);
    LAUNCH(use, 1, 3)(left);
    cudaDeviceSynchronize();
}
