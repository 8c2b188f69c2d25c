// Merge sort that goes down by launching: the children sort the halves, the tail merges.
#include <cstdio>
#include <cuda_runtime.h>

__device__ void merge(int* a, int* b, int lo, int mid, int hi) {
    int i = lo, j = mid;
    for (int k = lo; k < hi; ++k)
        if (i < mid && (j >= hi || a[i] <= a[j])) b[k] = a[i++];
        else b[k] = a[j++];
    for (int k = lo; k < hi; ++k) a[k] = b[k];
}

__global__ void merge_kernel(int* a, int* b, int lo, int mid, int hi) { merge(a, b, lo, mid, hi); }

__global__ void msort(int* a, int* b, int lo, int hi) {
    if (hi - lo < 2) return;
    int mid = (lo + hi) / 2;
    msort<<<1, 1, 0, cudaStreamFireAndForget>>>(a, b, lo, mid);
    msort<<<1, 1, 0, cudaStreamFireAndForget>>>(a, b, mid, hi);
    merge_kernel<<<1, 1, 0, cudaStreamTailLaunch>>>(a, b, lo, mid, hi);
}

int main() {
    int *a, *b;
    cudaMallocManaged(&a, 32 * sizeof(int));
    cudaMallocManaged(&b, 32 * sizeof(int));
    for (int i = 0; i < 32; ++i) a[i] = (i * 13) % 37;
    msort<<<1, 1>>>(a, b, 0, 32);
    cudaDeviceSynchronize();
    for (int i = 0; i < 32; ++i) printf("%d ", a[i]);
    printf("\n");
}
