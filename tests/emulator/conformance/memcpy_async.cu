// Copies and memory settings in streams, from and to pinned memory, ordered with the kernels there.
#include "conformance.cuh"

__global__ void step(int* data, int count, int add) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) data[i] = data[i] * 2 + add;
}

int main() {
    const int count = 500, streams = 3;
    cudaStream_t stream[streams];
    int *pinned, *device[streams];
    CHECK(cudaMallocHost(&pinned, streams * count * sizeof(int)));
    for (int i = 0; i < streams * count; ++i) pinned[i] = i;
    for (int s = 0; s < streams; ++s) {
        CHECK(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
        CHECK(cudaMalloc(&device[s], count * sizeof(int)));
    }
    for (int round = 0; round < 3; ++round) {
        for (int s = 0; s < streams; ++s) {
            int* mine = pinned + s * count;
            CHECK(cudaMemcpyAsync(device[s], mine, count * sizeof(int), cudaMemcpyHostToDevice, stream[s]));
            step<<<1, 128, 0, stream[s]>>>(device[s], count, s);
            CHECK(cudaMemsetAsync(device[s] + 7 * round, 0, 4 * sizeof(int), stream[s]));
            CHECK(cudaMemcpyAsync(mine, device[s], count * sizeof(int), cudaMemcpyDeviceToHost, stream[s]));
        }
    }
    for (int s = 0; s < streams; ++s) {
        CHECK(cudaStreamSynchronize(stream[s]));
        show("beginning", pinned + s * count, 30);
        conformance::show_digest("all", pinned + s * count, count);
        CHECK(cudaFree(device[s]));
        CHECK(cudaStreamDestroy(stream[s]));
    }
    CHECK(cudaFreeHost(pinned));
}
