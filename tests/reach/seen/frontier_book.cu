#include <climits>
#include <cstdio>
#include <cuda_runtime.h>

#define BLOCK_SIZE 32

struct CSRGraph {
    unsigned int numVertices;
    unsigned int numEdges;
    unsigned int *srcPtrs;
    unsigned int *dst;
};

__global__ void expand_kernel(CSRGraph csrGraph, unsigned int *level, unsigned int *currFrontier, unsigned int *numCurrFrontier,
                              unsigned int currLevel, unsigned int start, unsigned int numNeighbours)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < numNeighbours)
    {
        unsigned int edge = start + i;
        unsigned int neighbour = csrGraph.dst[edge];
        if (atomicCAS(&level[neighbour], UINT_MAX, currLevel) == UINT_MAX)
        {
            unsigned int currFrontierIdx = atomicAdd(numCurrFrontier, 1);
            currFrontier[currFrontierIdx] = neighbour;
        }
    }
}

__global__ void bfs_kernel(CSRGraph csrGraph, unsigned int *level, unsigned int *prevFrontier, unsigned int *currFrontier,
                           unsigned int numPrevFrontier, unsigned int *numCurrFrontier, unsigned int currLevel)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < numPrevFrontier)
    {
        unsigned int vertex = prevFrontier[i];
        unsigned int start = csrGraph.srcPtrs[vertex];
        unsigned int numNeighbours = csrGraph.srcPtrs[vertex + 1] - start;
        unsigned int numThreadsPerBlock = BLOCK_SIZE;
        unsigned int numBlocks = (numNeighbours + numThreadsPerBlock - 1) / numThreadsPerBlock;
        expand_kernel<<<numBlocks, numThreadsPerBlock>>>(csrGraph, level, currFrontier, numCurrFrontier, currLevel, start, numNeighbours);
    }
}

int main()
{
    const unsigned int n = 100;
    CSRGraph g;
    g.numVertices = n;
    cudaMallocManaged(&g.srcPtrs, (n + 1) * sizeof(unsigned int));
    g.srcPtrs[0] = 0;
    for (unsigned int v = 0; v < n; ++v)
        g.srcPtrs[v + 1] = g.srcPtrs[v] + 1 + (v * 7) % 5;
    g.numEdges = g.srcPtrs[n];
    cudaMallocManaged(&g.dst, g.numEdges * sizeof(unsigned int));
    for (unsigned int v = 0; v < n; ++v)
        for (unsigned int e = g.srcPtrs[v]; e < g.srcPtrs[v + 1]; ++e)
            g.dst[e] = (v * 3 + e - g.srcPtrs[v] + 1) % n;
    unsigned int *level, *a, *b, *count;
    cudaMallocManaged(&level, n * sizeof(unsigned int));
    cudaMallocManaged(&a, n * sizeof(unsigned int));
    cudaMallocManaged(&b, n * sizeof(unsigned int));
    cudaMallocManaged(&count, sizeof(unsigned int));
    for (unsigned int v = 0; v < n; ++v)
        level[v] = UINT_MAX;
    level[0] = 0;
    a[0] = 0;
    unsigned int numPrev = 1;
    for (unsigned int currLevel = 1; numPrev > 0; ++currLevel)
    {
        *count = 0;
        bfs_kernel<<<(numPrev + BLOCK_SIZE - 1) / BLOCK_SIZE, BLOCK_SIZE>>>(g, level, a, b, numPrev, count, currLevel);
        cudaDeviceSynchronize();
        unsigned int *t = a;
        a = b;
        b = t;
        numPrev = *count;
    }
    unsigned long sum = 0;
    for (unsigned int v = 0; v < n; ++v)
        sum = sum * 3 % 1000003 + level[v];
    printf("%lu\n", sum);
}
