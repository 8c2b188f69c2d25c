// One block for each row decides whether the row gets a grid; the last thread launches.
#include <cstdio>
#include <cuda_runtime.h>
#ifndef NUM_BINS
#define NUM_BINS 16
#endif
#ifndef ROW_BLOCK
#define ROW_BLOCK 64
#endif

__global__ void row_histogram(const unsigned char* img, unsigned* hist, int pitch, int width, int row) {
    __shared__ unsigned local[NUM_BINS];
    for (int b = threadIdx.x; b < NUM_BINS; b += blockDim.x) local[b] = 0;
    __syncthreads();
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < width) atomicAdd(&local[img[row * pitch + x] % NUM_BINS], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < NUM_BINS; b += blockDim.x)
        if (local[b]) atomicAdd(&hist[row * NUM_BINS + b], local[b]);
}

__global__ void histogram(const unsigned char* img, unsigned* hist, const int* widths, int pitch, int rows) {
    __shared__ int width;
    int row = blockIdx.x;
    if (threadIdx.x == 0) width = widths[row];
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1 && width > 0)
        row_histogram<<<(width + ROW_BLOCK - 1) / ROW_BLOCK, ROW_BLOCK>>>(img, hist, pitch, width, row);
}

int main() {
    const int rows = 10, pitch = 200;
    unsigned char* img;
    unsigned* hist;
    int* widths;
    cudaMallocManaged(&img, rows * pitch);
    cudaMallocManaged(&hist, rows * NUM_BINS * sizeof(unsigned));
    cudaMallocManaged(&widths, rows * sizeof(int));
    for (int i = 0; i < rows * pitch; ++i) img[i] = (i * 31) % 253;
    for (int i = 0; i < rows * NUM_BINS; ++i) hist[i] = 0;
    for (int r = 0; r < rows; ++r) widths[r] = r * 20;
    histogram<<<rows, 32>>>(img, hist, widths, pitch, rows);
    cudaDeviceSynchronize();
    for (int i = 0; i < rows * NUM_BINS; ++i) printf("%u ", hist[i]);
    printf("\n");
}
