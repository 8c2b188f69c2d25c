// Level-synchronous BFS; one grid for the edges of each vertex of the level.
#include <stdio.h>
#include <stdlib.h>
#include "graph.h"

#ifndef CHILD_BLOCK
#define CHILD_BLOCK 128
#endif

__device__ unsigned int tid() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void bfs_child(const int *edges, int *dist, int *changed, int level, int start, int num) {
    unsigned int i = tid();
    if (i < num) {
        int dst = edges[start + i];
        if (dist[dst] == INF) {
            dist[dst] = level + 1;
            *changed = 1;
        }
    }
}

__global__ void bfs_parent(const int *rows, const int *edges, int *dist, int *changed, int level, int nodes) {
    unsigned int v = tid();
    if (v < nodes && dist[v] == level) {
        int start = rows[v];
        int num = rows[v + 1] - start;
        if (num > 0) {
            bfs_child<<<(num + CHILD_BLOCK - 1) / CHILD_BLOCK, CHILD_BLOCK>>>(edges, dist, changed, level, start, num);
        }
    }
}

int main() {
    const int n = 60;
    int *rows, *edges, *dist, *changed;
    cudaMallocManaged((void **)&rows, (n + 1) * sizeof(int));
    cudaMallocManaged((void **)&edges, 8 * n * sizeof(int));
    cudaMallocManaged((void **)&dist, n * sizeof(int));
    cudaMallocManaged((void **)&changed, sizeof(int));
    int e = 0;
    for (int v = 0; v < n; ++v) {
        rows[v] = e;
        for (int k = 0; k < v % 7; ++k) edges[e++] = (v * 3 + k * 5 + 1) % n;
        dist[v] = INF;
    }
    rows[n] = e;
    dist[6] = 0;
    int level = 0;
    do {
        *changed = 0;
        bfs_parent<<<(n + 31) / 32, 32>>>(rows, edges, dist, changed, level, n);
        cudaDeviceSynchronize();
        ++level;
    } while (*changed);
    for (int v = 0; v < n; ++v) printf("%d ", dist[v]);
    printf("\n");
    return 0;
}
