// Intrinsic functions on integers and bits, and cached loads.
#include "conformance.cuh"

__global__ void bits(const unsigned* in, unsigned* out, const unsigned long long* wide) {
    unsigned value = in[threadIdx.x];
    unsigned* mine = out + 20 * threadIdx.x;
    unsigned long long both = wide[threadIdx.x];
    mine[0] = __popc(value);
    mine[1] = __clz(static_cast<int>(value));
    mine[2] = __ffs(static_cast<int>(value));
    mine[3] = __brev(value);
    mine[4] = __popcll(both);
    mine[5] = __clzll(static_cast<long long>(both));
    mine[6] = __ffsll(static_cast<long long>(both));
    mine[7] = static_cast<unsigned>(__brevll(both));
    mine[8] = __umulhi(value, 0x12345678u);
    mine[9] = static_cast<unsigned>(__mulhi(static_cast<int>(value), -77));
    mine[10] = __byte_perm(value, 0x44332211u, 0x5140);
    mine[11] = __funnelshift_l(value, 0xf0f0f0f0u, 5);
    mine[12] = __funnelshift_r(value, 0xf0f0f0f0u, 37);
    mine[13] = __ldg(&in[(threadIdx.x + 1) % 4]);
    mine[14] = min(value, 1000u) + max(static_cast<int>(value), -5) + abs(-3);
    mine[15] = __float_as_uint(__uint2float_rn(value & 0xffff));
    mine[16] = static_cast<unsigned>(__float2int_rn(2.5f) + __float2int_rz(-2.5f) + __float2int_ru(0.1f));
    mine[17] = static_cast<unsigned>(__umul64hi(both, both));
    mine[18] = __usad(value, 7u, 1u);
    mine[19] = __hadd(static_cast<int>(value >> 1), 5);
}

int main() {
    Array<unsigned> in(4), out(80);
    Array<unsigned long long> wide(4);
    in.fill([](int i) { return i == 0 ? 0u : 0x80000421u >> (3 * i) ^ i; });
    wide.fill([](int i) { return i == 0 ? 0ull : 0x8000040000000020ull >> (5 * i); });
    bits<<<1, 4>>>(in, out, wide);
    for (int t = 0; t < 4; ++t) show("thread", out.read() + 20 * t, 20);
}
