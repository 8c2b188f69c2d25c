// expect: pass
// Bytes of one word that belong to different threads.
#include "selftest.hpp"
__global__ void k(unsigned char* p, int* out) {
    p[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x < 16) out[threadIdx.x] = reinterpret_cast<int*>(p)[threadIdx.x];
}
int main() {
    unsigned char* p = device_array<unsigned char>(64);
    int* out = device_array<int>(16);
    LAUNCH(k, 1, 64)(p, out);
    return fetch(out) == 0x03020100 ? 0 : 1;
}
