// Connected components by hooking and pointer jumping. Every round queues two tail
// launches (jump, then control), and control queues the next round.
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

namespace cc {

struct Problem {
    int nv, ne;
    const int2 *edges;
    int *parent;
    int *dirty;          // something was hooked in this round
    int *rounds;
};

namespace kernels {

__global__ void hook(Problem p);

__global__ void jump(Problem p)
{
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < p.nv; v += gridDim.x * blockDim.x) {
        int r = p.parent[v];
        while (r != p.parent[r]) r = p.parent[r];
        p.parent[v] = r;
    }
}

__global__ void control(Problem p)
{
    *p.rounds += 1;
    if (*p.dirty) {
        *p.dirty = 0;
        hook<<<(p.ne + 255) / 256, 256, 0, cudaStreamTailLaunch>>>(p);
    }
}

__global__ void hook(Problem p)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < p.ne) {
        int a = p.parent[p.edges[e].x], b = p.parent[p.edges[e].y];
        if (a != b) {
            // the larger root hooks onto the smaller one
            int hi = a > b ? a : b, lo = a > b ? b : a;
            atomicMin(&p.parent[hi], lo);
            *p.dirty = 1;
        }
    }
    if (e == 0) {
        int blocks = p.nv / 128 + 1;
        if (blocks > 64) blocks = 64;
        jump<<<blocks, 128, 0, cudaStreamTailLaunch>>>(p);
        control<<<1, 1, 0, cudaStreamTailLaunch>>>(p);
    }
}

} // namespace kernels

inline void run(Problem p, cudaStream_t s)
{
    kernels::hook<<<(p.ne + 255) / 256, 256, 0, s>>>(p);
}

} // namespace cc

#define CK(expr) do { auto rc__ = (expr); if (rc__ != cudaSuccess) { \
    std::printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(rc__)); std::exit(1); } } while (0)

int main()
{
    const int nv = 40000;
    std::vector<int2> edges;
    srand(21);
    for (int v = 0; v + 1 < nv; v++)                 // long chains with gaps
        if (rand() % 40) edges.push_back(make_int2(v, v + 1));
    for (int k = 0; k < 300; k++) edges.push_back(make_int2(rand() % nv, rand() % nv));
    for (size_t i = edges.size() - 1; i > 0; i--) std::swap(edges[i], edges[rand() % (i + 1)]);

    cc::Problem p;
    p.nv = nv; p.ne = (int)edges.size();
    int2 *dEdges;
    CK(cudaMalloc(&dEdges, edges.size() * sizeof(int2)));
    CK(cudaMalloc(&p.parent, nv * sizeof(int)));
    CK(cudaMalloc(&p.dirty, sizeof(int)));
    CK(cudaMalloc(&p.rounds, sizeof(int)));
    CK(cudaMemcpy(dEdges, edges.data(), edges.size() * sizeof(int2), cudaMemcpyHostToDevice));
    p.edges = dEdges;
    std::vector<int> parent(nv);
    std::iota(parent.begin(), parent.end(), 0);
    cudaStream_t s;
    CK(cudaStreamCreate(&s));
    CK(cudaMemcpyAsync(p.parent, parent.data(), nv * sizeof(int), cudaMemcpyHostToDevice, s));
    CK(cudaMemsetAsync(p.dirty, 0, sizeof(int), s));
    CK(cudaMemsetAsync(p.rounds, 0, sizeof(int), s));
    cc::run(p, s);
    CK(cudaGetLastError());
    CK(cudaStreamSynchronize(s));

    std::vector<int> got(nv);
    int rounds = 0;
    CK(cudaMemcpy(got.data(), p.parent, nv * sizeof(int), cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(&rounds, p.rounds, sizeof(int), cudaMemcpyDeviceToHost));

    auto find = [&](int v) { while (parent[v] != v) v = parent[v] = parent[parent[v]]; return v; };
    for (auto e : edges) {
        int a = find(e.x), b = find(e.y);
        if (a < b) parent[b] = a; else parent[a] = b;
    }
    int comps = 0;
    for (int v = 0; v < nv; v++) {
        if (got[v] != find(v)) { std::printf("vertex %d in %d, expected %d\n", v, got[v], find(v)); return 1; }
        comps += got[v] == v;
    }
    std::printf("OK: %d components in %d rounds\n", comps, rounds);
    CK(cudaStreamDestroy(s));
    return 0;
}
