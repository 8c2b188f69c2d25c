#include <stdio.h>
#define MAXIMAL_DEPTH 10
__device__ void insertion(int *a, int lo, int hi) {
    for (int i = lo + 1; i <= hi; i++) {
        int v = a[i], j = i - 1;
        while (j >= lo && a[j] > v) { a[j + 1] = a[j]; j--; }
        a[j + 1] = v;
    }
}
__global__ void cdp_qsort(int *a, int lo, int hi, int depth) {
    if (depth >= MAXIMAL_DEPTH || hi - lo < 8) { insertion(a, lo, hi); return; }
    int i = lo, j = hi, p = a[(lo + hi) / 2];
    while (i <= j) {
        while (a[i] < p) i++;
        while (a[j] > p) j--;
        if (i <= j) { int t = a[i]; a[i] = a[j]; a[j] = t; i++; j--; }
    }
    cudaStream_t s1, s2;
    if (lo < j) {
        cudaStreamCreateWithFlags(&s1, cudaStreamNonBlocking);
        cdp_qsort<<<1, 1, 0, s1>>>(a, lo, j, depth + 1);
        cudaStreamDestroy(s1);
    }
    if (i < hi) {
        cudaStreamCreateWithFlags(&s2, cudaStreamNonBlocking);
        cdp_qsort<<<1, 1, 0, s2>>>(a, i, hi, depth + 1);
        cudaStreamDestroy(s2);
    }
}
int main() {
    int *a;
    cudaMallocManaged(&a, 80 * sizeof(int));
    for (int i = 0; i < 80; ++i) a[i] = (i * 53) % 83;
    cdp_qsort<<<1, 1>>>(a, 0, 79, 0);
    cudaDeviceSynchronize();
    for (int i = 0; i < 80; ++i) printf("%d ", a[i]);
    printf("\n");
}
