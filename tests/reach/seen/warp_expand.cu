// Each warp has a node; lane 0 launches the grid for its edges. A device function does the launch.
#include <cstdio>
#include <cuda_runtime.h>
#define WARP 32
__device__ __forceinline__ int warp_id() { return (blockIdx.x * blockDim.x + threadIdx.x) / WARP; }
__device__ __forceinline__ int lane_id() { return threadIdx.x & (WARP - 1); }
__global__ void expand_edges(const int *col, int *mark, int begin, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) mark[col[begin + i]] = 1;
}
__device__ void expand(const int *row, const int *col, int *mark, int node) {
    int n = row[node + 1] - row[node];
    if (n > 0) expand_edges<<<(n + 31) / 32, 32>>>(col, mark, row[node], n);
}
__global__ void frontier(const int *row, const int *col, const int *queue, int *mark, int n) {
    int w = warp_id();
    if (w < n && lane_id() == 0) expand(row, col, mark, queue[w]);
}
int main() {
    const int n = 24;
    int *row, *col, *queue, *mark;
    cudaMallocManaged(&row, (n + 1) * sizeof(int));
    cudaMallocManaged(&col, 10 * n * sizeof(int));
    cudaMallocManaged(&queue, n * sizeof(int));
    cudaMallocManaged(&mark, n * sizeof(int));
    int e = 0;
    for (int v = 0; v < n; ++v) {
        row[v] = e;
        for (int k = 0; k < v % 4; ++k) col[e++] = (v * 5 + k) % n;
        queue[v] = v;
        mark[v] = 0;
    }
    row[n] = e;
    frontier<<<3, 64>>>(row, col, queue, mark, 6);
    cudaDeviceSynchronize();
    for (int v = 0; v < n; ++v) printf("%d", mark[v]);
    printf("\n");
}
