// Copies and memory settings by device code are ordered with the launches of the same stream.
#include "conformance.cuh"

__global__ void add(int* data, int value) { data[threadIdx.x] += value; }

__global__ void parent(int* a, int* b, int* errors) {
    int failed = 0;
    add<<<1, 16>>>(a, 3);
    failed += cudaMemcpyAsync(b, a, 16 * sizeof(int), cudaMemcpyDeviceToDevice, 0) != cudaSuccess;
    failed += cudaMemsetAsync(a, 0, 8 * sizeof(int), 0) != cudaSuccess;
    add<<<1, 16>>>(a, 100);
    add<<<1, 16>>>(b, 1000);
    atomicAdd(errors, failed);
}

__global__ void facts(int* out) {
    out[0] = cudaGetDevice(&out[1]) == cudaSuccess;
    int value = 0;
    out[2] = cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0) == cudaSuccess;
    out[3] = value;
}

int main() {
    Array<int> a(16), b(16), errors(1), out(4);
    a.fill([](int i) { return i; });
    parent<<<1, 1>>>(a, b, errors);
    a.show("a");
    b.show("b");
    errors.show("errors");
    facts<<<1, 1>>>(out);
    out.show("facts");
}
