// Kernels of one stream run in the order of their launches, whatever other streams do.
#include "conformance.cuh"

__global__ void step(long long* data, int factor, int add) {
    long long* mine = data + blockIdx.x * blockDim.x + threadIdx.x;
    *mine = *mine * factor + add;
}

int main() {
    const int streams = 4;
    cudaStream_t stream[streams];
    Array<long long> data(streams * 64);
    for (int s = 0; s < streams; ++s) {
        if (s % 2 == 0) CHECK(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
        else CHECK(cudaStreamCreate(&stream[s]));
    }
    for (int round = 0; round < 10; ++round) {
        for (int s = 0; s < streams; ++s) step<<<2, 32, 0, stream[s]>>>(data + 64 * s, 2 + s % 2, round * (s + 1));
    }
    for (int s = 0; s < streams; ++s) CHECK(cudaStreamSynchronize(stream[s]));
    for (int s = 0; s < streams; ++s) {
        show("stream", data.read() + 64 * s, 1);
        CHECK(cudaStreamDestroy(stream[s]));
    }
    data.show_digest("all");
}
