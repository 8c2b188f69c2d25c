// expect: pass
#include "selftest.hpp"
__global__ void k(int* lock, int* sum) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    *sum += 1;
    __threadfence();
    atomicExch(lock, 0);
}
int main() {
    int *lock = device_array<int>(1), *sum = device_array<int>(1);
    LAUNCH(k, 4, 40)(lock, sum);
    return fetch(sum) == 160 ? 0 : 1;
}
