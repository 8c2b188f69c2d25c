// expect: pass
// Lanes that are together count once; however they are grouped, the sum is right.
#include "selftest.hpp"
__global__ void k(int* count, int* groups) {
    if (threadIdx.x % 3 != 0) {
        unsigned mask = __activemask();
        int leader = __ffs(mask) - 1;
        unsigned lane = threadIdx.x & 31;
        int base = 0;
        if (int(lane) == leader) {
            base = atomicAdd(count, __popc(mask));
            atomicAdd(groups, 1);
        }
        base = __shfl_sync(mask, base, leader);
        int rank = __popc(mask & ::emu::ptx::lanemask_lt());
        if (base + rank < 0 || rank >= 32) __trap();
        __syncwarp(mask);
    }
}
int main() {
    int *count = device_array<int>(1), *groups = device_array<int>(1);
    LAUNCH(k, 2, 96)(count, groups);
    return fetch(count) == 128 && fetch(groups) <= 128 && fetch(groups) >= 6 ? 0 : 1;
}
