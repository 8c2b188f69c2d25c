// Minimum spanning tree (Boruvka).  The minimum outgoing edge of every component is
// found with 64-bit atomics; long adjacency lists are searched by a child kernel.
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include <numeric>
#include <vector>

typedef unsigned long long u64;
typedef unsigned int u32;
#define NONE 0xffffffffffffffffull
#define BS 128

#define SAFE(x) if ((x) != cudaSuccess) { printf("CUDA error at line %d: %s\n", __LINE__, cudaGetErrorString(cudaGetLastError())); exit(1); }

static __device__ void consider(u32 mycomp, u32 other, u32 weight, u32 eid, const u32 *comp, u64 *best)
{
    if (comp[other] == mycomp) return;
    u64 key = ((u64)weight << 32) | eid;
    if (key < best[mycomp])
        atomicMin(&best[mycomp], key);
}

__global__ void min_edge_child(u32 begin, u32 end, u32 mycomp,
                               const u32 *__restrict__ adj, const u32 *__restrict__ wt,
                               const u32 *__restrict__ eid, const u32 *comp, u64 *best)
{
    u32 e = begin + blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= end) return;
    consider(mycomp, __ldg(adj + e), __ldg(wt + e), __ldg(eid + e), comp, best);
}

__global__ void find_min_edges(u32 n, const u32 *__restrict__ row, const u32 *__restrict__ adj,
                               const u32 *__restrict__ wt, const u32 *__restrict__ eid,
                               const u32 *comp, u64 *best, u32 min_child)
{
    for (u32 v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x) {
        u32 b = row[v], e = row[v + 1];
        u32 c = comp[v];
        if (e - b >= min_child) {
            u32 threads = BS;
            u32 blocks = (u32)ceil((double)(e - b) / threads);
            min_edge_child<<<blocks, threads>>>(b, e, c, adj, wt, eid, comp, best);
        } else {
            for (u32 i = b; i < e; i++)
                consider(c, adj[i], wt[i], eid[i], comp, best);
        }
    }
}

__global__ void hook(u32 n, const u32 *eu, const u32 *ev, const u32 *comp, const u64 *best,
                     u32 *parent, u32 *inTree, int *merged)
{
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= n) return;
    if (comp[c] != c) return;              // not a root
    u64 k = best[c];
    if (k == NONE) return;
    u32 id = (u32)k;
    u32 a = comp[eu[id]], b = comp[ev[id]];
    u32 other = (a == c) ? b : a;
    inTree[id] = 1;
    *merged = 1;
    // two roots that chose the same edge: the smaller one stays a root
    if (best[other] == k && c < other) return;
    parent[c] = other;
}

__global__ void flatten(u32 n, const u32 *parent, u32 *comp, u64 *best)
{
    u32 v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    u32 r = comp[v];
    while (parent[r] != r) r = parent[r];
    comp[v] = r;
    best[v] = NONE;
}

template <class T> T *upload(const std::vector<T> &v)
{
    T *p;
    SAFE(cudaMalloc(&p, v.size() * sizeof(T)));
    SAFE(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

int main()
{
    const u32 n = 8192;
    std::vector<u32> eu, ev, ew;
    srand(7);
    for (u32 v = 1; v < n; v++) { eu.push_back(v); ev.push_back(rand() % v); ew.push_back(rand() % 10000); }
    for (u32 h = 0; h < 40; h++)                       // hubs
        for (int k = 0; k < 1500; k++) {
            u32 t = rand() % n;
            if (t != h) { eu.push_back(h); ev.push_back(t); ew.push_back(rand() % 10000); }
        }
    u32 m = (u32)eu.size();
    std::vector<u32> row(n + 1, 0), adj(2 * m), wt(2 * m), eid(2 * m);
    for (u32 i = 0; i < m; i++) { row[eu[i] + 1]++; row[ev[i] + 1]++; }
    for (u32 v = 0; v < n; v++) row[v + 1] += row[v];
    std::vector<u32> fill(row.begin(), row.end() - 1);
    for (u32 i = 0; i < m; i++) {
        u32 p = fill[eu[i]]++; adj[p] = ev[i]; wt[p] = ew[i]; eid[p] = i;
        p = fill[ev[i]]++;     adj[p] = eu[i]; wt[p] = ew[i]; eid[p] = i;
    }
    std::vector<u32> ident(n);
    std::iota(ident.begin(), ident.end(), 0u);
    u32 *d_row = upload(row), *d_adj = upload(adj), *d_wt = upload(wt), *d_eid = upload(eid);
    u32 *d_eu = upload(eu), *d_ev = upload(ev), *d_comp = upload(ident), *d_parent = upload(ident);
    u64 *d_best = upload(std::vector<u64>(n, NONE));
    u32 *d_in = upload(std::vector<u32>(m, 0));
    int *d_merged, merged = 1;
    SAFE(cudaMalloc(&d_merged, sizeof(int)));
    SAFE(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 8192));

    while (merged) {
        SAFE(cudaMemset(d_merged, 0, sizeof(int)));
        find_min_edges<<<16, 256>>>(n, d_row, d_adj, d_wt, d_eid, d_comp, d_best, 64);
        hook<<<(n + 255) / 256, 256>>>(n, d_eu, d_ev, d_comp, d_best, d_parent, d_in, d_merged);
        flatten<<<(n + 255) / 256, 256>>>(n, d_parent, d_comp, d_best);
        SAFE(cudaMemcpy(&merged, d_merged, sizeof(int), cudaMemcpyDeviceToHost));
    }
    std::vector<u32> in(m);
    SAFE(cudaMemcpy(in.data(), d_in, m * sizeof(u32), cudaMemcpyDeviceToHost));
    u64 total = 0, expect = 0;
    for (u32 i = 0; i < m; i++) if (in[i]) total += ew[i];

    std::vector<u32> order(m), uf = ident;
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](u32 a, u32 b) { return ew[a] < ew[b]; });
    auto find = [&](u32 x) { while (uf[x] != x) x = uf[x] = uf[uf[x]]; return x; };
    for (u32 i : order) {
        u32 a = find(eu[i]), b = find(ev[i]);
        if (a != b) { uf[a] = b; expect += ew[i]; }
    }
    if (total != expect) { printf("MISMATCH: %llu vs %llu\n", total, expect); return 1; }
    printf("OK weight=%llu\n", total);
    return 0;
}
