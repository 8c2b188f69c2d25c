// expect: pass
// Tail launches run after the parent and its other children, in order among themselves.
#include "selftest.hpp"
__global__ void child(int* p) { atomicAdd(p, 1); }
__global__ void tail(int* p, int i, int* out) {
    if (*p != 100 + 32 * 4 + i) *out = 1;
    *p += 1;
}
__global__ void parent(int* p, int* out) {
    if (threadIdx.x == 0) {
        LAUNCH(tail, 1, 1, 0, cudaStreamTailLaunch)(p, 0, out);
        LAUNCH(tail, 1, 1, 0, cudaStreamTailLaunch)(p, 1, out);
    }
    LAUNCH(child, 1, 4, 0, cudaStreamFireAndForget)(p);
    if (threadIdx.x == 31) atomicAdd(p, 100);
}
int main() {
    int *p = device_array<int>(1), *out = device_array<int>(1);
    LAUNCH(parent, 1, 32)(p, out);
    return fetch(out) == 0 && fetch(p) == 230 ? 0 : 1;
}
