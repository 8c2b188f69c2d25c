#include <cuda_runtime.h>
#include <cooperative_groups.h>
#include <algorithm>
#include <cstdio>
#include <vector>

namespace cg = cooperative_groups;

struct Aabb { int lo[2], hi[2]; int mesh, numTris; };
struct Tri { int lo[2], hi[2]; };

// all pairs of triangles of two overlapping bodies
__global__ void narrowPhase(const Tri* __restrict__ tris, Aabb a, Aabb b, int* __restrict__ contacts)
{
    auto grid = cg::this_grid();
    const int total = a.numTris * b.numTris;
    for (int k = grid.thread_rank(); k < total; k += grid.size()) {
        const Tri s = tris[a.mesh + k / b.numTris], t = tris[b.mesh + k % b.numTris];
        bool hit = true;
        for (int d = 0; d < 2; ++d) hit = hit && s.lo[d] <= t.hi[d] && t.lo[d] <= s.hi[d];
        if (hit) atomicAdd(contacts, 1);
    }
}

// sweep along x: boxes are sorted by lo[0], each thread walks to the right
__global__ void sweepAndPrune(const Aabb* boxes, const Tri* tris, int n, int* contacts, int* pairs)
{
    cg::thread_block block = cg::this_thread_block();
    const int i = block.group_index().x * block.size() + block.thread_rank();
    __shared__ int found;
    if (block.thread_rank() == 0) found = 0;
    block.sync();
    if (i < n) {
        const Aabb a = boxes[i];
        for (int j = i + 1; j < n && boxes[j].lo[0] <= a.hi[0]; ++j) {
            const Aabb b = boxes[j];
            if (b.lo[1] > a.hi[1] || b.hi[1] < a.lo[1]) continue;
            atomicAdd(&found, 1);
            const int work = a.numTris * b.numTris;
            narrowPhase<<<min(8, (work + 63) / 64), 64>>>(tris, a, b, &contacts[i]);
        }
    }
    block.sync();
    if (block.thread_rank() == 0) atomicAdd(pairs, found);
}

int main()
{
    const int n = 600;
    std::vector<Aabb> boxes(n);
    std::vector<Tri> tris;
    for (int i = 0; i < n; ++i) {
        Aabb& b = boxes[i];
        b.lo[0] = (i * 1777) % 6000; b.lo[1] = (i * 733) % 2000;
        b.hi[0] = b.lo[0] + 40 + i % 60; b.hi[1] = b.lo[1] + 40 + i % 90;
        b.mesh = (int)tris.size(); b.numTris = 1 + (i * i) % 40;
        for (int k = 0; k < b.numTris; ++k) {
            Tri t;
            for (int d = 0; d < 2; ++d) { t.lo[d] = b.lo[d] + (k * (d + 3)) % 35; t.hi[d] = t.lo[d] + 5; }
            tris.push_back(t);
        }
    }
    std::sort(boxes.begin(), boxes.end(), [](const Aabb& a, const Aabb& b) { return a.lo[0] < b.lo[0] || (a.lo[0] == b.lo[0] && a.mesh < b.mesh); });
    Aabb* db; Tri* dt; int *dc, *dp, pairs = 0;
    cudaMalloc(&db, n * sizeof(Aabb)); cudaMalloc(&dt, tris.size() * sizeof(Tri));
    cudaMalloc(&dc, n * sizeof(int)); cudaMalloc(&dp, sizeof(int));
    cudaMemset(dc, 0, n * sizeof(int)); cudaMemset(dp, 0, sizeof(int));
    cudaMemcpy(db, boxes.data(), n * sizeof(Aabb), cudaMemcpyHostToDevice);
    cudaMemcpy(dt, tris.data(), tris.size() * sizeof(Tri), cudaMemcpyHostToDevice);
    sweepAndPrune<<<(n + 63) / 64, 64>>>(db, dt, n, dc, dp);
    cudaError_t e = cudaDeviceSynchronize();
    std::vector<int> c(n);
    cudaMemcpy(c.data(), dc, n * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpy(&pairs, dp, sizeof(int), cudaMemcpyDeviceToHost);
    long long s = 0;
    for (int i = 0; i < n; ++i) s += (long long)c[i] * (i + 1);
    printf("pairs %d checksum %lld %s\n", pairs, s, cudaGetErrorString(e));
    return 0;
}
