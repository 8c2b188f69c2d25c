#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

#define BSIZE2DX 4
#define BSIZE2DY 4
#define MIN_SIZE 8

__device__ inline void work(int *data, uint32_t index, uint2 p) {
    data[index] += 1 + p.x;
}

// Maps threads to the lower triangle: a square, and two smaller triangles by recursion.
__global__ void kernelDynamicParallelism(int *data, const uint32_t n, const uint32_t depth, const uint32_t levelN, uint32_t originX, uint32_t originY) {
    const uint32_t halfLevelN = levelN >> 1;
    const uint32_t x = blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t y = blockIdx.y * blockDim.y + threadIdx.y;

    if (x < levelN && y < levelN && originX + x < n && originY + y < n) {
        work(data, (originY + y) * n + originX + x, make_uint2(originX + x, originY + y));
    }

    if (threadIdx.x + threadIdx.y + blockIdx.x + blockIdx.y == 0) {
        if (levelN > MIN_SIZE) {
            dim3 blockSize(BSIZE2DX, BSIZE2DY);
            dim3 gridSize((halfLevelN + blockSize.x - 1) / blockSize.x, (halfLevelN + blockSize.y - 1) / blockSize.y);

            cudaStream_t s1, s2;
            cudaStreamCreateWithFlags(&s1, cudaStreamNonBlocking);
            cudaStreamCreateWithFlags(&s2, cudaStreamNonBlocking);
            kernelDynamicParallelism<<<gridSize, blockSize, 0, s1>>>(data, n, depth + 1, halfLevelN, originX + levelN, originY);
            kernelDynamicParallelism<<<gridSize, blockSize, 0, s2>>>(data, n, depth + 1, halfLevelN, originX, originY + levelN);
        }
    }
}

int main() {
    const uint32_t n = 64;
    int *data;
    cudaMallocManaged(&data, n * n * sizeof(int));
    for (uint32_t i = 0; i < n * n; i++)
        data[i] = 0;
    dim3 block(BSIZE2DX, BSIZE2DY);
    dim3 grid(n / 2 / BSIZE2DX, n / 2 / BSIZE2DY);
    kernelDynamicParallelism<<<grid, block>>>(data, n, 1, n / 2, 0, 0);
    cudaDeviceSynchronize();
    long sum = 0;
    for (uint32_t i = 0; i < n * n; i++)
        sum = (sum * 5 + data[i]) % 1000003;
    printf("%ld\n", sum);
    return 0;
}
