#include <cstdio>
#include <cuda_runtime.h>
#define EXPAND_THREADS 32
#include "expand_kernel.cuh"

int main() {
    uint32 *in, *begin, *where, *out;
    cudaMallocManaged(&in, 100 * sizeof(uint32));
    cudaMallocManaged(&begin, 9 * sizeof(uint32));
    cudaMallocManaged(&where, 8 * sizeof(uint32));
    cudaMallocManaged(&out, 100 * sizeof(uint32));
    begin[0] = 0;
    for (uint32 l = 0; l < 8; ++l) { begin[l + 1] = begin[l] + 3 * l; }
    for (uint32 l = 0; l < 8; ++l) where[l] = 90 - begin[l + 1];
    for (uint32 i = 0; i < 100; ++i) { in[i] = i * i; out[i] = 0; }
    expand_lists<<<1, 32>>>(in, begin, where, out, 8);
    cudaDeviceSynchronize();
    for (uint32 i = 0; i < 100; ++i) printf("%u ", out[i]);
    printf("\n");
}
