// BFS that lives entirely on the device: expand -> advance -> expand -> ... by tail launches.
// Vertices with long adjacency lists get a fire-and-forget grid; the tail launch waits for those.
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>
#include <cuda_runtime.h>

#define BFS_BLOCK 128
#define HEAVY 256

struct Bfs {
    int  n;
    int *row, *col;
    int *depth;          // -1: not seen
    int *queue[2];
    int *tail;           // number of entries in the queue being filled
    int *levels;         // result
};

__global__ void expand(Bfs b, int size, int level);

__device__ void push(const Bfs &b, int v, int level)
{
    if (atomicCAS(b.depth + v, -1, level + 1) == -1)
        b.queue[(level + 1) & 1][atomicAdd(b.tail, 1)] = v;
}

__global__ void expand_heavy(Bfs b, int u, int level)
{
    for (int e = b.row[u] + blockIdx.x * blockDim.x + threadIdx.x; e < b.row[u + 1]; e += gridDim.x * blockDim.x)
        push(b, b.col[e], level);
}

__global__ void advance(Bfs b, int level)
{
    int size = *b.tail;
    *b.tail = 0;
    if (size == 0) {
        *b.levels = level;
        return;
    }
    int blocks = (size + BFS_BLOCK - 1) / BFS_BLOCK;
    expand<<<blocks, BFS_BLOCK, 0, cudaStreamTailLaunch>>>(b, size, level);
    cudaError_t err = cudaGetLastError();
    if (err != cudaSuccess) printf("advance(%d): error %d\n", level, (int)err);
}

__global__ void expand(Bfs b, int size, int level)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) {
        int u = b.queue[level & 1][i];
        int deg = b.row[u + 1] - b.row[u];
        if (deg >= HEAVY)
            expand_heavy<<<(deg + HEAVY - 1) / HEAVY, BFS_BLOCK, 0, cudaStreamFireAndForget>>>(b, u, level);
        else
            for (int e = b.row[u]; e < b.row[u + 1]; e++) push(b, b.col[e], level);
    }
    if (i == 0)
        advance<<<1, 1, 0, cudaStreamTailLaunch>>>(b, level + 1);
}

#define CUCHK(x) do { cudaError_t e = (x); if (e) { printf("%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)

int main()
{
    const int side = 150, n = side * side;          // a grid graph with a few hubs
    std::vector<std::vector<int>> adj(n);
    srand(10);
    for (int y = 0; y < side; y++) for (int x = 0; x < side; x++) {
        int v = y * side + x;
        if (x + 1 < side) { adj[v].push_back(v + 1); adj[v + 1].push_back(v); }
        if (y + 1 < side) { adj[v].push_back(v + side); adj[v + side].push_back(v); }
    }
    for (int h = 0; h < 3; h++) {
        int hub = n / 2 + rand() % (n / 2);
        int near = hub / side;
        for (int k = 0; k < 600; k++) adj[hub].push_back((near - 4) * side + rand() % (4 * side));
    }
    std::vector<int> row(1, 0), col;
    for (auto &a : adj) { col.insert(col.end(), a.begin(), a.end()); row.push_back((int)col.size()); }

    Bfs b; b.n = n;
    CUCHK(cudaMalloc(&b.row, row.size() * sizeof(int)));
    CUCHK(cudaMalloc(&b.col, col.size() * sizeof(int)));
    CUCHK(cudaMalloc(&b.depth, n * sizeof(int)));
    CUCHK(cudaMalloc(&b.queue[0], n * sizeof(int)));
    CUCHK(cudaMalloc(&b.queue[1], n * sizeof(int)));
    CUCHK(cudaMalloc(&b.tail, sizeof(int)));
    CUCHK(cudaMalloc(&b.levels, sizeof(int)));
    CUCHK(cudaMemcpy(b.row, row.data(), row.size() * sizeof(int), cudaMemcpyHostToDevice));
    CUCHK(cudaMemcpy(b.col, col.data(), col.size() * sizeof(int), cudaMemcpyHostToDevice));
    CUCHK(cudaMemset(b.depth, 0xff, n * sizeof(int)));
    int src = 0, one = 1, zero = 0, levels = 0;
    CUCHK(cudaMemcpy(b.depth + src, &zero, sizeof(int), cudaMemcpyHostToDevice));
    CUCHK(cudaMemcpy(b.queue[0], &src, sizeof(int), cudaMemcpyHostToDevice));
    CUCHK(cudaMemcpy(b.tail, &one, sizeof(int), cudaMemcpyHostToDevice));

    advance<<<1, 1>>>(b, 0);
    CUCHK(cudaGetLastError());
    CUCHK(cudaDeviceSynchronize());

    std::vector<int> depth(n), ref(n, -1);
    CUCHK(cudaMemcpy(depth.data(), b.depth, n * sizeof(int), cudaMemcpyDeviceToHost));
    CUCHK(cudaMemcpy(&levels, b.levels, sizeof(int), cudaMemcpyDeviceToHost));
    std::deque<int> q(1, src);
    ref[src] = 0;
    int deepest = 0;
    while (!q.empty()) {
        int u = q.front(); q.pop_front();
        deepest = ref[u];
        for (int v : adj[u]) if (ref[v] < 0) { ref[v] = ref[u] + 1; q.push_back(v); }
    }
    for (int v = 0; v < n; v++)
        if (depth[v] != ref[v]) { printf("vertex %d: depth %d, expected %d\n", v, depth[v], ref[v]); return 1; }
    if (levels != deepest + 1) { printf("levels %d, expected %d\n", levels, deepest + 1); return 1; }
    printf("OK, %d levels\n", levels);
    return 0;
}
