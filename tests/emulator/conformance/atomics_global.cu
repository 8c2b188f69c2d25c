// Atomic operations on global memory, by many threads: the results do not depend on the order.
#include "conformance.cuh"

__global__ void integers(int* i, unsigned* u, long long* l, unsigned long long* ul) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;   // 0 .. 202
    atomicAdd(&i[0], t);
    atomicSub(&i[1], t);
    atomicMin(&i[2], 50 - t);
    atomicMax(&i[3], t - 50);
    atomicAnd(&i[4], ~(1 << t % 16));
    atomicOr(&i[5], 1 << t % 11);
    atomicXor(&i[6], t);
    atomicAdd(&u[0], 0x10000000u);
    atomicMin(&u[1], 4000000000u - t);
    atomicMax(&u[2], 4000000000u + t);
    atomicInc(&u[3], 9u);   // 0 .. 9 and round again
    atomicDec(&u[4], 6u);   // 6 .. 0 and round again
    atomicAnd(&u[5], ~(1u << t % 31));
    atomicOr(&u[6], 1u << t % 32);
    atomicXor(&u[7], 1u << t % 32);
    atomicMin(&l[0], -10000000000ll * t);
    atomicMax(&l[1], 10000000000ll * t);
    atomicAdd(&ul[0], 1ull << 32 | 1);
    atomicMin(&ul[1], (1ull << 60) - t);
    atomicMax(&ul[2], (1ull << 60) + t);
    atomicAnd(&ul[3], ~(1ull << t % 60));
    atomicOr(&ul[4], 1ull << t % 64);
    atomicXor(&ul[5], 1ull << t % 64);
}

__global__ void reals(float* f, double* d) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&f[0], 1.0f * t);   // sums of whole numbers are exact
    atomicAdd(&f[1], -2.0f);
    atomicAdd(&d[0], 0.5 * t);
}

int main() {
    Array<int> i(7);
    Array<unsigned> u(8);
    Array<long long> l(2);
    Array<unsigned long long> ul(6);
    i.fill([](int k) { return k == 4 ? -1 : 0; });
    u.fill([](int k) { return k == 1 || k == 5 ? ~0u : 0u; });
    ul.fill([](int k) { return k == 1 || k == 3 ? ~0ull : 0ull; });
    integers<<<7, 29>>>(i, u, l, ul);
    i.show("int");
    u.show("unsigned");
    l.show("long long");
    ul.show("unsigned long long");
    Array<float> f(2);
    Array<double> d(1);
    reals<<<7, 29>>>(f, d);
    f.show("float");
    d.show("double");
}
