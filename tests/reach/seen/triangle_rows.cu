// For each edge a grid searches the common neighbours.
#include <cstdio>
#include <cuda_runtime.h>
#ifndef BLOCK_SIZE
#define BLOCK_SIZE 64
#endif
__device__ __forceinline__ int lower_bound(const int *a, int n, int key) {
    int lo = 0;
    while (n > 0) {
        int half = n / 2;
        if (a[lo + half] < key) { lo += half + 1; n -= half + 1; }
        else n = half;
    }
    return lo;
}
__device__ __forceinline__ void grid_stride(int &first, int &step) {
    first = blockIdx.x * blockDim.x + threadIdx.x;
    step = blockDim.x * gridDim.x;
}
__global__ void common_neighbours(const int *__restrict__ u, int nu, const int *__restrict__ v, int nv, unsigned *count) {
    int first, step;
    grid_stride(first, step);
    unsigned mine = 0;
    for (int i = first; i < nu; i += step) {
        int at = lower_bound(v, nv, u[i]);
        mine += at < nv && v[at] == u[i];
    }
    if (mine) atomicAdd(count, mine);
}
__global__ void triangles(const int *__restrict__ row, const int *__restrict__ col, const int *__restrict__ src, unsigned *count, int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges) return;
    int u = src[e], v = col[e];
    if (u >= v) return;
    int nu = row[u + 1] - row[u], nv = row[v + 1] - row[v];
    if (nu == 0 || nv == 0) return;
    common_neighbours<<<(nu + BLOCK_SIZE - 1) / BLOCK_SIZE, BLOCK_SIZE>>>(col + row[u], nu, col + row[v], nv, count);
}
int main() {
    const int n = 14;
    int *row, *col, *src;
    unsigned *count;
    cudaMallocManaged(&row, (n + 1) * sizeof(int));
    cudaMallocManaged(&col, n * n * sizeof(int));
    cudaMallocManaged(&src, n * n * sizeof(int));
    cudaMallocManaged(&count, sizeof(unsigned));
    int e = 0;
    for (int u = 0; u < n; ++u) {
        row[u] = e;
        for (int v = 0; v < n; ++v)
            if (u != v && (u * v) % 4 != 1) { src[e] = u; col[e++] = v; }
    }
    row[n] = e;
    *count = 0;
    triangles<<<(e + 31) / 32, 32>>>(row, col, src, count, e);
    cudaDeviceSynchronize();
    printf("%u\n", *count);
}
