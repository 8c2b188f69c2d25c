// expect: race
// Pinned memory is changed while an asynchronous copy may still read it.
#include "selftest.hpp"
int main() {
    int *device = device_array<int>(100), *host;
    cudaMallocHost(&host, 400);
    for (int i = 0; i < 100; ++i) host[i] = i;
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMemcpyAsync(device, host, 400, cudaMemcpyHostToDevice, stream);
    host[0] = 5;
    cudaStreamSynchronize(stream);
    return fetch(device) == 0 ? 0 : 1;
}
