// expect: pass
// The legacy default stream orders itself with streams that are not non-blocking.
#include "selftest.hpp"
__global__ void k(int* p, int v) { *p = *p * 10 + v; }
int main() {
    int* p = device_array<int>(1);
    cudaStream_t a, b;
    cudaStreamCreate(&a);
    cudaStreamCreate(&b);
    LAUNCH(k, 1, 1, 0, a)(p, 1);
    LAUNCH(k, 1, 1)(p, 2);
    LAUNCH(k, 1, 1, 0, b)(p, 3);
    LAUNCH(k, 1, 1)(p, 4);
    return fetch(p) == 1234 ? 0 : 1;
}
