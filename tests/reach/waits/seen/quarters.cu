#include <stdio.h>
#include <cuda_runtime.h>

__global__ void childKernel(int *data, int offset) {
    int idx = offset + blockIdx.x * blockDim.x + threadIdx.x;
    data[idx] *= 2;
}

__global__ void parentKernel(int *data, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n / 32) {
        childKernel<<<4, 8>>>(data, idx * 32);
        cudaError_t err = cudaDeviceSynchronize();  // Wait for child
        if (err != cudaSuccess) printf("child of %d failed\n", idx);
    }
}

int main() {
    const int n = 256;
    int *data;
    cudaMallocManaged(&data, n * sizeof(int));
    for (int i = 0; i < n; i++) data[i] = i;
    parentKernel<<<1, 16>>>(data, n);
    cudaDeviceSynchronize();
    long s = 0;
    for (int i = 0; i < n; i++) s += (long)data[i] * i;
    printf("%ld\n", s);
}
