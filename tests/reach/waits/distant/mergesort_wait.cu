// Recursive merge sort, top down: sort both halves in child grids, wait, merge.
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include <vector>

#define MIN_SIZE 256
#define MAX_LEVEL 12

#define CHECK(x) { cudaError_t err = (x); if (err != cudaSuccess) { printf("%s at line %d\n", cudaGetErrorString(err), __LINE__); return 1; } }

__device__ void insertion(int *a, int n)
{
    for (int i = 1; i < n; i++) {
        int v = a[i], j = i;
        for (; j > 0 && a[j - 1] > v; j--) a[j] = a[j - 1];
        a[j] = v;
    }
}

__global__ void merge_halves(const int *a, int *tmp, int n, int half)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int key = a[i];
        int lo = i < half ? half : 0, hi = i < half ? n : half;
        int base = lo;
        while (lo < hi) {
            int m = (lo + hi) >> 1;
            bool before = i < half ? a[m] < key : a[m] <= key;
            if (before) lo = m + 1; else hi = m;
        }
        tmp[(i < half ? i : i - half) + (lo - base)] = key;
    }
}

__global__ void copy_k(const int *from, int *to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}

__global__ void msort(int *a, int *tmp, int n, int level)
{
    if (n <= MIN_SIZE || level >= MAX_LEVEL) {
        insertion(a, n);
        return;
    }
    int half = n / 2;
    cudaStream_t s1, s2;
    cudaStreamCreateWithFlags(&s1, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&s2, cudaStreamNonBlocking);
    msort<<<1, 1, 0, s1>>>(a, tmp, half, level + 1);
    msort<<<1, 1, 0, s2>>>(a + half, tmp + half, n - half, level + 1);
    cudaDeviceSynchronize();

    merge_halves<<<(n + 127) / 128, 128>>>(a, tmp, n, half);
    copy_k<<<(n + 127) / 128, 128>>>(tmp, a, n);
    cudaDeviceSynchronize();
    cudaStreamDestroy(s1);
    cudaStreamDestroy(s2);
}

int main()
{
    const int n = 50000;
    std::vector<int> v(n), ref;
    srand(17);
    for (auto &x : v) x = rand() % 30000;
    ref = v;
    std::sort(ref.begin(), ref.end());
    int *d, *t;
    CHECK(cudaMalloc(&d, n * sizeof(int)));
    CHECK(cudaMalloc(&t, n * sizeof(int)));
    CHECK(cudaMemcpy(d, v.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, MAX_LEVEL));
    msort<<<1, 1>>>(d, t, n, 0);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(v.data(), d, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (v[i] != ref[i]) { printf("a[%d] = %d, expected %d\n", i, v[i], ref[i]); return 1; }
    printf("OK\n");
    return 0;
}
