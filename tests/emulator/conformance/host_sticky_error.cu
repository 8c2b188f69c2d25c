// A failed assert on the device: every later call of the host fails alike, and reading the error does not help.
#include "conformance.cuh"

#include <cassert>

__global__ void kernel(int limit) { assert(static_cast<int>(threadIdx.x) < limit); }

int main() {
    kernel<<<1, 4>>>(4);
    show_error("holds", cudaDeviceSynchronize());
    kernel<<<1, 4>>>(3);
    show_error("fails", cudaDeviceSynchronize());
    (void)cudaGetLastError();
    show_error("again", cudaDeviceSynchronize());
    (void)cudaGetLastError();
    void* memory = nullptr;
    show_error("another call", cudaMalloc(&memory, 16));
    kernel<<<1, 1>>>(1);
    show_error("another launch", cudaGetLastError());
}
