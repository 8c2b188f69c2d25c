// expect: pass
// Children in the NULL stream of a block run one after the other.
#include "selftest.hpp"
__global__ void step(int* p, int i) { *p = *p * 3 + i; }
__global__ void parent(int* p) {
    for (int i = 0; i < 10; ++i) LAUNCH(step, 1, 1)(p, i);
}
int main() {
    int* p = device_array<int>(1);
    LAUNCH(parent, 1, 1)(p);
    int expected = 0;
    for (int i = 0; i < 10; ++i) expected = expected * 3 + i;
    return fetch(p) == expected ? 0 : 1;
}
