// expect: pass
#include "selftest.hpp"
__global__ void k(int* p) { p[threadIdx.x] += 1; }
int main() {
    int *device = device_array<int>(100), *host;
    cudaMallocHost(&host, 400);
    for (int i = 0; i < 100; ++i) host[i] = i;
    cudaStream_t stream, other;
    cudaEvent_t event;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreate(&event);
    cudaDeviceSynchronize();
    cudaMemcpyAsync(device, host, 400, cudaMemcpyHostToDevice, stream);
    LAUNCH(k, 1, 100, 0, stream)(device);
    cudaEventRecord(event, stream);
    cudaStreamWaitEvent(other, event);
    LAUNCH(k, 1, 100, 0, other)(device);
    cudaMemcpyAsync(host, device, 400, cudaMemcpyDeviceToHost, other);
    cudaStreamSynchronize(other);
    for (int i = 0; i < 100; ++i)
        if (host[i] != i + 2) return 1;
    return 0;
}
