// expect: race
#include "selftest.hpp"
__global__ void step(int* p, int i) { *p = *p * 3 + i; }
__global__ void parent(int* p) {
    for (int i = 1; i < 3; ++i) {
        cudaStream_t stream;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        LAUNCH(step, 1, 1, 0, stream)(p, i);
        cudaStreamDestroy(stream);
    }
}
int main() {
    int* p = device_array<int>(1);
    LAUNCH(parent, 1, 1)(p);
    cudaDeviceSynchronize();
}
