// Launches and calls by the host that are refused.
#include "conformance.cuh"

__global__ void kernel(int* ran) { atomicAdd(ran, 1); }

int main() {
    Array<int> ran(1);
    kernel<<<1, 1>>>(ran);
    show_error("fine", cudaGetLastError());
    kernel<<<0, 1>>>(ran);
    show_error("grid 0", cudaGetLastError());
    kernel<<<dim3(1, 1, 0), 1>>>(ran);
    show_error("grid z 0", cudaGetLastError());
    kernel<<<1, 0>>>(ran);
    show_error("block 0", cudaGetLastError());
    kernel<<<1, 1025>>>(ran);
    show_error("block 1025", cudaGetLastError());
    kernel<<<1, dim3(2, 2, 65)>>>(ran);
    show_error("block z 65", cudaGetLastError());
    kernel<<<dim3(1, 65536), 1>>>(ran);
    show_error("grid y 65536", cudaGetLastError());
    kernel<<<1, 1, 100 * 1024>>>(ran);
    show_error("shared 100 KB", cudaGetLastError());
    ran.show("ran");
    void* memory = nullptr;
    show_error("too much memory", cudaMalloc(&memory, size_t(1) << 52));
    show("null", memory == nullptr);
    show_error("last", cudaGetLastError());
    show_error("memset of null", cudaMemset(nullptr, 0, 4));
    show_error("no such device", cudaSetDevice(1000));
    show_error("no such direction", cudaMemcpy(ran, ran, 4, static_cast<cudaMemcpyKind>(77)));
    (void)cudaGetLastError();
    show_error("free of null", cudaFree(nullptr));
    show_error("last", cudaGetLastError());
}
