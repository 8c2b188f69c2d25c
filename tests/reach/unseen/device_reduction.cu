#include <cuda_runtime.h>
#include <iostream>

#define BLOCK_DIM (64)

__global__ void reduction(const float *a, float *b, float *spare, int n) {
    __shared__ float r[BLOCK_DIM];
    int i = blockIdx.x * BLOCK_DIM + threadIdx.x;
    int nb = (n + BLOCK_DIM -1) / BLOCK_DIM;
    int step = BLOCK_DIM >> 1;
    if (i < n)
        r[threadIdx.x] = a[i];
    else
        r[threadIdx.x] = 0.0f;
    __syncthreads();
    while(step >= 1) {
        if(threadIdx.x < step)
           r[threadIdx.x] += r[threadIdx.x + step];
        __syncthreads();
        step >>= 1;
    }
    if(threadIdx.x == 0)
        b[blockIdx.x] = r[0];
    __syncthreads();
    if(i == 0 && nb > 1)
            reduction<<<(nb + BLOCK_DIM - 1) / BLOCK_DIM, BLOCK_DIM,0,cudaStreamTailLaunch>>>(b,spare,b,nb);
}

int main() {
    const int n = 64 * 64 * 3 + 17;
    float *a, *b, *c;
    cudaMallocManaged(&a, n * sizeof(float));
    int sz = (n + BLOCK_DIM - 1) / BLOCK_DIM;
    cudaMallocManaged(&b, sz * sizeof(float));
    cudaMallocManaged(&c, sz * sizeof(float));
    for (int i = 0; i < n; i++)
        a[i] = i % 3;
    for (int i = 0; i < sz; i++)
        b[i] = c[i] = 0;
    reduction<<<sz, BLOCK_DIM>>>(a, b, c, n);
    cudaDeviceSynchronize();
    std::cout << b[0] << " " << c[0] << std::endl;
    return 0;
}
