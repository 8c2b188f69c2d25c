// PageRank until convergence without going back to the host.
// "Pull" over in-edges, ping-pong rank vectors, L1 change as stopping rule.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

template <typename Real>
struct PageRank {
    int n;
    const int *in_ptr;
    const int *in_src;
    const int *out_deg;
    Real *rank;
    Real *next;
    Real damping, tol;
    int max_iter;
};

template <typename Real>
struct Progress {
    Real delta;
    int iterations;
};

template <typename Real, int BLOCK>
__global__ void pull(PageRank<Real> pr, Progress<Real> *progress)
{
    __shared__ Real warp_sum[BLOCK / 32];
    const int v = blockIdx.x * BLOCK + threadIdx.x;
    Real change = 0;
    if (v < pr.n) {
        Real s = 0;
        for (int e = pr.in_ptr[v]; e < pr.in_ptr[v + 1]; ++e) {
            const int u = pr.in_src[e];
            s += pr.rank[u] / pr.out_deg[u];
        }
        const Real r = (1 - pr.damping) / pr.n + pr.damping * s;
        change = fabs(r - pr.rank[v]);
        pr.next[v] = r;
    }
    for (int o = 16; o > 0; o /= 2) change += __shfl_xor_sync(~0u, change, o);
    if (threadIdx.x % 32 == 0) warp_sum[threadIdx.x / 32] = change;
    __syncthreads();
    if (threadIdx.x == 0) {
        Real total = 0;
        for (Real w : warp_sum) total += w;
        atomicAdd(&progress->delta, total);
    }
}

template <typename Real, int BLOCK = 128>
__global__ void iterate(PageRank<Real> pr, Progress<Real> *progress);

// looks at the change, and starts the next round if it is still too large
template <typename Real, int BLOCK>
__global__ void decide(PageRank<Real> pr, Progress<Real> *progress)
{
    const bool done = progress->delta < pr.tol || progress->iterations >= pr.max_iter;
    if (!done)
        iterate<Real, BLOCK><<<1, 1, 0, cudaStreamTailLaunch>>>(pr, progress);
}

template <typename Real, int BLOCK>
__global__ void iterate(PageRank<Real> pr, Progress<Real> *progress)
{
    progress->delta = 0;
    progress->iterations += 1;
    const int blocks = (pr.n + BLOCK - 1) / BLOCK;
    pull<Real, BLOCK><<<blocks, BLOCK>>>(pr, progress);

    auto swapped = pr;
    swapped.rank = pr.next;
    swapped.next = pr.rank;
    decide<Real, BLOCK><<<1, 1, 0, cudaStreamTailLaunch>>>(swapped, progress);
}

#define CU_CHECK(expr)                                                         \
    do {                                                                       \
        cudaError_t _s = (expr);                                               \
        if (_s != cudaSuccess) {                                               \
            std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(_s)); \
            std::exit(-1);                                                     \
        }                                                                      \
    } while (0)

template <typename T>
T *to_device(const std::vector<T> &v)
{
    T *p;
    CU_CHECK(cudaMalloc(&p, v.size() * sizeof(T)));
    CU_CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

int main()
{
    const int n = 10000;
    std::vector<std::vector<int>> in(n);
    std::vector<int> deg(n, 0), ptr{0}, src;
    unsigned s = 1;
    for (int u = 0; u < n; ++u) {
        int d = 1 + u % 7;
        for (int k = 0; k < d; ++k) {
            s = s * 1664525u + 1013904223u;
            int v = (s >> 9) % n;
            if (k == 0) v = (v % 100) * 3;          // popular pages
            in[v].push_back(u);
            ++deg[u];
        }
    }
    for (auto &l : in) {
        src.insert(src.end(), l.begin(), l.end());
        ptr.push_back((int)src.size());
    }
    std::vector<double> r(n, 1.0 / n), q(n, 0.0);

    PageRank<double> pr{n, to_device(ptr), to_device(src), to_device(deg), to_device(r), to_device(q), 0.85, 1e-10, 500};
    Progress<double> zero{0, 0}, *prog;
    CU_CHECK(cudaMalloc(&prog, sizeof zero));
    CU_CHECK(cudaMemcpy(prog, &zero, sizeof zero, cudaMemcpyHostToDevice));

    iterate<double><<<1, 1>>>(pr, prog);
    CU_CHECK(cudaGetLastError());
    CU_CHECK(cudaDeviceSynchronize());
    CU_CHECK(cudaMemcpy(&zero, prog, sizeof zero, cudaMemcpyDeviceToHost));

    std::vector<double> got(n);
    CU_CHECK(cudaMemcpy(got.data(), zero.iterations % 2 ? pr.next : pr.rank, n * sizeof(double), cudaMemcpyDeviceToHost));

    for (int it = 0; it < zero.iterations; ++it) {
        for (int v = 0; v < n; ++v) {
            double t = 0;
            for (int e = ptr[v]; e < ptr[v + 1]; ++e) t += r[src[e]] / deg[src[e]];
            q[v] = 0.15 / n + 0.85 * t;
        }
        std::swap(r, q);
    }
    double worst = 0;
    for (int v = 0; v < n; ++v) worst = std::fmax(worst, std::fabs(r[v] - got[v]) * n);
    const bool good = worst < 1e-8 && zero.iterations > 3 && zero.iterations < 500;
    if (good) std::printf("OK in %d iterations\n", zero.iterations);
    else std::printf("difference %g, iterations %d, delta %g\n", worst, zero.iterations, zero.delta);
    return good ? 0 : 1;
}
