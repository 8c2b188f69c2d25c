// Threads of one warp in different branches and loops, each group with warp functions of its own.
#include "conformance.cuh"

__global__ void branches(int* out) {
    int lane = threadIdx.x, result = 0;
    switch (lane % 3) {
    case 0:
        for (int turn = 0; turn < 4; ++turn) result += __shfl_sync(0x49249249, lane + turn, 9);
        break;
    case 1:
        result = __popc(__ballot_sync(0x92492492, lane > 15)) * 1000;
        result += __shfl_up_sync(0x92492492, lane, 3);
        break;
    default:
        __syncwarp(0x24924924);
        result = (__any_sync(0x24924924, lane == 2) != 0) + 10 * (__all_sync(0x24924924, lane != 2) != 0);
        break;
    }
    __syncwarp();
    out[lane] = result;
    out[32 + lane] = __shfl_sync(~0u, result, 31 - lane);
}

// Each lane has a number of turns of its own; those that have had theirs wait at the end.
__global__ void loops(int* out) {
    int lane = threadIdx.x, turns = 0;
    unsigned working = __ballot_sync(~0u, lane * 7 % 10 > 0);
    int left = lane * 7 % 10;
    while (left > 0) {
        --left;
        ++turns;
        working = __ballot_sync(working, left > 0);
    }
    __syncwarp();
    out[lane] = turns;
    out[32 + lane] = __reduce_add_sync(~0u, turns);
}

int main() {
    Array<int> out(64), turns(64);
    branches<<<1, 32>>>(out);
    out.show("branches");
    loops<<<1, 32>>>(turns);
    turns.show("loops");
}
