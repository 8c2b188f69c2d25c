#include <stdio.h>
#include <cuda_runtime.h>

extern "C"
__global__ void childKernel(unsigned int parentThreadIndex, float* data)
{
    data[threadIdx.x] = parentThreadIndex + 0.1f * threadIdx.x;
}

extern "C"
__global__ void parentKernel(unsigned int size, float *data)
{
    childKernel<<<1, 8>>>(threadIdx.x, data + threadIdx.x * 8);
    cudaDeviceSynchronize();
    __syncthreads();
}

int main()
{
    float *data;
    cudaMallocManaged(&data, 64 * sizeof(float));
    parentKernel<<<1, 8>>>(64, data);
    cudaDeviceSynchronize();
    double s = 0;
    for (int i = 0; i < 64; i++) s += data[i] * (i + 1);
    printf("%.2f\n", s);
    return 0;
}
