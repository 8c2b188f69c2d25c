// Quicksort with dynamic parallelism. Based on what I understood from the
// programming guide: partition in one thread, then sort both halves in parallel.
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>

#define MAX_DEPTH 14
#define SMALL 48

__device__ void selection_sort(int *a, int left, int right)
{
    for (int i = left; i <= right; i++) {
        int m = i;
        for (int j = i + 1; j <= right; j++)
            if (a[j] < a[m])
                m = j;
        int t = a[i];
        a[i] = a[m];
        a[m] = t;
    }
}

// when the recursion gets too deep we fall back to heap sort
__device__ void heap_sort(int *a, int n)
{
    int end = n, start = n / 2;
    while (end > 1) {
        if (start > 0) {
            start--;
        } else {
            end--;
            int t = a[end]; a[end] = a[0]; a[0] = t;
        }
        int root = start;
        while (2 * root + 1 < end) {
            int child = 2 * root + 1;
            if (child + 1 < end && a[child] < a[child + 1]) child++;
            if (a[root] >= a[child]) break;
            int t = a[root]; a[root] = a[child]; a[child] = t;
            root = child;
        }
    }
}

__global__ void quicksort(int *data, int left, int right, int depth)
{
    if (right - left < SMALL) {
        selection_sort(data, left, right);
        return;
    }
    if (depth >= MAX_DEPTH) {
        heap_sort(data + left, right - left + 1);
        return;
    }

    int *lptr = data + left;
    int *rptr = data + right;
    int pivot = data[left + (right - left) / 2];

    // do the partitioning
    while (lptr <= rptr) {
        int lval = *lptr;
        int rval = *rptr;
        while (lval < pivot) {
            lptr++;
            lval = *lptr;
        }
        while (rval > pivot) {
            rptr--;
            rval = *rptr;
        }
        if (lptr <= rptr) {
            *lptr++ = rval;
            *rptr-- = lval;
        }
    }
    int nright = rptr - data;
    int nleft = lptr - data;

    // launch a new block to sort the left part
    if (left < nright) {
        cudaStream_t s;
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        quicksort<<<1, 1, 0, s>>>(data, left, nright, depth + 1);
        cudaStreamDestroy(s);
    }
    // launch a new block to sort the right part
    if (nleft < right) {
        cudaStream_t s1;
        cudaStreamCreateWithFlags(&s1, cudaStreamNonBlocking);
        quicksort<<<1, 1, 0, s1>>>(data, nleft, right, depth + 1);
        cudaStreamDestroy(s1);
    }
}

int main(int argc, char **argv)
{
    int n = 30000;
    if (argc > 1)
        n = atoi(argv[1]);
    int *h = (int *)malloc(n * sizeof(int));
    int *ref = (int *)malloc(n * sizeof(int));
    srand(2047);
    for (int i = 0; i < n; i++)
        ref[i] = h[i] = rand() % (2 * n);

    int *d;
    cudaError_t err;
    // many small pieces may be waiting at a time
    err = cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 8192);
    if (err != cudaSuccess) { printf("limit: %s\n", cudaGetErrorString(err)); return 1; }
    err = cudaMalloc((void **)&d, n * sizeof(int));
    if (err != cudaSuccess) { printf("malloc: %s\n", cudaGetErrorString(err)); return 1; }
    cudaMemcpy(d, h, n * sizeof(int), cudaMemcpyHostToDevice);

    quicksort<<<1, 1>>>(d, 0, n - 1, 0);
    err = cudaGetLastError();
    if (err != cudaSuccess) { printf("launch: %s\n", cudaGetErrorString(err)); return 1; }
    err = cudaDeviceSynchronize();
    if (err != cudaSuccess) { printf("sync: %s\n", cudaGetErrorString(err)); return 1; }

    cudaMemcpy(h, d, n * sizeof(int), cudaMemcpyDeviceToHost);
    std::sort(ref, ref + n);
    for (int i = 0; i < n; i++) {
        if (h[i] != ref[i]) {
            printf("element %d is %d, should be %d\n", i, h[i], ref[i]);
            return 1;
        }
    }
    printf("OK\n");
    cudaFree(d);
    free(h);
    free(ref);
    return 0;
}
