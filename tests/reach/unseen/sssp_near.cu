// Bellman-Ford steps; vertices with many edges launch a grid.
#include <cuda.h>
#include <stdio.h>
#ifdef USE_SMALL_BLOCKS
#define CHILD_THREADS 32
#else
#define CHILD_THREADS 256
#endif
#define CDIV(a, b) (((a) + (b)-1) / (b))
#define GTID (threadIdx.x + blockIdx.x * blockDim.x)
typedef unsigned int uint32;

struct Graph {
    uint32 nnodes, nedges;
    uint32 *psrc, *noutgoing, *edgessrcdst;
    uint32* edgessrcwt;
    __device__ uint32 getOutDegree(uint32 src) const { return noutgoing[src]; }
    __device__ uint32 getDestination(uint32 src, uint32 nth) const { return edgessrcdst[psrc[src] + nth]; }
    __device__ uint32 getWeight(uint32 src, uint32 nth) const { return edgessrcwt[psrc[src] + nth]; }
};

__device__ bool processedge(uint32* dist, Graph& graph, uint32 src, uint32 ii) {
    uint32 dst = graph.getDestination(src, ii);
    if (dst >= graph.nnodes) return false;
    uint32 alt = dist[src] + graph.getWeight(src, ii);
    if (alt < dist[dst]) {
        uint32 olddist = atomicMin(&dist[dst], alt);
        if (alt < olddist) return true;
    }
    return false;
}

__global__ void dprocess(uint32* dist, Graph graph, bool* changed, uint32 src, uint32 degree) {
    uint32 ii = GTID;
    if (ii < degree && processedge(dist, graph, src, ii)) *changed = true;
}

__global__ void drelax(uint32* dist, Graph graph, bool* changed) {
    uint32 src = GTID;
    if (src < graph.nnodes) {
        uint32 degree = graph.getOutDegree(src);
        if (degree > CHILD_THREADS)
            dprocess<<<CDIV(degree, CHILD_THREADS), CHILD_THREADS>>>(dist, graph, changed, src, degree);
        else
            for (uint32 ii = 0; ii < degree; ++ii)
                if (processedge(dist, graph, src, ii)) *changed = true;
    }
}

void sssp(uint32* dist, Graph& graph, bool* changed, int nb, int nt) {
    drelax<<<nb, nt>>>(dist, graph, changed);
    cudaDeviceSynchronize();
}
