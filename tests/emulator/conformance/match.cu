// __match_any_sync and __match_all_sync.
#include "conformance.cuh"

__global__ void match(unsigned* any, unsigned* all) {
    unsigned lane = threadIdx.x;
    any[lane] = __match_any_sync(~0u, lane % 5);
    any[32 + lane] = __match_any_sync(~0u, 7000000000ull * (lane / 8));
    int same = -1;
    all[lane] = __match_all_sync(~0u, 42, &same);
    all[32 + lane] = same != 0;
    all[64 + lane] = __match_all_sync(~0u, lane / 31, &same);
    all[96 + lane] = same != 0;
    if (lane >= 24) {
        any[64 + lane] = __match_any_sync(0xff000000, lane & 2);
        all[128 + lane] = __match_all_sync(0xff000000, 1ull << 40, &same);
    }
}

int main() {
    Array<unsigned> any(96), all(160);
    match<<<1, 32>>>(any, all);
    any.show("any");
    all.show("all");
}
