// expect: pass
#include "selftest.hpp"
__global__ void k(int* out) {
    SHARED(int[64], data);
    int i = threadIdx.x, first = i & ~31;
    data[i] = i;
    __syncwarp();
    for (int step = 16; step > 0; step /= 2) {
        if ((i & 31) < step) data[i] += data[i + step];
        __syncwarp();
    }
    out[i] = data[first];
}
int main() {
    int* out = device_array<int>(64);
    LAUNCH(k, 1, 64)(out);
    return fetch(out) == 496 && fetch(out + 63) == 1520 ? 0 : 1;
}
