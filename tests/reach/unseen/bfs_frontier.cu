// Breadth-first search with a frontier; one child grid for the edges of each vertex.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include "csr.cuh"

#define BLOCK_DIM 128

__device__ __forceinline__ unsigned globalThread() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void visit_neighbors(CSRGraph g, unsigned* level, unsigned* nextFrontier, unsigned* nextSize,
                                unsigned currLevel, unsigned first, unsigned degree) {
    unsigned i = globalThread();
    if (i < degree) {
        unsigned neighbor = g.dst[first + i];
        if (atomicCAS(&level[neighbor], UNREACHED, currLevel) == UNREACHED) {
            unsigned slot = atomicAdd(nextSize, 1u);
            nextFrontier[slot] = neighbor;
        }
    }
}

__global__ void bfs_kernel(CSRGraph g, unsigned* level, unsigned* frontier, unsigned* nextFrontier, unsigned size,
                           unsigned* nextSize, unsigned currLevel) {
    unsigned i = globalThread();
    if (i < size) {
        unsigned vertex = frontier[i];
        unsigned start = g.rowPtrs[vertex];
        unsigned degree = g.rowPtrs[vertex + 1] - start;
        if (degree > 0) {
            visit_neighbors<<<(degree + BLOCK_DIM - 1) / BLOCK_DIM, BLOCK_DIM>>>(g, level, nextFrontier, nextSize, currLevel,
                                                                               start, degree);
        }
    }
}

int main() {
    const unsigned n = 64;
    unsigned *rows, *dst, *level, *a, *b, *size;
    cudaMallocManaged(&rows, (n + 1) * sizeof(unsigned));
    cudaMallocManaged(&dst, 4 * n * sizeof(unsigned));
    cudaMallocManaged(&level, n * sizeof(unsigned));
    cudaMallocManaged(&a, 4 * n * sizeof(unsigned));
    cudaMallocManaged(&b, 4 * n * sizeof(unsigned));
    cudaMallocManaged(&size, sizeof(unsigned));
    for (unsigned v = 0, e = 0; v < n; ++v) {
        rows[v] = e;
        for (unsigned k = 0; k < v % 5; ++k) dst[e++] = (v * 7 + k * 3 + 1) % n;
        rows[v + 1] = e;
        level[v] = UNREACHED;
    }
    CSRGraph g{n, rows, dst};
    level[4] = 0;
    a[0] = 4;
    unsigned count = 1;
    for (unsigned depth = 1; count > 0; ++depth) {
        *size = 0;
        bfs_kernel<<<(count + BLOCK_DIM - 1) / BLOCK_DIM, BLOCK_DIM>>>(g, level, a, b, count, size, depth);
        cudaDeviceSynchronize();
        count = *size;
        unsigned* t = a; a = b; b = t;
    }
    for (unsigned v = 0; v < n; ++v) printf("%u ", level[v]);
    printf("\n");
    return 0;
}
