// A relaxation that goes on in the tail stream until it has converged.
#include <cstdio>
#include <cuda_runtime.h>
#define N 128
__global__ void jacobi(float* x, float* y, int* active, int iter, int maxIter) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i > 0 && i < N - 1) {
        float v = 0.5f * (x[i - 1] + x[i + 1]);
        if (fabsf(v - x[i]) > 0.125f) atomicExch(active, 1);
        y[i] = v;
    }
    if (i == 0 && iter < maxIter) jacobi<<<gridDim.x, blockDim.x, 0, cudaStreamTailLaunch>>>(y, x, active, iter + 1, maxIter);
}
int main() {
    float *x, *y;
    int* active;
    cudaMallocManaged(&x, N * sizeof(float));
    cudaMallocManaged(&y, N * sizeof(float));
    cudaMallocManaged(&active, sizeof(int));
    for (int i = 0; i < N; ++i) x[i] = y[i] = (i * 7) % 32;
    jacobi<<<2, 64>>>(x, y, active, 0, 5);
    cudaDeviceSynchronize();
    for (int i = 0; i < N; ++i) printf("%g ", x[i]);
    printf("\n");
}
