// Facts about the device that are the same for all that can run these programs.
#include "conformance.cuh"

__global__ void __launch_bounds__(256) kernel(int* out) { *out = 1; }

int main() {
    int count = 0, device = -1, value = 0;
    CHECK(cudaGetDeviceCount(&count));
    show("a device", count >= 1);
    CHECK(cudaSetDevice(0));
    CHECK(cudaGetDevice(&device));
    show("device", device);
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    show("warp", properties.warpSize);
    show("block", properties.maxThreadsPerBlock);
    show("block sizes", properties.maxThreadsDim, 3);
    show("grid sizes", properties.maxGridSize, 3);
    show("shared memory", static_cast<unsigned>(properties.sharedMemPerBlock));
    show("capability 7 or more", properties.major >= 7);
    show("multiprocessors", properties.multiProcessorCount >= 1);
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, 0));
    show("block again", value);
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
    show("warp again", value);
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    show("the same count", value == properties.multiProcessorCount);
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, kernel));
    show("kernel's block", attributes.maxThreadsPerBlock >= 1 && attributes.maxThreadsPerBlock <= 1024);
}
