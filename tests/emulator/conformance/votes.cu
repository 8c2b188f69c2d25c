// __ballot_sync, __any_sync and __all_sync, for whole warps and for the lanes of a mask.
#include "conformance.cuh"

__global__ void votes(unsigned* out) {
    unsigned lane = threadIdx.x % 32, row = threadIdx.x / 32, mine[6] = {};
    mine[0] = __ballot_sync(~0u, lane % 3 == row);
    mine[1] = __any_sync(~0u, lane == 31 && row == 1) != 0;
    mine[2] = __all_sync(~0u, lane < 32 - row) != 0;
    if (lane < 12) {
        mine[3] = __ballot_sync(0xfff, lane & 1);
        mine[4] = __all_sync(0xfff, lane < 12) != 0;
    } else if (lane % 2 == 0) {
        mine[3] = __ballot_sync(0x55555000, lane > 20);
        mine[5] = __any_sync(0x55555000, lane < 12) != 0;
    }
    for (int i = 0; i < 6; ++i) out[(row * 32 + lane) * 6 + i] = mine[i];
}

int main() {
    Array<unsigned> out(2 * 32 * 6);
    votes<<<1, 64>>>(out);
    for (int thread : {0, 5, 12, 13, 30, 31, 32, 44, 63}) show("thread", out.read() + thread * 6, 6);
    out.show_digest("all");
}
