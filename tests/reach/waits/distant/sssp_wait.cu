// Bellman-Ford with the convergence loop on the device: one thread launches a round of
// relaxations, waits for it and looks at the flag.
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <queue>

struct Edge { int from, to, weight; };

static void HandleError(cudaError_t err, const char *file, int line)
{
    if (err != cudaSuccess) {
        printf("%s in %s at line %d\n", cudaGetErrorString(err), file, line);
        exit(EXIT_FAILURE);
    }
}
#define HANDLE_ERROR(err) (HandleError(err, __FILE__, __LINE__))

__device__ int g_changed;

__global__ void relaxEdges(const Edge *__restrict__ edges, int m, int *dist)
{
    int stride = blockDim.x * gridDim.x;
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < m; i += stride) {
        Edge e = edges[i];
        int d = dist[e.from];
        if (d == INT_MAX) continue;
        if (d + e.weight < dist[e.to]) {
            atomicMin(&dist[e.to], d + e.weight);
            g_changed = 1;
        }
    }
}

__global__ void initDist(int *dist, int n, int source)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) dist[i] = i == source ? 0 : INT_MAX;
}

__global__ void bellmanFord(const Edge *edges, int m, int *dist, int n, int source, int *rounds)
{
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        const int threads = 256;
        int blocks = (m + threads - 1) / threads;
        if (blocks > 120) blocks = 120;
        initDist<<<(n + threads - 1) / threads, threads>>>(dist, n, source);
        int r = 0;
        do {
            g_changed = 0;
            relaxEdges<<<blocks, threads>>>(edges, m, dist);
            if (cudaDeviceSynchronize() != cudaSuccess) {
                printf("round %d failed\n", r);
                return;
            }
            r++;
        } while (*(volatile int *)&g_changed && r < n);
        *rounds = r;
    }
}

int main()
{
    const int n = 8000, m = 60000;
    std::vector<Edge> edges(m);
    std::vector<std::vector<int>> adj(n);
    srand(4);
    for (int i = 0; i < m; ++i) {
        int u = rand() % n;
        edges[i] = {u, (u + 1 + rand() % 400) % n, 1 + rand() % 50};
        adj[u].push_back(i);
    }
    Edge *dE; int *dDist, *dRounds, rounds = 0;
    HANDLE_ERROR(cudaMalloc((void **)&dE, m * sizeof(Edge)));
    HANDLE_ERROR(cudaMalloc((void **)&dDist, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc((void **)&dRounds, sizeof(int)));
    HANDLE_ERROR(cudaMemcpy(dE, edges.data(), m * sizeof(Edge), cudaMemcpyHostToDevice));
    bellmanFord<<<1, 32>>>(dE, m, dDist, n, 0, dRounds);
    HANDLE_ERROR(cudaGetLastError());
    HANDLE_ERROR(cudaDeviceSynchronize());

    std::vector<int> got(n), ref(n, INT_MAX);
    HANDLE_ERROR(cudaMemcpy(got.data(), dDist, n * sizeof(int), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(&rounds, dRounds, sizeof(int), cudaMemcpyDeviceToHost));
    std::priority_queue<std::pair<int, int>> q;
    ref[0] = 0;
    q.push({0, 0});
    while (!q.empty()) {
        auto [d, u] = q.top(); q.pop();
        if (-d > ref[u]) continue;
        for (int i : adj[u])
            if (edges[i].weight - d < ref[edges[i].to]) {
                ref[edges[i].to] = edges[i].weight - d;
                q.push({-ref[edges[i].to], edges[i].to});
            }
    }
    for (int v = 0; v < n; ++v)
        if (got[v] != ref[v]) { printf("dist[%d] = %d, expected %d\n", v, got[v], ref[v]); return 1; }
    printf("OK in %d rounds\n", rounds);
    return 0;
}
