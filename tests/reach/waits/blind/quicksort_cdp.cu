// Quicksort with dynamic parallelism, CUDA 5.5 .. 11 (nvcc -arch=sm_35 -rdc=true -lcudadevrt)
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define MAX_DEPTH       14
#define INSERTION_SORT  24

__device__ int d_maxDepthSeen;

__device__ void insertion_sort(int *data, int left, int right)
{
    for (int i = left + 1; i <= right; ++i) {
        int v = data[i], j = i - 1;
        while (j >= left && data[j] > v) {
            data[j + 1] = data[j];
            j--;
        }
        data[j + 1] = v;
    }
}

__device__ bool is_sorted(const int *data, int left, int right)
{
    for (int i = left; i < right; i++)
        if (data[i] > data[i + 1])
            return false;
    return true;
}

__global__ void quicksort(int *data, int left, int right, int depth, int *failures)
{
    if (right <= left)
        return;
    atomicMax(&d_maxDepthSeen, depth);

    if (depth >= MAX_DEPTH || right - left <= INSERTION_SORT) {
        insertion_sort(data, left, right);
        return;
    }

    int *lptr = data + left;
    int *rptr = data + right;
    int pivot = data[(left + right) / 2];

    while (lptr <= rptr) {
        int lval = *lptr, rval = *rptr;
        while (lval < pivot) lval = *++lptr;
        while (rval > pivot) rval = *--rptr;
        if (lptr <= rptr) {
            *lptr++ = rval;
            *rptr-- = lval;
        }
    }
    int nright = (int)(rptr - data);
    int nleft = (int)(lptr - data);

    cudaStream_t s;
    if (left < nright) {
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        quicksort<<<1, 1, 0, s>>>(data, left, nright, depth + 1, failures);
        cudaStreamDestroy(s);
    }
    cudaStream_t s1;
    if (nleft < right) {
        cudaStreamCreateWithFlags(&s1, cudaStreamNonBlocking);
        quicksort<<<1, 1, 0, s1>>>(data, nleft, right, depth + 1, failures);
        cudaStreamDestroy(s1);
    }

    /* both halves must be there before this node checks its range */
    cudaDeviceSynchronize();
    if (!is_sorted(data, left, right))
        atomicAdd(failures, 1);
}

int main(void)
{
    const int n = 2000;
    int *h = (int *)malloc(n * sizeof(int)), *d, *dfail, fail = -1;
    for (int i = 0; i < n; i++) h[i] = (i * 7919 + 13) % 4001;
    cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, MAX_DEPTH);
    cudaMalloc(&d, n * sizeof(int));
    cudaMalloc(&dfail, sizeof(int));
    cudaMemset(dfail, 0, sizeof(int));
    cudaMemcpy(d, h, n * sizeof(int), cudaMemcpyHostToDevice);
    quicksort<<<1, 1>>>(d, 0, n - 1, 0, dfail);
    cudaDeviceSynchronize();
    cudaMemcpy(h, d, n * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpy(&fail, dfail, sizeof(int), cudaMemcpyDeviceToHost);
    long sum = 0;
    for (int i = 0; i < n; i++) sum += (long)h[i] * (i + 1);
    printf("sorted, %d failures, checksum %ld\n", fail, sum);
    return fail;
}
