// Rank of a matrix over GF(2), column after column, all on the device.
#include <stdint.h>
#include <stdio.h>
#include <cuda_runtime.h>

#define WORD_SIZE 32

__global__ void findPivotKernel(uint32_t* matrix, int n, int numWords, int col, int rank, int* pivot, int* result);

// 3. ELIMINATE
__global__ void eliminationKernel(uint32_t* matrix, int n, int numWords, int col, int rank, int* pivot, int* result)
{
    int row = blockIdx.x;
    int w = threadIdx.x;
    if (row > rank && row < n && w < numWords) {
        int word = col / WORD_SIZE;
        int bit  = col % WORD_SIZE;
        if (w > word && ((matrix[row*numWords + word] >> bit) & 1)) {
            matrix[row*numWords + w] ^= matrix[rank*numWords + w];
        }
    }
    if (row == 0 && w == 0) {
        *pivot = n;
        *result = rank + 1;
        findPivotKernel<<<1, 64, 0, cudaStreamTailLaunch>>>(matrix, n, numWords, col + WORD_SIZE, rank + 1, pivot, result);
    }
}

// 2. SWAP
__global__ void swapRowsKernel(uint32_t* matrix, int n, int numWords, int col, int rank, int* pivot, int* result)
{
    int p = *pivot;
    if (p == n) return;
    int w = threadIdx.x;
    if (p != rank && w < numWords) {
        uint32_t tmp = matrix[rank*numWords + w];
        matrix[rank*numWords + w] = matrix[p*numWords + w];
        matrix[p*numWords + w] = tmp;
    }
    __syncthreads();
    if (threadIdx.x == 0)
    {
        eliminationKernel<<<n, 32, 0, cudaStreamTailLaunch>>>(matrix, n, numWords, col, rank, pivot, result);
    }
}

// 1. FIND PIVOT
__global__ void findPivotKernel(uint32_t* matrix, int n, int numWords, int col, int rank, int* pivot, int* result)
{
    if (col >= numWords * WORD_SIZE || rank >= n) return;
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rank && row < n) {
        int word = col / WORD_SIZE;
        int bit  = col % WORD_SIZE;
        if ((matrix[row*numWords + word] >> bit) & 1) {
            atomicMin(pivot, row);
        }
    }
    if (threadIdx.x == 0 && blockIdx.x == 0)
    {
        swapRowsKernel<<<1, 32, 0, cudaStreamTailLaunch>>>(matrix, n, numWords, col, rank, pivot, result);
    }
}

int main()
{
    const int n = 48, numWords = 5;
    uint32_t* matrix;
    int *pivot, *result;
    cudaMallocManaged(&matrix, n * numWords * sizeof(uint32_t));
    cudaMallocManaged(&pivot, sizeof(int));
    cudaMallocManaged(&result, sizeof(int));
    uint32_t x = 12345;
    for (int i = 0; i < n * numWords; i++) {
        x = x * 1664525u + 1013904223u;
        matrix[i] = x;
    }
    *pivot = n;
    *result = 0;
    findPivotKernel<<<1, 64>>>(matrix, n, numWords, 0, 0, pivot, result);
    cudaDeviceSynchronize();
    uint32_t h = 0;
    for (int i = 0; i < n * numWords; i++)
        h = h * 31 + matrix[i];
    printf("%d %u\n", *result, h);
    return 0;
}
