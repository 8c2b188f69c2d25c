#include <stdio.h>
#include <cuda_runtime.h>

__global__ void gpuRecursiveReduce(int *g_idata, int *g_odata, unsigned int isize)
{
    unsigned int tid = threadIdx.x;
    int *idata = g_idata + blockIdx.x * blockDim.x;
    int *odata = &g_odata[blockIdx.x];

    // stop condition
    if (isize == 2 && tid == 0)
    {
        g_odata[blockIdx.x] = idata[0] + idata[1];
        return;
    }

    // nested invocation
    int istride = isize >> 1;
    if (istride > 1 && tid < istride)
    {
        // in place reduction
        idata[tid] += idata[tid + istride];
    }

    // sync at block level
    __syncthreads();

    // nested invocation to generate child grids
    if (tid == 0)
    {
        gpuRecursiveReduce<<<1, istride>>>(idata, odata, istride);

        // sync all child grids launched in this block
        cudaDeviceSynchronize();
    }

    // sync at block level again
    __syncthreads();
}

int main()
{
    const int size = 256, block = 32;
    int *in, *out;
    cudaMallocManaged(&in, size * sizeof(int));
    cudaMallocManaged(&out, size / block * sizeof(int));
    for (int i = 0; i < size; i++) in[i] = i & 7;
    gpuRecursiveReduce<<<size / block, block>>>(in, out, block);
    cudaDeviceSynchronize();
    int sum = 0;
    for (int i = 0; i < size / block; i++) sum += out[i];
    printf("%d\n", sum);
    return 0;
}
