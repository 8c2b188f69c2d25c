// Memory in stream order: cudaMallocAsync, cudaFreeAsync, a pool of one's own.
#include "conformance.cuh"

__global__ void fill(int* data, int count, int value) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) data[i] = value + i;
}
__global__ void sum(const int* data, int count, int* out) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) atomicAdd(out, data[i]);
}

int main() {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.handleTypes = cudaMemHandleTypeNone;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = 0;
    cudaMemPool_t pool, usual;
    CHECK(cudaMemPoolCreate(&pool, &properties));
    unsigned long long keep = ~0ull, kept = 0;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept));
    show("kept", kept == keep);
    CHECK(cudaDeviceGetDefaultMemPool(&usual, 0));
    show("another pool", usual != pool);

    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    Array<int> out(6);
    for (int round = 0; round < 6; ++round) {
        int* data;
        int count = 100 * (round + 1);
        if (round % 2 == 0) CHECK(cudaMallocAsync(&data, count * sizeof(int), stream));
        else CHECK(cudaMallocFromPoolAsync(&data, count * sizeof(int), pool, stream));
        fill<<<1, 64, 0, stream>>>(data, count, round);
        sum<<<1, 64, 0, stream>>>(data, count, out + round);
        CHECK(cudaFreeAsync(data, stream));
    }
    CHECK(cudaStreamSynchronize(stream));
    out.show("sums");
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaMemPoolDestroy(pool));
}
