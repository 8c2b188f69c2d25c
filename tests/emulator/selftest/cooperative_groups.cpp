// expect: pass
#include "selftest.hpp"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;
__global__ void k(int* wrong, int* count) {
    cg::thread_block block = cg::this_thread_block();
    auto check = [&](bool right) { if (!right) atomicAdd(wrong, 1); };
    check(block.thread_rank() == threadIdx.x && block.size() == 64);
    auto tile = cg::tiled_partition<8>(block);
    check(tile.shfl(int(threadIdx.x), 3) == int(threadIdx.x / 8 * 8 + 3));
    int sum = tile.thread_rank();
    for (int d = 4; d > 0; d /= 2) sum += tile.shfl_down(sum, d);
    if (tile.thread_rank() == 0) check(sum == 28);
    check(tile.ballot(tile.thread_rank() == 2) == 4);
    tile.sync();
    if (threadIdx.x % 3 == 0) {
        auto together = cg::coalesced_threads();
        int base = 0;
        if (together.thread_rank() == 0) base = atomicAdd(count, int(together.size()));
        base = together.shfl(base, 0);
        check(base >= 0 && together.thread_rank() < together.size());
    }
    block.sync();
}
int main() {
    int *wrong = device_array<int>(1), *count = device_array<int>(1);
    LAUNCH(k, 2, 64)(wrong, count);
    return fetch(wrong) == 0 && fetch(count) == 44 ? 0 : 1;
}
