// Histogram of response times; the last block to finish launches the grid that
// turns the histogram into percentiles.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace stats {

constexpr int kBins = 1024;
constexpr int kPercentiles = 5;

struct Workspace {
    unsigned int bins[kBins];
    unsigned int blocks_done;
    unsigned int launches;
};

struct Result {
    unsigned int total;
    int percentile_bin[kPercentiles];
};

__constant__ int kWanted[kPercentiles] = {10, 50, 90, 95, 99};

// inclusive scan of all bins by one block of kBins threads
__global__ void summarize(const Workspace *ws, Result *out)
{
    __shared__ unsigned int warp_total[32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const unsigned int mine = ws->bins[threadIdx.x];
    unsigned int v = mine;
    for (int d = 1; d < 32; d <<= 1) {
        const unsigned int o = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d) v += o;
    }
    if (lane == 31) warp_total[warp] = v;
    __syncthreads();
    if (warp == 0) {
        unsigned int t = warp_total[lane];
        for (int d = 1; d < 32; d <<= 1) {
            const unsigned int o = __shfl_up_sync(0xffffffffu, t, d);
            if (lane >= d) t += o;
        }
        warp_total[lane] = t;
    }
    __syncthreads();
    if (warp > 0) v += warp_total[warp - 1];
    const unsigned int total = warp_total[31];
    const unsigned int before = v - mine;
    for (int k = 0; k < kPercentiles; ++k) {
        const unsigned int rank = (unsigned int)((std::uint64_t)total * kWanted[k] / 100);
        if (before <= rank && rank < v) out->percentile_bin[k] = threadIdx.x;
    }
    if (threadIdx.x == 0) out->total = total;
}

__device__ inline bool last_block(unsigned int *counter)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(counter, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    return last;
}

__global__ void histogram(const std::uint32_t *usec, std::size_t n, Workspace *ws, Result *out)
{
    __shared__ unsigned int local[kBins];
    for (int b = threadIdx.x; b < kBins; b += blockDim.x) local[b] = 0;
    __syncthreads();
    for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < n; i += std::size_t(gridDim.x) * blockDim.x) {
        const std::uint32_t bin = usec[i] / 64;
        atomicAdd(&local[bin < kBins ? bin : kBins - 1], 1u);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < kBins; b += blockDim.x)
        if (local[b]) atomicAdd(&ws->bins[b], local[b]);

    if (last_block(&ws->blocks_done) && threadIdx.x == 0) {
        ++ws->launches;
        summarize<<<1, kBins, 0, cudaStreamTailLaunch>>>(ws, out);
    }
}

}  // namespace stats

int main()
{
    using namespace stats;
    const std::size_t n = 3000001;
    std::vector<std::uint32_t> t(n);
    std::uint32_t s = 2463534242u;
    for (auto &v : t) {
        s ^= s << 13; s ^= s >> 17; s ^= s << 5;
        std::uint32_t a = (s >> 4) & 0x3fff, b = (s >> 18);
        v = a + (b % 16 == 0 ? b : b / 8);
    }
    std::uint32_t *dt;
    Workspace *ws;
    Result *dr, r;
    if (cudaMalloc(&dt, n * sizeof *dt) || cudaMalloc(&ws, sizeof *ws) || cudaMalloc(&dr, sizeof *dr)) return 2;
    cudaMemcpy(dt, t.data(), n * sizeof *dt, cudaMemcpyHostToDevice);
    cudaMemset(ws, 0, sizeof *ws);
    cudaMemset(dr, 0xff, sizeof *dr);

    histogram<<<200, 256>>>(dt, n, ws, dr);
    cudaError_t e = cudaGetLastError();
    if (e == cudaSuccess) e = cudaDeviceSynchronize();
    if (e != cudaSuccess) { std::printf("%s\n", cudaGetErrorString(e)); return 2; }
    cudaMemcpy(&r, dr, sizeof r, cudaMemcpyDeviceToHost);

    std::vector<unsigned> bins(kBins, 0);
    for (auto v : t) ++bins[v / 64 < kBins ? v / 64 : kBins - 1];
    const int wanted[kPercentiles] = {10, 50, 90, 95, 99};
    int bad = r.total != n;
    for (int k = 0; k < kPercentiles; ++k) {
        std::uint64_t rank = n * (std::uint64_t)wanted[k] / 100, acc = 0;
        int b = 0;
        while (acc + bins[b] <= rank) acc += bins[b++];
        if (r.percentile_bin[k] != b) {
            std::printf("p%d: bin %d, expected %d\n", wanted[k], r.percentile_bin[k], b);
            ++bad;
        }
    }
    std::puts(bad ? "differs" : "OK");
    return bad != 0;
}
