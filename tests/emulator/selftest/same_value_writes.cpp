// expect: pass
// Threads that write one value to one place, and plain reads beside atomics: common, and harmless.
#include "selftest.hpp"
__global__ void k(int* changed, int* dist) {
    *changed = 1;
    if (dist[threadIdx.x / 8] == 0 && atomicCAS(&dist[threadIdx.x / 8], 0, 5) == 0) *changed = 1;
}
int main() {
    int *changed = device_array<int>(1), *dist = device_array<int>(16);
    LAUNCH(k, 2, 128)(changed, dist);
    return fetch(changed) == 1 && fetch(dist + 15) == 5 ? 0 : 1;
}
