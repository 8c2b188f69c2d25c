// expect: livelock
// env: GRIDFUSE_EMU_STEPS=200000
#include "selftest.hpp"
__global__ void k(int* turn) {
    while (atomicAdd(turn, 1) >= 0) atomicSub(turn, 1);
}
int main() {
    int* turn = device_array<int>(1);
    LAUNCH(k, 1, 2)(turn);
    cudaDeviceSynchronize();
}
