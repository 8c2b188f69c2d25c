// __reduce_add_sync, _min, _max, _and, _or and _xor.
#include "conformance.cuh"

__global__ void reductions(int* out, unsigned* bits) {
    int lane = threadIdx.x, value = (lane * 37 + 11) % 64 - 32;
    unsigned word = 0x01010101u * (lane + 3);
    out[lane] = __reduce_add_sync(~0u, value);
    out[32 + lane] = __reduce_min_sync(~0u, value);
    out[64 + lane] = __reduce_max_sync(~0u, value);
    bits[lane] = __reduce_and_sync(~0u, word | 0xf0);
    bits[32 + lane] = __reduce_or_sync(~0u, word);
    bits[64 + lane] = __reduce_xor_sync(~0u, word);
    bits[96 + lane] = __reduce_add_sync(~0u, word);
    bits[128 + lane] = __reduce_max_sync(~0u, static_cast<unsigned>(value));
    if (lane >= 20) out[96 + lane] = __reduce_add_sync(0xfff00000, lane);
    else out[96 + lane] = __reduce_min_sync(0x000fffff, -lane);
}

int main() {
    Array<int> out(128);
    Array<unsigned> bits(160);
    reductions<<<1, 32>>>(out, bits);
    out.show("signed");
    for (int row = 0; row < 5; ++row) show("unsigned", bits.read()[32 * row]);
    bits.show_digest("all");
}
