// expect: pass
#include "selftest.hpp"
__global__ void k(int* wrong) {
    const unsigned all = 0xffffffffu;
    const int lane = threadIdx.x & 31;
    auto check = [&](bool right) { if (!right) atomicAdd(wrong, 1); };
    check(__ballot_sync(all, lane % 2) == 0xaaaaaaaau);
    check(__all_sync(all, lane >= 0) && !__all_sync(all, lane > 0));
    check(__any_sync(all, lane == 31) && !__any_sync(all, lane > 31));
    check(__shfl_sync(all, lane * 10, 7) == 70);
    check(__shfl_up_sync(all, lane, 1) == (lane == 0 ? 0 : lane - 1));
    check(__shfl_down_sync(all, lane, 4) == (lane + 4 > 31 ? lane : lane + 4));
    check(__shfl_xor_sync(all, lane, 3) == (lane ^ 3));
    check(__shfl_sync(all, lane, 1, 8) == (lane & ~7) + 1);
    check(__shfl_sync(all, 1.5 * lane, 2) == 3.0);
    check(__match_any_sync(all, lane / 4) == 0xfu << (lane / 4 * 4));
    int same = 0;
    check(__match_all_sync(all, 5, &same) == all && same == 1);
    check(__match_all_sync(all, lane, &same) == 0 && same == 0);
    check(__reduce_add_sync(all, unsigned(lane)) == 496);
    check(__reduce_max_sync(all, lane - 40) == -9);
    check(__reduce_min_sync(all, unsigned(lane + 3)) == 3);
    check(__reduce_or_sync(all, 1u << lane) == all);
    if (lane < 10) check(__ballot_sync(0x3ff, 1) == 0x3ff);
    else check(__reduce_add_sync(0xfffffc00u, 1) == 22);
    check(::emu::ptx::laneid() == unsigned(lane) && ::emu::ptx::lanemask_lt() == (1u << lane) - 1);
    check(__syncthreads_count(threadIdx.x < 40) == 40);
    check(__syncthreads_or(threadIdx.x == 63) != 0 && __syncthreads_and(threadIdx.x < 63) == 0);
}
int main() {
    int* wrong = device_array<int>(1);
    LAUNCH(k, 2, 64)(wrong);
    return fetch(wrong);
}
