// Triangle counting; errors are printed with the place where they happened.
#include <cstdio>
#include <cuda_runtime.h>
#ifndef INTERSECT_BLOCK
#define INTERSECT_BLOCK 32
#endif

__device__ void report(const char* what, int edge) {
    printf("[%d,%d] %s at edge %d\n", blockIdx.x, threadIdx.x, what, edge);
}

__device__ int find(const int* list, int lo, int hi, int key) {
    while (lo < hi) {
        int mid = (lo + hi) >> 1;
        if (list[mid] < key) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

__global__ void intersect(const int* __restrict__ rows, const int* __restrict__ cols, unsigned long long* total, int u, int v, int len) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= len) return;
    int w = cols[rows[u] + i];
    if (w < 0) { report("negative neighbour", rows[u] + i); return; }
    int end = rows[v + 1];
    int at = find(cols, rows[v], end, w);
    if (at < end && cols[at] == w) atomicAdd(total, 1ULL);
}

__global__ void count_edges(const int* rows, const int* cols, const int* from, unsigned long long* total, int edges) {
    for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < edges; e += gridDim.x * blockDim.x) {
        int u = from[e], v = cols[e];
        int len = rows[u + 1] - rows[u];
        if (u < v && len > 0) intersect<<<(len - 1) / INTERSECT_BLOCK + 1, INTERSECT_BLOCK>>>(rows, cols, total, u, v, len);
    }
}

int main() {
    const int n = 12;
    int *rows, *cols, *from;
    unsigned long long* total;
    cudaMallocManaged(&rows, (n + 1) * sizeof(int));
    cudaMallocManaged(&cols, n * n * sizeof(int));
    cudaMallocManaged(&from, n * n * sizeof(int));
    cudaMallocManaged(&total, sizeof(*total));
    int e = 0;
    for (int u = 0; u < n; ++u) {
        rows[u] = e;
        for (int v = 0; v < n; ++v)
            if (u != v && (u + v) % 3 != 0) { from[e] = u; cols[e++] = v; }
    }
    rows[n] = e;
    *total = 0;
    count_edges<<<2, 32>>>(rows, cols, from, total, e);
    cudaDeviceSynchronize();
    printf("%llu\n", *total);
}
