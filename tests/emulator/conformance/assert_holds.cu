// Asserts on the device that hold.
#include "conformance.cuh"

#include <cassert>

__device__ int checked(const int* data, int at, int size) {
    assert(at >= 0 && at < size);
    return data[at];
}

__global__ void kernel(const int* data, int* out, int size) {
    assert(blockDim.x == 32 && "the block's size");
    out[threadIdx.x] = checked(data, threadIdx.x % size, size);
    assert(out[threadIdx.x] != 0);
}

int main() {
    Array<int> data(10), out(32);
    data.fill([](int i) { return i + 1; });
    kernel<<<1, 32>>>(data, out, 10);
    out.show("out");
}
