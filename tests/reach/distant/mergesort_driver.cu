/* Homework 6: bottom-up merge sort. The sort kernel is started with a single thread and
 * launches one merge kernel per pass. */
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include <vector>

#define CHUNK 64
#define THREADS 128

__global__ void sort_chunks(int *a, int n)
{
    int start = (blockIdx.x * blockDim.x + threadIdx.x) * CHUNK;
    int end = start + CHUNK < n ? start + CHUNK : n;
    for (int i = start + 1; i < end; i++) {
        int key = a[i];
        int j = i - 1;
        while (j >= start && a[j] > key) { a[j + 1] = a[j]; j--; }
        a[j + 1] = key;
    }
}

__device__ int lower_bound(const int *a, int lo, int hi, int key)
{
    while (lo < hi) { int mid = (lo + hi) / 2; if (a[mid] < key) lo = mid + 1; else hi = mid; }
    return lo;
}
__device__ int upper_bound(const int *a, int lo, int hi, int key)
{
    while (lo < hi) { int mid = (lo + hi) / 2; if (a[mid] <= key) lo = mid + 1; else hi = mid; }
    return lo;
}

/* every element finds its place in the merged run */
__global__ void merge_pass(const int *src, int *dst, int n, int width)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int pair = i / (2 * width) * (2 * width);
    int mid = min(pair + width, n), end = min(pair + 2 * width, n);
    int pos;
    if (i < mid) pos = i + (lower_bound(src, mid, end, src[i]) - mid);
    else         pos = (i - mid) + upper_bound(src, pair, mid, src[i]);
    dst[pos] = src[i];
}

__global__ void copy_back(const int *src, int *dst, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) dst[i] = src[i];
}

__global__ void merge_sort(int *data, int *tmp, int n)
{
    if (n <= 1) return;
    int chunks = (n + CHUNK - 1) / CHUNK;
    sort_chunks<<<(chunks + THREADS - 1) / THREADS, THREADS>>>(data, n);

    int *src = data, *dst = tmp;
    int grid = (n + THREADS - 1) / THREADS;
    for (int width = CHUNK; width < n; width *= 2) {
        merge_pass<<<grid, THREADS>>>(src, dst, n, width);
        int *t = src; src = dst; dst = t;
    }
    if (src != data)
        copy_back<<<grid, THREADS>>>(src, data, n);
}

int test(int n)
{
    std::vector<int> v(n), ref;
    for (int i = 0; i < n; i++) v[i] = rand() % (2 * n + 1);
    ref = v;
    std::sort(ref.begin(), ref.end());
    int *d, *t;
    cudaMalloc(&d, (n + 1) * sizeof(int));
    cudaMalloc(&t, (n + 1) * sizeof(int));
    cudaMemcpy(d, v.data(), n * sizeof(int), cudaMemcpyHostToDevice);
    merge_sort<<<1, 1>>>(d, t, n);
    cudaError_t err = cudaDeviceSynchronize();
    if (err != cudaSuccess) {
        printf("n=%d: %s\n", n, cudaGetErrorString(err));
        return 1;
    }
    cudaMemcpy(v.data(), d, n * sizeof(int), cudaMemcpyDeviceToHost);
    cudaFree(d);
    cudaFree(t);
    for (int i = 0; i < n; i++)
        if (v[i] != ref[i]) {
            printf("n=%d: a[%d]=%d should be %d\n", n, i, v[i], ref[i]);
            return 1;
        }
    return 0;
}

int main(void)
{
    srand(6);
    int sizes[] = {1, 2, 63, 64, 65, 1000, 4096, 100000};
    int failed = 0;
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
        failed += test(sizes[k]);
    if (failed) printf("%d tests failed\n", failed);
    else printf("OK\n");
    return failed;
}
