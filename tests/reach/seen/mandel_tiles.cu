// Mandelbrot by subdivision: the block's border decides whether its rectangle is filled, divided or computed.
#include <cstdio>
#include <cuda_runtime.h>
#define MAX_ITER 24
#define BX 8
#define BY 4
#define MAX_LEVEL 3
#define MIN_TILE 8

__device__ int iterations(int px, int py, int size) {
    float cx = -1.5f + 2.0f * px / size, cy = -1.0f + 2.0f * py / size, x = 0, y = 0;
    int k = 0;
    for (; k < MAX_ITER && x * x + y * y < 4.0f; ++k) {
        float t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
    }
    return k;
}

__device__ int flat_tid() { return threadIdx.y * blockDim.x + threadIdx.x; }

__global__ void tile_fill(int *image, int size, int x0, int y0, int d, int value) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < d && y < d) image[(y0 + y) * size + x0 + x] = value;
}

__global__ void tile_pixels(int *image, int size, int x0, int y0, int d) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < d && y < d) image[(y0 + y) * size + x0 + x] = iterations(x0 + x, y0 + y, size);
}

__global__ void tile(int *image, int size, int x0, int y0, int d, int level) {
    __shared__ int lo, hi;
    x0 += blockIdx.x * d;
    y0 += blockIdx.y * d;
    int t = flat_tid();
    if (t == 0) { lo = MAX_ITER + 1; hi = -1; }
    __syncthreads();
    for (int i = t; i < d; i += blockDim.x * blockDim.y) {
        int v[4] = {iterations(x0 + i, y0, size), iterations(x0 + i, y0 + d - 1, size), iterations(x0, y0 + i, size), iterations(x0 + d - 1, y0 + i, size)};
        for (int k = 0; k < 4; ++k) { atomicMin(&lo, v[k]); atomicMax(&hi, v[k]); }
    }
    __syncthreads();
    if (t == 0) {
        dim3 block(BX, BY), grid((d + BX - 1) / BX, (d + BY - 1) / BY);
        if (lo == hi) tile_fill<<<grid, block>>>(image, size, x0, y0, d, lo);
        else if (level < MAX_LEVEL && d > MIN_TILE) tile<<<dim3(2, 2), block>>>(image, size, x0, y0, d / 2, level + 1);
        else tile_pixels<<<grid, block>>>(image, size, x0, y0, d);
    }
}

int main() {
    int size = 64, *image;
    cudaMallocManaged(&image, size * size * sizeof(int));
    tile<<<dim3(2, 2), dim3(BX, BY)>>>(image, size, 0, 0, size / 2, 0);
    cudaDeviceSynchronize();
    long sum = 0;
    for (int i = 0; i < size * size; ++i) sum += image[i] * (i % 7 + 1);
    printf("%ld\n", sum);
}
