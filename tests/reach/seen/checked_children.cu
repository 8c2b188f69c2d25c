#include <stdio.h>
#include <cuda_runtime.h>

#define N 96
#define CHUNK 24

#define CUDA_CHECK(call)                                              \
    do {                                                              \
        cudaError_t err = call;                                       \
        if (err != cudaSuccess) {                                     \
            fprintf(stderr, "CUDA error in %s (%s:%d): %s\n",         \
                    __FUNCTION__, __FILE__, __LINE__,                 \
                    cudaGetErrorString(err));                         \
            exit(EXIT_FAILURE);                                       \
        }                                                             \
    } while (0)

/* Child kernel: squares a chunk and counts what is odd */
__global__ void childKernel(int *data, int *odd, int start, int end)
{
    int idx = start + threadIdx.x + blockIdx.x * blockDim.x;
    if (idx < end) {
        int v = data[idx] * data[idx];
        data[idx] = v;
        if (v & 1) atomicAdd(odd, 1);
    }
}

/* Parent kernel: a chunk a thread */
__global__ void parentKernel(int *data, int *odd, int n)
{
    int tid = threadIdx.x + blockIdx.x * blockDim.x;
    int start = tid * CHUNK;
    int end = min(start + CHUNK, n);
    if (start < end) {
        int threads = 32;
        int blocks = (end - start + threads - 1) / threads;
        childKernel<<<blocks, threads>>>(data, odd, start, end);
        cudaError_t err = cudaGetLastError();
        if (err != cudaSuccess) {
            printf("Dynamic parallelism launch failed: %s\n", cudaGetErrorString(err));
        }
    }
}

int main(void)
{
    int *data, *odd;
    CUDA_CHECK(cudaMallocManaged(&data, N * sizeof(int)));
    CUDA_CHECK(cudaMallocManaged(&odd, sizeof(int)));
    for (int i = 0; i < N; i++) data[i] = i % 17;
    *odd = 0;
    parentKernel<<<1, 8>>>(data, odd, N);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    long s = *odd;
    for (int i = 0; i < N; i++) s = s * 3 % 1000003 + data[i];
    printf("%ld\n", s);
    return 0;
}
