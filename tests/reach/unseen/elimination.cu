// Elimination over GF(2): pivot, swap and eliminate launch one another into the tail stream.
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>
#define WORD_SIZE 32
__global__ void find_pivot(uint32_t* m, int n, int words, int col, int row, int* pivot);

__global__ void eliminate(uint32_t* m, int n, int words, int col, int row, int* pivot) {
    int r = blockIdx.x, w = threadIdx.x;
    uint32_t bit = (m[r * words + col / WORD_SIZE] >> (col % WORD_SIZE)) & 1u;
    __syncthreads();
    if (r != row && w < words && bit) m[r * words + w] ^= m[row * words + w];
    if (r == 0 && w == 0 && col + 1 < n) {
        *pivot = n;
        find_pivot<<<(n + 31) / 32, 32, 0, cudaStreamTailLaunch>>>(m, n, words, col + 1, row + 1, pivot);
    }
}

__global__ void swap_rows(uint32_t* m, int n, int words, int col, int row, int* pivot) {
    int p = *pivot;
    if (p == n) return;
    int w = threadIdx.x;
    if (p != row && w < words) {
        uint32_t t = m[row * words + w];
        m[row * words + w] = m[p * words + w];
        m[p * words + w] = t;
    }
    __syncthreads();
    if (threadIdx.x == 0) eliminate<<<n, words, 0, cudaStreamTailLaunch>>>(m, n, words, col, row, pivot);
}

__global__ void find_pivot(uint32_t* m, int n, int words, int col, int row, int* pivot) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= row && r < n && ((m[r * words + col / WORD_SIZE] >> (col % WORD_SIZE)) & 1u)) atomicMin(pivot, r);
    if (threadIdx.x == 0 && blockIdx.x == 0) swap_rows<<<1, 32, 0, cudaStreamTailLaunch>>>(m, n, words, col, row, pivot);
}

void reduce_matrix(uint32_t* m, int n, int* pivot) {
    int words = (n + WORD_SIZE - 1) / WORD_SIZE;
    find_pivot<<<(n + 31) / 32, 32>>>(m, n, words, 0, 0, pivot);
}
