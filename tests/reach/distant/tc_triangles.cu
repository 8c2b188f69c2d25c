// Triangle counting on an oriented graph (edges go from low to high id).
#include <cstdint>
#include <cstdio>
#include <random>
#include <set>
#include <vector>
#include <algorithm>

using vid_t = int32_t;
using eid_t = int64_t;

#define HANDLE_ERROR(err) (HandleError(err, __FILE__, __LINE__))
static void HandleError(cudaError_t err, const char *file, int line)
{
    if (err != cudaSuccess) {
        printf("%s in %s at line %d\n", cudaGetErrorString(err), file, line);
        exit(EXIT_FAILURE);
    }
}

__device__ unsigned long long d_total;

__device__ int intersect(const vid_t *a, int na, const vid_t *b, int nb)
{
    int i = 0, j = 0, c = 0;
    while (i < na && j < nb) {
        vid_t x = a[i], y = b[j];
        if (x == y) { ++c; ++i; ++j; }
        else if (x < y) ++i;
        else ++j;
    }
    return c;
}

__global__ void tc_neighbors(const eid_t *__restrict__ off, const vid_t *__restrict__ nbr, vid_t u)
{
    __shared__ unsigned int partial;
    if (threadIdx.x == 0) partial = 0;
    __syncthreads();

    const vid_t *mine = nbr + off[u];
    const int deg = int(off[u + 1] - off[u]);
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < deg) {
        vid_t v = mine[k];
        int c = intersect(mine, deg, nbr + off[v], int(off[v + 1] - off[v]));
        if (c) atomicAdd(&partial, (unsigned)c);
    }
    __syncthreads();
    if (threadIdx.x == 0 && partial)
        atomicAdd(&d_total, (unsigned long long)partial);
}

__global__ void tc_vertices(const eid_t *__restrict__ off, const vid_t *__restrict__ nbr, vid_t n, int limit)
{
    const vid_t u = blockIdx.x * blockDim.x + threadIdx.x;
    if (u >= n) return;
    const int deg = int(off[u + 1] - off[u]);
    if (deg < 2) return;

    if (deg > limit) {
        const int tpb = 64;
        tc_neighbors<<<(deg - 1) / tpb + 1, tpb>>>(off, nbr, u);
        return;
    }
    unsigned long long sum = 0;
    const vid_t *mine = nbr + off[u];
    for (int k = 0; k < deg; ++k) {
        vid_t v = mine[k];
        sum += intersect(mine, deg, nbr + off[v], int(off[v + 1] - off[v]));
    }
    if (sum) atomicAdd(&d_total, sum);
}

int main()
{
    const vid_t n = 4000;
    std::mt19937 gen(4711);
    std::vector<std::set<vid_t>> adj(n);
    auto add = [&](vid_t a, vid_t b) {
        if (a == b) return;
        adj[std::min(a, b)].insert(std::max(a, b));
    };
    for (vid_t v = 0; v < n; ++v)
        for (int k = 0; k < 6; ++k) add(v, gen() % n);
    for (vid_t h = 0; h < 60; ++h)
        for (int k = 0; k < 400; ++k) add(h * 11, gen() % n);

    std::vector<eid_t> off(1, 0);
    std::vector<vid_t> nbr;
    for (auto &s : adj) {
        nbr.insert(nbr.end(), s.begin(), s.end());
        off.push_back((eid_t)nbr.size());
    }

    eid_t *d_off; vid_t *d_nbr;
    HANDLE_ERROR(cudaMalloc(&d_off, off.size() * sizeof(eid_t)));
    HANDLE_ERROR(cudaMalloc(&d_nbr, nbr.size() * sizeof(vid_t)));
    HANDLE_ERROR(cudaMemcpy(d_off, off.data(), off.size() * sizeof(eid_t), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(d_nbr, nbr.data(), nbr.size() * sizeof(vid_t), cudaMemcpyHostToDevice));
    unsigned long long zero = 0, total = 0;
    HANDLE_ERROR(cudaMemcpyToSymbol(d_total, &zero, sizeof zero));

    cudaEvent_t t0, t1;
    cudaEventCreate(&t0); cudaEventCreate(&t1);
    cudaEventRecord(t0);
    tc_vertices<<<(n + 127) / 128, 128>>>(d_off, d_nbr, n, 32);
    cudaEventRecord(t1);
    HANDLE_ERROR(cudaGetLastError());
    HANDLE_ERROR(cudaEventSynchronize(t1));
    float ms = 0;
    cudaEventElapsedTime(&ms, t0, t1);
    HANDLE_ERROR(cudaMemcpyFromSymbol(&total, d_total, sizeof total));

    unsigned long long expect = 0;
    for (vid_t u = 0; u < n; ++u)
        for (vid_t v : adj[u])
            for (vid_t w : adj[v])
                expect += adj[u].count(w);

    if (total == expect) printf("OK %llu triangles, %.3f ms\n", total, ms);
    else printf("MISMATCH gpu=%llu cpu=%llu\n", total, expect);
    HANDLE_ERROR(cudaFree(d_off));
    HANDLE_ERROR(cudaFree(d_nbr));
    return total == expect ? 0 : 1;
}
