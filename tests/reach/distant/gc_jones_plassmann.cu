/* Graph colouring benchmark: Jones-Plassmann with random priorities. */
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifndef CDP_MIN_DEGREE
#define CDP_MIN_DEGREE 48
#endif

static const int UNCOLORED = -1;

__host__ __device__ inline unsigned prio(int v)
{
    unsigned x = (unsigned)v * 2654435761u;
    x ^= x >> 15; x *= 0x85ebca6bu; x ^= x >> 13;
    return x;
}

__host__ __device__ inline bool beats(int a, int b)   // does a win against b?
{
    unsigned pa = prio(a), pb = prio(b);
    return pa > pb || (pa == pb && a > b);
}

__global__ void checkNeighbors(int v, const int *nbrs, int numNbrs, const int *color, int *isMax)
{
    const int i = threadIdx.x + blockDim.x * blockIdx.x;
    if (i < numNbrs) {
        const int u = nbrs[i];
        if (u != v && color[u] == UNCOLORED && beats(u, v))
            isMax[v] = 0;
    }
}

__global__ void selectMax(int n, const int *xadj, const int *adjncy, const int *color, int *isMax)
{
    const int v = threadIdx.x + blockDim.x * blockIdx.x;
    if (v < n && color[v] == UNCOLORED) {
        isMax[v] = 1;
        const int *nbrs = &adjncy[xadj[v]];
        const int numNbrs = xadj[v + 1] - xadj[v];
        if (numNbrs < CDP_MIN_DEGREE) {
            for (int i = 0; i < numNbrs; ++i) {
                const int u = nbrs[i];
                if (u != v && color[u] == UNCOLORED && beats(u, v)) {
                    isMax[v] = 0;
                    break;
                }
            }
        } else {
            dim3 block(64), grid;
            grid.x = (numNbrs + block.x - 1) / block.x;
            checkNeighbors<<<grid, block>>>(v, nbrs, numNbrs, color, isMax);
        }
    }
}

__global__ void assignColor(int n, int round, int *color, int *isMax, int *remaining)
{
    const int v = threadIdx.x + blockDim.x * blockIdx.x;
    if (v < n && color[v] == UNCOLORED) {
        if (isMax[v])
            color[v] = round;
        else
            atomicAdd(remaining, 1);
    }
}

static void die(const char *what, cudaError_t err)
{
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(err));
    exit(2);
}

int main(int argc, char *argv[])
{
    int n = 10000;
    if (argc == 2) n = atoi(argv[1]);

    std::vector<std::vector<int>> adj(n);
    srand(2023);
    for (int v = 0; v < n; ++v) {
        int d = (v % 61 == 0) ? 150 : 3;
        for (int k = 0; k < d; ++k) {
            int u = rand() % n;
            if (u == v) continue;
            adj[v].push_back(u);
            adj[u].push_back(v);
        }
    }
    std::vector<int> xadj(1, 0), adjncy;
    for (auto &a : adj) { adjncy.insert(adjncy.end(), a.begin(), a.end()); xadj.push_back((int)adjncy.size()); }

    int *d_xadj, *d_adjncy, *d_color, *d_isMax, *d_remaining;
    cudaMalloc(&d_xadj, xadj.size() * sizeof(int));
    cudaMalloc(&d_adjncy, adjncy.size() * sizeof(int));
    cudaMalloc(&d_color, n * sizeof(int));
    cudaMalloc(&d_isMax, n * sizeof(int));
    cudaMalloc(&d_remaining, sizeof(int));
    cudaMemcpy(d_xadj, xadj.data(), xadj.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(d_adjncy, adjncy.data(), adjncy.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemset(d_color, 0xff, n * sizeof(int));
    cudaMemset(d_isMax, 0, n * sizeof(int));
    cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096);

    int remaining = n, round = 0;
    const int tpb = 256, blocks = (n + tpb - 1) / tpb;
    while (remaining > 0) {
        cudaMemset(d_remaining, 0, sizeof(int));
        selectMax<<<blocks, tpb>>>(n, d_xadj, d_adjncy, d_color, d_isMax);
        assignColor<<<blocks, tpb>>>(n, round++, d_color, d_isMax, d_remaining);
        cudaError_t err = cudaMemcpy(&remaining, d_remaining, sizeof(int), cudaMemcpyDeviceToHost);
        if (err != cudaSuccess) die("round", err);
    }

    // the same algorithm on the host
    std::vector<int> ref(n, UNCOLORED), got(n);
    cudaMemcpy(got.data(), d_color, n * sizeof(int), cudaMemcpyDeviceToHost);
    for (int left = n, r = 0; left > 0; ++r) {
        std::vector<int> sel;
        for (int v = 0; v < n; ++v) {
            if (ref[v] != UNCOLORED) continue;
            bool win = true;
            for (int u : adj[v]) if (ref[u] == UNCOLORED && beats(u, v)) { win = false; break; }
            if (win) sel.push_back(v);
        }
        for (int v : sel) ref[v] = r;
        left -= (int)sel.size();
    }
    for (int v = 0; v < n; ++v) {
        if (got[v] != ref[v]) { printf("vertex %d: color %d, expected %d\n", v, got[v], ref[v]); return 1; }
        for (int u : adj[v]) if (got[u] == got[v]) { printf("conflict %d-%d\n", u, v); return 1; }
    }
    printf("OK, %d colors\n", round);
    return 0;
}
