// Segmented rank sort. Each thread walks over its share of the segments and launches, per
// segment, a ranking and a scatter kernel into a stream of its own.
#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>
#include <cuda_runtime.h>

#define cudaCheck(ans) do { cudaError_t rc = (ans); if (rc != cudaSuccess) { \
    fprintf(stderr, "cudaCheck: %s %s %d\n", cudaGetErrorString(rc), __FILE__, __LINE__); exit(rc); } } while (0)

template <typename Key>
struct Less    { __host__ __device__ bool operator()(const Key &a, const Key &b) const { return a < b; } };
template <typename Key>
struct Greater { __host__ __device__ bool operator()(const Key &a, const Key &b) const { return a > b; } };

template <typename Key, typename Compare>
__global__ void rankKernel(const Key *keys, int *rank, int n, Compare cmp)
{
    extern __shared__ __align__(16) unsigned char raw[];
    Key *tile = reinterpret_cast<Key *>(raw);
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const Key mine = i < n ? keys[i] : Key();
    int r = 0;
    for (int base = 0; base < n; base += blockDim.x) {
        if (base + threadIdx.x < n) tile[threadIdx.x] = keys[base + threadIdx.x];
        __syncthreads();
        const int m = min((int)blockDim.x, n - base);
        for (int k = 0; k < m; ++k)
            r += cmp(tile[k], mine) || (!cmp(mine, tile[k]) && base + k < i);
        __syncthreads();
    }
    if (i < n) rank[i] = r;
}

template <typename Key>
__global__ void scatterKernel(const Key *in, const int *rank, Key *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[rank[i]] = in[i];
}

template <typename Key, typename Compare>
__global__ void sortSegments(const Key *in, Key *out, int *rank, const int *seg, int nseg, Compare cmp)
{
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

    const int worker = blockIdx.x * blockDim.x + threadIdx.x;
    const int workers = gridDim.x * blockDim.x;
    for (int s = worker; s < nseg; s += workers) {
        const int lo = seg[s], n = seg[s + 1] - lo;
        if (n == 0) continue;
        if (n == 1) { out[lo] = in[lo]; continue; }
        const int threads = n <= 32 ? 32 : n <= 64 ? 64 : 128;
        const int blocks = n / threads + (n % threads != 0);
        rankKernel<<<blocks, threads, threads * sizeof(Key), stream>>>(in + lo, rank + lo, n, cmp);
        scatterKernel<<<blocks, threads, 0, stream>>>(in + lo, rank + lo, out + lo, n);
    }
    cudaStreamDestroy(stream);
}

template <typename Key, typename Compare>
bool run(const std::vector<Key> &keys, const std::vector<int> &seg, Compare cmp)
{
    const int n = (int)keys.size(), nseg = (int)seg.size() - 1;
    Key *dIn, *dOut; int *dRank, *dSeg;
    cudaCheck(cudaMalloc(&dIn, n * sizeof(Key)));
    cudaCheck(cudaMalloc(&dOut, n * sizeof(Key)));
    cudaCheck(cudaMalloc(&dRank, n * sizeof(int)));
    cudaCheck(cudaMalloc(&dSeg, seg.size() * sizeof(int)));
    cudaCheck(cudaMemcpy(dIn, keys.data(), n * sizeof(Key), cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(dSeg, seg.data(), seg.size() * sizeof(int), cudaMemcpyHostToDevice));
    sortSegments<<<2, 32>>>(dIn, dOut, dRank, dSeg, nseg, cmp);
    cudaCheck(cudaGetLastError());
    cudaCheck(cudaDeviceSynchronize());
    std::vector<Key> got(n), want = keys;
    cudaCheck(cudaMemcpy(got.data(), dOut, n * sizeof(Key), cudaMemcpyDeviceToHost));
    for (int s = 0; s < nseg; ++s)
        std::stable_sort(want.begin() + seg[s], want.begin() + seg[s + 1], cmp);
    cudaCheck(cudaFree(dIn)); cudaCheck(cudaFree(dOut));
    cudaCheck(cudaFree(dRank)); cudaCheck(cudaFree(dSeg));
    for (int i = 0; i < n; ++i)
        if (got[i] != want[i]) {
            std::printf("position %d: %g, expected %g\n", i, (double)got[i], (double)want[i]);
            return false;
        }
    return true;
}

int main()
{
    const int nseg = 900;
    srand(314);
    std::vector<int> seg(1, 0);
    for (int s = 0; s < nseg; ++s)
        seg.push_back(seg.back() + (s % 60 == 0 ? 1000 + rand() % 1000 : rand() % 90));
    std::vector<int> ikeys(seg.back());
    std::vector<double> dkeys(seg.back());
    for (auto &k : ikeys) k = rand() % 1000 - 500;
    for (auto &k : dkeys) k = rand() / 1000.0;

    cudaCheck(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096));
    bool good = run(ikeys, seg, Less<int>()) && run(dkeys, seg, Greater<double>());
    std::printf("%s\n", good ? "OK" : "FAILED");
    return good ? 0 : 1;
}
