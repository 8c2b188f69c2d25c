// sssp_worklist.cu - single source shortest paths, Bellman-Ford style rounds.
// Three ways to relax the edges of a vertex depending on its degree.
#include <iostream>
#include <vector>
#include <queue>
#include <climits>
#include <cuda_runtime.h>

namespace {

struct Graph {
    int  nnodes, nedges;
    int *row_start;
    int *edge_dst;
    int *edge_wt;
};

struct State {
    int *dist;
    int *active;      // active this round
    int *active_next; // to be active in the next round
    int *changed;
};

const int kLarge = 256;
const int kSmall = 16;

inline void gpuAssert(cudaError_t code, const char *file, int line)
{
    if (code != cudaSuccess) {
        std::cerr << "GPUassert: " << cudaGetErrorString(code) << " " << file << ":" << line << std::endl;
        std::exit(code);
    }
}
#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }

__device__ __forceinline__ void relax(const Graph &g, const State &s, int edge, int du)
{
    int v = g.edge_dst[edge];
    int alt = du + g.edge_wt[edge];
    if (alt < s.dist[v]) {
        if (atomicMin(&s.dist[v], alt) > alt) {
            s.active_next[v] = 1;
            *s.changed = 1;
        }
    }
}

__global__ void relax_wide(Graph g, State s, int first, int count, int du)
{
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        relax(g, s, first + i, du);
}

__global__ void relax_warp(Graph g, State s, int first, int count, int du)
{
    for (int i = threadIdx.x; i < count; i += 32)
        relax(g, s, first + i, du);
}

__global__ void sssp_round(Graph g, State s)
{
    int u = blockIdx.x * blockDim.x + threadIdx.x;
    if (u >= g.nnodes) return;
    if (!s.active[u]) return;
    s.active[u] = 0;

    const int first = g.row_start[u];
    const int deg   = g.row_start[u + 1] - first;
    const int du    = s.dist[u];
    if (du != INT_MAX) {
        if (deg >= kSmall) {
            if (deg >= kLarge) {
                int blocks = deg / 128;
                if (deg % 128 != 0) blocks++;
                if (blocks > 8) blocks = 8;
                relax_wide<<<blocks, 128>>>(g, s, first, deg, du);
            } else {
                relax_warp<<<1, 32>>>(g, s, first, deg, du);
            }
        } else {
            for (int e = first; e < first + deg; e++) relax(g, s, e, du);
        }
    }
}

} // namespace

int main()
{
    const int n = 20000;
    std::vector<int> row(n + 1, 0), dst, wt;
    unsigned seed = 99;
    auto next = [&seed] { seed = seed * 1664525u + 1013904223u; return int(seed >> 9); };
    for (int u = 0; u < n; u++) {
        int deg = 1 + next() % 10;
        if (u % 50 == 7)  deg = 20 + next() % 200;
        if (u % 1000 == 3) deg = 300 + next() % 2000;
        for (int e = 0; e < deg; e++) { dst.push_back(next() % n); wt.push_back(1 + next() % 100); }
        row[u + 1] = row[u] + deg;
    }

    Graph g; State s;
    g.nnodes = n; g.nedges = (int)dst.size();
    gpuErrchk(cudaMalloc((void **)&g.row_start, (n + 1) * sizeof(int)));
    gpuErrchk(cudaMalloc((void **)&g.edge_dst, dst.size() * sizeof(int)));
    gpuErrchk(cudaMalloc((void **)&g.edge_wt, wt.size() * sizeof(int)));
    gpuErrchk(cudaMemcpy(g.row_start, row.data(), (n + 1) * sizeof(int), cudaMemcpyHostToDevice));
    gpuErrchk(cudaMemcpy(g.edge_dst, dst.data(), dst.size() * sizeof(int), cudaMemcpyHostToDevice));
    gpuErrchk(cudaMemcpy(g.edge_wt, wt.data(), wt.size() * sizeof(int), cudaMemcpyHostToDevice));
    gpuErrchk(cudaMalloc((void **)&s.dist, n * sizeof(int)));
    gpuErrchk(cudaMalloc((void **)&s.active, n * sizeof(int)));
    gpuErrchk(cudaMalloc((void **)&s.active_next, n * sizeof(int)));
    gpuErrchk(cudaMallocManaged((void **)&s.changed, sizeof(int)));
    gpuErrchk(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 16384));

    std::vector<int> dist(n, INT_MAX);
    dist[0] = 0;
    gpuErrchk(cudaMemcpy(s.dist, dist.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    gpuErrchk(cudaMemset(s.active, 0, n * sizeof(int)));
    gpuErrchk(cudaMemset(s.active_next, 0, n * sizeof(int)));
    int one = 1;
    gpuErrchk(cudaMemcpy(s.active, &one, sizeof(int), cudaMemcpyHostToDevice));

    int rounds = 0;
    do {
        *s.changed = 0;
        sssp_round<<<(n - 1) / 256 + 1, 256>>>(g, s);
        gpuErrchk(cudaPeekAtLastError());
        gpuErrchk(cudaDeviceSynchronize());
        std::swap(s.active, s.active_next);
        ++rounds;
    } while (*s.changed);

    std::vector<int> ref(n, INT_MAX);
    typedef std::pair<int, int> P;
    std::priority_queue<P, std::vector<P>, std::greater<P>> pq;
    ref[0] = 0; pq.push(P(0, 0));
    while (!pq.empty()) {
        P p = pq.top(); pq.pop();
        if (p.first > ref[p.second]) continue;
        for (int e = row[p.second]; e < row[p.second + 1]; e++)
            if (p.first + wt[e] < ref[dst[e]]) { ref[dst[e]] = p.first + wt[e]; pq.push(P(ref[dst[e]], dst[e])); }
    }
    gpuErrchk(cudaMemcpy(dist.data(), s.dist, n * sizeof(int), cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int i = 0; i < n; i++)
        if (dist[i] != ref[i] && bad++ < 5)
            std::cout << "node " << i << ": " << dist[i] << " expected " << ref[i] << "\n";
    if (!bad) std::cout << "OK (" << rounds << " rounds)" << std::endl;
    return bad != 0;
}
