// Breadth-first search with a device resident loop of two kernels that call
// each other: expand -> (last block) contract -> expand ...
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <vector>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

struct Bfs {
    const int *offsets, *targets;
    int *depth;            // -1 when unseen
    int *queue_in, *queue_out;
    int *tails;            // [0] size of queue_in, [1] size of queue_out
    unsigned *arrived;
    unsigned long long *edges_seen;
    int level;
};

constexpr int kBlock = 128;

__global__ void expand(Bfs b);

__device__ void launch_expand(const Bfs &b, int frontier)
{
    int blocks = (frontier + kBlock - 1) / kBlock;
    expand<<<blocks, kBlock, 0, cudaStreamTailLaunch>>>(b);
}

__global__ void contract(Bfs b)
{
    // swap the queues, then go on if there is anything left
    int fresh = b.tails[1];
    b.tails[0] = fresh;
    b.tails[1] = 0;
    *b.arrived = 0;
    Bfs nextb = b;
    nextb.queue_in = b.queue_out;
    nextb.queue_out = b.queue_in;
    nextb.level = b.level + 1;
    if (fresh > 0)
        launch_expand(nextb, fresh);
}

__global__ void expand(Bfs b)
{
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    const int i = block.group_index().x * block.size() + block.thread_rank();
    int work = 0;
    if (i < b.tails[0]) {
        const int u = b.queue_in[i];
        for (int e = b.offsets[u]; e < b.offsets[u + 1]; ++e, ++work) {
            const int v = b.targets[e];
            if (atomicCAS(b.depth + v, -1, b.level + 1) == -1)
                b.queue_out[atomicAdd(b.tails + 1, 1)] = v;
        }
    }
    work = cg::reduce(tile, work, cg::plus<int>());
    if (tile.thread_rank() == 0)
        atomicAdd(b.edges_seen, (unsigned long long)work);

    __threadfence();
    block.sync();
    if (block.thread_rank() == 0) {
        if (atomicAdd(b.arrived, 1u) + 1 == gridDim.x) {
            contract<<<1, 1, 0, cudaStreamTailLaunch>>>(b);
        }
    }
}

template <typename T>
static T *alloc(size_t n, const T *from = nullptr, int fill = 0)
{
    T *p = nullptr;
    if (cudaMalloc(&p, n * sizeof(T)) != cudaSuccess) { std::puts("out of memory"); std::exit(1); }
    if (from) cudaMemcpy(p, from, n * sizeof(T), cudaMemcpyHostToDevice);
    else cudaMemset(p, fill, n * sizeof(T));
    return p;
}

int main()
{
    // a w x h grid graph with holes: a long BFS with small frontiers
    const int w = 300, h = 200, n = w * h;
    auto open = [&](int x, int y) { return x >= 0 && y >= 0 && x < w && y < h && !(x % 6 == 3 && (y + x * 5) % 17 != 0); };
    std::vector<int> off{0}, to;
    for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x) {
            const int dx[] = {1, -1, 0, 0}, dy[] = {0, 0, 1, -1};
            for (int k = 0; k < 4 && open(x, y); ++k)
                if (open(x + dx[k], y + dy[k])) to.push_back((y + dy[k]) * w + x + dx[k]);
            off.push_back((int)to.size());
        }

    std::vector<int> want(n, -1), got(n);
    unsigned long long edges = 0, edges_gpu = 0;
    std::queue<int> q;
    want[0] = 0;
    q.push(0);
    while (!q.empty()) {
        int u = q.front();
        q.pop();
        for (int e = off[u]; e < off[u + 1]; ++e, ++edges)
            if (want[to[e]] < 0) { want[to[e]] = want[u] + 1; q.push(to[e]); }
    }

    Bfs b;
    b.offsets = alloc(off.size(), off.data());
    b.targets = alloc(to.size(), to.data());
    b.depth = alloc<int>(n, nullptr, 0xff);
    b.queue_in = alloc<int>(n);
    b.queue_out = alloc<int>(n);
    const int tails[2] = {1, 0}, zero = 0;
    b.tails = alloc(2, tails);
    b.arrived = alloc<unsigned>(1);
    b.edges_seen = alloc<unsigned long long>(1);
    b.level = 0;
    cudaMemcpy(b.depth, &zero, sizeof zero, cudaMemcpyHostToDevice);

    expand<<<1, kBlock>>>(b);
    cudaError_t e = cudaGetLastError();
    if (e == cudaSuccess) e = cudaDeviceSynchronize();
    if (e != cudaSuccess) { std::printf("%s\n", cudaGetErrorString(e)); return 1; }
    cudaMemcpy(got.data(), b.depth, n * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpy(&edges_gpu, b.edges_seen, sizeof edges_gpu, cudaMemcpyDeviceToHost);

    int bad = 0, deepest = 0;
    for (int v = 0; v < n; ++v) {
        bad += got[v] != want[v];
        deepest = want[v] > deepest ? want[v] : deepest;
    }
    if (bad || edges != edges_gpu)
        std::printf("%d depths differ; edges %llu, expected %llu\n", bad, edges_gpu, edges);
    else
        std::printf("OK, depth %d\n", deepest);
    return bad || edges != edges_gpu;
}
