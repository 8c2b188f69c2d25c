/*
 * Level-synchronous breadth first search, dynamic parallelism version.
 * Each frontier vertex is handled by one thread; vertices of high degree
 * hand their adjacency list to a child grid.
 */
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <queue>
#include <cuda_runtime.h>

#define THRESHOLD   32
#define PARENT_BLOCK 256
#define CHILD_BLOCK  128
#define INF 0xffffffffu

#define CUDA_CHECK(call)                                                     \
    do {                                                                     \
        cudaError_t e_ = (call);                                             \
        if (e_ != cudaSuccess) {                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,               \
                    cudaGetErrorString(e_));                                 \
            exit(EXIT_FAILURE);                                              \
        }                                                                    \
    } while (0)

__device__ inline void visit(unsigned nb, unsigned level, unsigned *dist,
                             unsigned *next, unsigned *nextCount)
{
    if (atomicCAS(&dist[nb], INF, level) == INF) {
        unsigned pos = atomicAdd(nextCount, 1u);
        next[pos] = nb;
    }
}

__global__ void bfs_child(const unsigned *col, unsigned start, unsigned degree,
                          unsigned level, unsigned *dist, unsigned *next,
                          unsigned *nextCount)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < degree)
        visit(col[start + i], level, dist, next, nextCount);
}

__global__ void bfs_parent(const unsigned *rowPtr, const unsigned *col,
                           const unsigned *frontier, unsigned frontierSize,
                           unsigned level, unsigned *dist, unsigned *next,
                           unsigned *nextCount)
{
    unsigned tid = blockIdx.x * blockDim.x + threadIdx.x;
    if (tid < frontierSize) {
        unsigned v = frontier[tid];
        unsigned start = rowPtr[v];
        unsigned degree = rowPtr[v + 1] - start;
        if (degree > THRESHOLD) {
            bfs_child<<<(degree + CHILD_BLOCK - 1) / CHILD_BLOCK, CHILD_BLOCK>>>(
                col, start, degree, level, dist, next, nextCount);
        } else {
            for (unsigned e = 0; e < degree; ++e)
                visit(col[start + e], level, dist, next, nextCount);
        }
    }
}

static void makeGraph(unsigned n, std::vector<unsigned> &row, std::vector<unsigned> &col)
{
    unsigned long long s = 12345;
    auto rnd = [&]() { s = s * 6364136223846793005ull + 1442695040888963407ull; return (unsigned)(s >> 33); };
    row.assign(n + 1, 0);
    for (unsigned v = 0; v < n; ++v) {
        unsigned deg = rnd() % 8;
        if (v % 97 == 0) deg = 200 + rnd() % 800;   // hubs
        row[v + 1] = row[v] + deg;
        for (unsigned e = 0; e < deg; ++e) col.push_back(rnd() % n);
    }
}

int main(int argc, char **argv)
{
    unsigned n = argc > 1 ? atoi(argv[1]) : 50000;
    std::vector<unsigned> row, col;
    makeGraph(n, row, col);

    unsigned *dRow, *dCol, *dDist, *dFront, *dNext, *dCount;
    CUDA_CHECK(cudaMalloc(&dRow, row.size() * sizeof(unsigned)));
    CUDA_CHECK(cudaMalloc(&dCol, col.size() * sizeof(unsigned)));
    CUDA_CHECK(cudaMalloc(&dDist, n * sizeof(unsigned)));
    CUDA_CHECK(cudaMalloc(&dFront, n * sizeof(unsigned)));
    CUDA_CHECK(cudaMalloc(&dNext, n * sizeof(unsigned)));
    CUDA_CHECK(cudaMalloc(&dCount, sizeof(unsigned)));
    CUDA_CHECK(cudaMemcpy(dRow, row.data(), row.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(dCol, col.data(), col.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(dDist, 0xff, n * sizeof(unsigned)));
    CUDA_CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 32768));

    unsigned source = 0, zero = 0, size = 1;
    CUDA_CHECK(cudaMemcpy(dDist + source, &zero, sizeof(unsigned), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(dFront, &source, sizeof(unsigned), cudaMemcpyHostToDevice));

    for (unsigned level = 1; size > 0; ++level) {
        CUDA_CHECK(cudaMemset(dCount, 0, sizeof(unsigned)));
        bfs_parent<<<(size + PARENT_BLOCK - 1) / PARENT_BLOCK, PARENT_BLOCK>>>(
            dRow, dCol, dFront, size, level, dDist, dNext, dCount);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaDeviceSynchronize());
        CUDA_CHECK(cudaMemcpy(&size, dCount, sizeof(unsigned), cudaMemcpyDeviceToHost));
        unsigned *t = dFront; dFront = dNext; dNext = t;
    }

    std::vector<unsigned> dist(n), ref(n, INF);
    CUDA_CHECK(cudaMemcpy(dist.data(), dDist, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
    std::queue<unsigned> q;
    q.push(source); ref[source] = 0;
    while (!q.empty()) {
        unsigned v = q.front(); q.pop();
        for (unsigned e = row[v]; e < row[v + 1]; ++e)
            if (ref[col[e]] == INF) { ref[col[e]] = ref[v] + 1; q.push(col[e]); }
    }
    for (unsigned v = 0; v < n; ++v)
        if (dist[v] != ref[v]) {
            printf("mismatch at vertex %u: gpu %u cpu %u\n", v, dist[v], ref[v]);
            return 1;
        }
    printf("OK\n");
    cudaFree(dRow); cudaFree(dCol); cudaFree(dDist);
    cudaFree(dFront); cudaFree(dNext); cudaFree(dCount);
    return 0;
}
