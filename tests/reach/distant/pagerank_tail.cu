// PageRank (pull). The block that finishes an iteration last checks the change of the
// ranks and tail-launches the next iteration.
#include <cmath>
#include <cstdio>
#include <vector>
#include <random>

struct PRGraph {
    int n;
    const int *__restrict__ inOff;
    const int *__restrict__ inSrc;
    const float *__restrict__ invDeg;     // 0 for sinks
};

struct PRState {
    float damping, tol;
    int maxIter;
    float *diff;
    unsigned *blocksDone;
    int *iterations;
    float **finalRank;
};

__global__ void pagerank(PRGraph g, PRState st, float *cur, float *next, int iter)
{
    const int v = blockIdx.x * blockDim.x + threadIdx.x;
    float d = 0.f;
    if (v < g.n) {
        float acc = 0.f;
        for (int e = g.inOff[v]; e < g.inOff[v + 1]; ++e) {
            const int u = g.inSrc[e];
            acc += cur[u] * __ldg(&g.invDeg[u]);
        }
        const float r = (1.f - st.damping) / g.n + st.damping * acc;
        d = fabsf(r - cur[v]);
        next[v] = r;
    }
    for (int o = 16; o; o >>= 1) d += __shfl_xor_sync(0xffffffffu, d, o);
    if ((threadIdx.x & 31) == 0) atomicAdd(st.diff, d);
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        const unsigned done = atomicAdd(st.blocksDone, 1u);
        if (done == gridDim.x - 1) {
            const float total = atomicExch(st.diff, 0.f);
            *st.blocksDone = 0;
            if (total > st.tol && iter + 1 < st.maxIter)
                pagerank<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(g, st, next, cur, iter + 1);
            else {
                *st.iterations = iter + 1;
                *st.finalRank = next;
            }
        }
    }
}

#define GPU(call) if (cudaError_t _e = (call); _e != cudaSuccess) { \
    std::fprintf(stderr, "%s -> %s\n", #call, cudaGetErrorString(_e)); return 1; }

int main()
{
    const int n = 20000;
    std::mt19937 rng(1998);
    std::vector<std::vector<int>> in(n);
    std::vector<int> deg(n, 0);
    for (int u = 0; u < n; ++u)
        for (int k = rng() % 12; k > 0; --k) {
            int v = (int)(std::pow((rng() % 100000) / 100000.0, 3.0) * n);   // low ids are popular
            in[v].push_back(u);
            deg[u]++;
        }
    std::vector<int> off(1, 0), src;
    std::vector<float> inv(n), init(n, 1.f / n);
    for (int v = 0; v < n; ++v) {
        src.insert(src.end(), in[v].begin(), in[v].end());
        off.push_back((int)src.size());
        inv[v] = deg[v] ? 1.f / deg[v] : 0.f;
    }
    int *dOff, *dSrc; float *dInv, *dA, *dB;
    GPU(cudaMalloc(&dOff, off.size() * 4)); GPU(cudaMalloc(&dSrc, src.size() * 4));
    GPU(cudaMalloc(&dInv, n * 4)); GPU(cudaMalloc(&dA, n * 4)); GPU(cudaMalloc(&dB, n * 4));
    GPU(cudaMemcpy(dOff, off.data(), off.size() * 4, cudaMemcpyHostToDevice));
    GPU(cudaMemcpy(dSrc, src.data(), src.size() * 4, cudaMemcpyHostToDevice));
    GPU(cudaMemcpy(dInv, inv.data(), n * 4, cudaMemcpyHostToDevice));
    GPU(cudaMemcpy(dA, init.data(), n * 4, cudaMemcpyHostToDevice));
    PRGraph g{n, dOff, dSrc, dInv};
    PRState st{0.85f, 1e-5f, 200, nullptr, nullptr, nullptr, nullptr};
    GPU(cudaMalloc(&st.diff, sizeof(float)));
    GPU(cudaMalloc(&st.blocksDone, sizeof(unsigned)));
    GPU(cudaMallocManaged(&st.iterations, sizeof(int)));
    GPU(cudaMallocManaged(&st.finalRank, sizeof(float *)));
    GPU(cudaMemset(st.diff, 0, sizeof(float)));
    GPU(cudaMemset(st.blocksDone, 0, sizeof(unsigned)));

    pagerank<<<(n + 255) / 256, 256>>>(g, st, dA, dB, 0);
    GPU(cudaGetLastError());
    GPU(cudaDeviceSynchronize());
    std::vector<float> rank(n);
    GPU(cudaMemcpy(rank.data(), *st.finalRank, n * 4, cudaMemcpyDeviceToHost));

    std::vector<double> cur(n, 1.0 / n), nxt(n);
    for (int it = 0; it < *st.iterations; ++it) {
        for (int v = 0; v < n; ++v) {
            double a = 0;
            for (int u : in[v]) a += cur[u] * inv[u];
            nxt[v] = 0.15 / n + 0.85 * a;
        }
        cur.swap(nxt);
    }
    double err = 0;
    for (int v = 0; v < n; ++v) err += std::fabs(cur[v] - rank[v]);
    if (err > 1e-4 || *st.iterations >= st.maxIter) {
        std::printf("MISMATCH: L1 error %g after %d iterations\n", err, *st.iterations);
        return 1;
    }
    std::printf("OK: %d iterations\n", *st.iterations);
    return 0;
}
