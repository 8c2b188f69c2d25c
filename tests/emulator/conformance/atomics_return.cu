// What atomic operations return: every earlier value exactly once.
#include "conformance.cuh"

__global__ void tickets(int* next, int* times, unsigned* turn, int* turns) {
    atomicAdd(&times[atomicAdd(next, 1)], 1);
    atomicAdd(&turns[atomicInc(turn, 4u)], 1);
}

// A chain: what was put in comes out again, or is in there at the end.
__global__ void chain(int* cell, long long* wide, int* sum, unsigned long long* wide_sum) {
    int t = blockIdx.x * blockDim.x + threadIdx.x + 1;
    atomicAdd(sum, atomicExch(cell, t));
    unsigned long long* bits = reinterpret_cast<unsigned long long*>(wide);
    atomicAdd(wide_sum, atomicExch(bits, 3000000000ull * t));
}

// Exactly one thread sees the old value, and exactly one takes each name.
__global__ void winners(int* changed, int* winner, int* names, int* places) {
    if (atomicCAS(winner, 0, threadIdx.x + 1) == 0) atomicAdd(changed, 1);
    int place = threadIdx.x * 5 % 64;
    while (atomicCAS(&names[place], 0, threadIdx.x + 1) != 0) place = (place + 1) % 64;
    atomicOr(&places[place / 32], 1 << place % 32);
}

// Operations of one's own, by compare and swap.
__device__ float max_float(float* cell, float value) {
    int* bits = reinterpret_cast<int*>(cell);
    int seen = atomicAdd(bits, 0), expected;
    do {
        expected = seen;
        if (__int_as_float(expected) >= value) break;
        seen = atomicCAS(bits, expected, __float_as_int(value));
    } while (seen != expected);
    return __int_as_float(seen);
}
__global__ void own(float* most, unsigned long long* product, unsigned short* small) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    max_float(most, (t * 37 % 100) * 0.5f);
    unsigned long long seen = atomicAdd(product, 0ull), expected;
    do {
        expected = seen;
        seen = atomicCAS(product, expected, expected * 3);
    } while (seen != expected);
    atomicCAS(&small[1], static_cast<unsigned short>(0), static_cast<unsigned short>(77));
}

int main() {
    Array<int> next(1), times(200), turns(5);
    Array<unsigned> turn(1);
    tickets<<<4, 50>>>(next, times, turn, turns);
    int once = 0;
    for (int i = 0; i < 200; ++i) once += times.read()[i] == 1;
    show("tickets taken once", once);
    turns.show("turns");

    Array<int> cell(1), sum(1);
    Array<long long> wide(1);
    Array<unsigned long long> wide_sum(1);
    chain<<<4, 50>>>(cell, wide, sum, wide_sum);
    show("chain", cell.read()[0] + sum.read()[0]);
    show("wide chain", wide.read()[0] + static_cast<long long>(wide_sum.read()[0]));

    Array<int> changed(1), winner(1), names(64), places(2);
    winners<<<1, 64>>>(changed, winner, names, places);
    changed.show("changed");
    show("winner exists", winner.read()[0] >= 1 && winner.read()[0] <= 64);
    places.show("places");
    int named = 0;
    for (int i = 0; i < 64; ++i) named += names.read()[i];
    show("names", named);

    Array<float> most(1);
    Array<unsigned long long> product(1);
    Array<unsigned short> small(2);
    product.fill([](int) { return 1; });
    own<<<2, 13>>>(most, product, small);
    most.show("most");
    product.show("product");
    show("16 bits", static_cast<int>(small.read()[1]));
}
