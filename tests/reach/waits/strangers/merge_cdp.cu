/*
 * Merge sort with CUDA 5.5 dynamic parallelism (sm_35).
 * nvcc -arch=sm_35 -rdc=true merge_cdp.cu -lcudadevrt
 */
#include <stdio.h>
#include <stdlib.h>

#define SELECTION 32

__device__ void selection_sort(unsigned int *data, int left, int right)
{
    for (int i = left; i < right; ++i)
    {
        unsigned int min_val = data[i];
        int min_idx = i;
        for (int j = i + 1; j < right; ++j)
        {
            if (data[j] < min_val) { min_idx = j; min_val = data[j]; }
        }
        if (i != min_idx) { data[min_idx] = data[i]; data[i] = min_val; }
    }
}

/* every thread finds the place of one element in the other half */
__global__ void merge_kernel(const unsigned int *data, unsigned int *aux, int begin, int middle, int end)
{
    int i = begin + blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= end) return;
    unsigned int v = data[i];
    int lo, hi;
    if (i < middle)
    {
        lo = middle; hi = end;
        while (lo < hi) { int m = (lo + hi) / 2; if (data[m] < v) lo = m + 1; else hi = m; }
        aux[i + lo - middle] = v;
    }
    else
    {
        lo = begin; hi = middle;
        while (lo < hi) { int m = (lo + hi) / 2; if (data[m] <= v) lo = m + 1; else hi = m; }
        aux[i - middle + lo] = v;
    }
}

__global__ void copy_kernel(unsigned int *dst, const unsigned int *src, int begin, int end)
{
    int i = begin + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < end) dst[i] = src[i];
}

__global__ void cdp_mergesort(unsigned int *data, unsigned int *aux, int begin, int end, int depth)
{
    int n = end - begin;
    if (n <= SELECTION)
    {
        selection_sort(data, begin, end);
        return;
    }
    int middle = begin + n / 2;
    cudaStream_t s, s1;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    cdp_mergesort<<<1, 1, 0, s>>>(data, aux, begin, middle, depth + 1);
    cudaStreamDestroy(s);
    cudaStreamCreateWithFlags(&s1, cudaStreamNonBlocking);
    cdp_mergesort<<<1, 1, 0, s1>>>(data, aux, middle, end, depth + 1);
    cudaStreamDestroy(s1);

    // Waits until children have returned
    cudaDeviceSynchronize();

    merge_kernel<<<(n + 63) / 64, 64>>>(data, aux, begin, middle, end);
    copy_kernel<<<(n + 63) / 64, 64>>>(data, aux, begin, end);
    cudaDeviceSynchronize();
}

int main(int argc, char **argv)
{
    int n = 4000;
    unsigned int *h = (unsigned int *)malloc(n * sizeof(unsigned int)), *d, *aux;
    srand(2047);
    for (int i = 0; i < n; i++) h[i] = rand() % n;
    cudaMalloc((void **)&d, n * sizeof(unsigned int));
    cudaMalloc((void **)&aux, n * sizeof(unsigned int));
    cudaMemcpy(d, h, n * sizeof(unsigned int), cudaMemcpyHostToDevice);
    cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096);
    cdp_mergesort<<<1, 1>>>(d, aux, 0, n, 0);
    cudaDeviceSynchronize();
    cudaMemcpy(h, d, n * sizeof(unsigned int), cudaMemcpyDeviceToHost);
    int bad = 0; unsigned long long sum = 0;
    for (int i = 0; i < n; i++) { if (i && h[i - 1] > h[i]) bad++; sum += (unsigned long long)h[i] * i; }
    printf("%s, checksum %llu\n", bad ? "FAILED" : "OK", sum);
    return 0;
}
