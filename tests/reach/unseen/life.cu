// Two kernels that launch each other into the tail, a generation each.
#include <cstdio>
#include <cuda_runtime.h>
#define SIDE 16
__global__ void odd_step(unsigned char* a, unsigned char* b, int left);

__device__ int alive(const unsigned char* g, int i) {
    int x = i % SIDE, y = i / SIDE, n = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (dx || dy) n += g[(y + dy + SIDE) % SIDE * SIDE + (x + dx + SIDE) % SIDE];
    return n == 3 || (n == 2 && g[i]);
}

__global__ void even_step(unsigned char* a, unsigned char* b, int left) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < SIDE * SIDE) b[i] = alive(a, i);
    if (i == 0 && left > 1) odd_step<<<gridDim.x, blockDim.x, 0, cudaStreamTailLaunch>>>(a, b, left - 1);
}

__global__ void odd_step(unsigned char* a, unsigned char* b, int left) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < SIDE * SIDE) a[i] = alive(b, i);
    if (i == 0 && left > 1) even_step<<<gridDim.x, blockDim.x, 0, cudaStreamTailLaunch>>>(a, b, left - 1);
}

int main() {
    unsigned char *a, *b;
    cudaMallocManaged(&a, SIDE * SIDE);
    cudaMallocManaged(&b, SIDE * SIDE);
    for (int i = 0; i < SIDE * SIDE; ++i) a[i] = i % 3 == 0;
    even_step<<<SIDE * SIDE / 64, 64>>>(a, b, 6);
    cudaDeviceSynchronize();
    for (int i = 0; i < SIDE * SIDE; ++i) printf("%d", a[i]);
    printf("\n");
}
