// Shortest paths: vertices of high degree launch a grid, others go through their edges.
#include <cstdio>
#include <cuda_runtime.h>
#include "graph.h"
#include "tuning.h"

__device__ bool relax_edge(Graph g, int *dist, int v, int k) {
    int e = g.row[v] + k;
    int alt = dist[v] + g.weight[e];
    if (alt < dist[g.col[e]]) {
        int old = atomicMin(&dist[g.col[e]], alt);
        return alt < old;
    }
    return false;
}

__global__ void relax_child(Graph g, int *dist, bool *changed, int v, int degree) {
    int k = GLOBAL_ID;
    if (k < degree && relax_edge(g, dist, v, k)) *changed = true;
}

__global__ void relax(Graph g, int *dist, bool *changed) {
    int v = GLOBAL_ID;
    if (v >= g.nodes || dist[v] == INF) return;
    int degree = g.row[v + 1] - g.row[v];
    if (degree >= MIN_DEGREE) {
#ifdef USE_STREAMS
        cudaStream_t s;
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        relax_child<<<DIVUP(degree, CHILD_SIZE), CHILD_SIZE, 0, s>>>(g, dist, changed, v, degree);
        cudaStreamDestroy(s);
#else
        relax_child<<<DIVUP(degree, CHILD_SIZE), CHILD_SIZE>>>(g, dist, changed, v, degree);
#endif
    } else {
        for (int k = 0; k < degree; ++k)
            if (relax_edge(g, dist, v, k)) *changed = true;
    }
}

void step(Graph g, int *dist, bool *changed) {
    relax<<<DIVUP(g.nodes, 256), 256>>>(g, dist, changed);
    cudaDeviceSynchronize();
}
