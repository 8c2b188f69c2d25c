// k-means, Lloyd iterations: assignPoints and updateCenters launch each other until no
// point changes its cluster.
#include <cuda_runtime.h>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <vector>

template <int Dim>
class KMeans
{
public:
    struct Data {
        const float *points;     // n * Dim
        float *centers;          // k * Dim
        float *sums;             // k * Dim
        int   *counts;           // k
        int   *label;            // n
        int   *changed;
        int   *rounds;
        int    n, k, maxRounds;
    };
    static constexpr int Threads = 256;
    static __host__ __device__ int blocks(int n) { return (n + Threads - 1) / Threads; }
};

template <int Dim> __global__ void updateCenters(typename KMeans<Dim>::Data d);

template <int Dim>
__host__ __device__ int nearest(const float *p, const float *centers, int k)
{
    int best = 0;
    float bestDist = 3.4e38f;
    for (int c = 0; c < k; ++c) {
        float dist = 0;
        for (int i = 0; i < Dim; ++i) {
            float t = p[i] - centers[c * Dim + i];
            dist += t * t;
        }
        if (dist < bestDist) { bestDist = dist; best = c; }
    }
    return best;
}

template <int Dim>
__global__ void assignPoints(typename KMeans<Dim>::Data d)
{
    extern __shared__ float sCenters[];
    for (int i = threadIdx.x; i < d.k * Dim; i += blockDim.x)
        sCenters[i] = d.centers[i];
    __syncthreads();

    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < d.n) {
        const float *p = d.points + i * Dim;
        int c = nearest<Dim>(p, sCenters, d.k);
        if (c != d.label[i]) {
            d.label[i] = c;
            *d.changed = 1;
        }
        for (int j = 0; j < Dim; ++j) atomicAdd(&d.sums[c * Dim + j], p[j]);
        atomicAdd(&d.counts[c], 1);
    }

    if (blockIdx.x == 0 && threadIdx.x == 0)
        updateCenters<Dim><<<1, KMeans<Dim>::Threads, 0, cudaStreamTailLaunch>>>(d);
}

template <int Dim>
__global__ void updateCenters(typename KMeans<Dim>::Data d)
{
    for (int i = threadIdx.x; i < d.k * Dim; i += blockDim.x) {
        int cnt = d.counts[i / Dim];
        if (cnt > 0) d.centers[i] = d.sums[i] / cnt;
        d.sums[i] = 0;
    }
    __syncthreads();
    for (int c = threadIdx.x; c < d.k; c += blockDim.x) d.counts[c] = 0;
    __syncthreads();

    if (threadIdx.x == 0) {
        int round = ++*d.rounds;
        if (*d.changed && round < d.maxRounds) {
            *d.changed = 0;
            auto grid = KMeans<Dim>::blocks(d.n);
            auto smem = d.k * Dim * sizeof(float);
            assignPoints<Dim><<<grid, KMeans<Dim>::Threads, smem, cudaStreamTailLaunch>>>(d);
        }
    }
}

static void check(cudaError_t e, int line)
{
    if (e != cudaSuccess) { std::cerr << "line " << line << ": " << cudaGetErrorString(e) << '\n'; std::exit(1); }
}
#define CHECK(e) check(e, __LINE__)

int main()
{
    constexpr int Dim = 3;
    const int n = 12000, k = 8;
    std::vector<float> pts(n * Dim), centers(k * Dim);
    std::srand(12);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < Dim; ++j)                       // well separated blobs, integer coordinates
            pts[i * Dim + j] = float(((i % k) >> j & 1) * 100 + std::rand() % 41);
    for (int c = 0; c < k; ++c)
        for (int j = 0; j < Dim; ++j) centers[c * Dim + j] = pts[(c * k + c % 3) * Dim + j];

    KMeans<Dim>::Data d{};
    d.n = n; d.k = k; d.maxRounds = 100;
    float *dPts;
    CHECK(cudaMalloc(&dPts, pts.size() * sizeof(float)));
    CHECK(cudaMemcpy(dPts, pts.data(), pts.size() * sizeof(float), cudaMemcpyHostToDevice));
    d.points = dPts;
    CHECK(cudaMalloc(&d.centers, k * Dim * sizeof(float)));
    CHECK(cudaMemcpy(d.centers, centers.data(), k * Dim * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMalloc(&d.sums, k * Dim * sizeof(float)));
    CHECK(cudaMemset(d.sums, 0, k * Dim * sizeof(float)));
    CHECK(cudaMalloc(&d.counts, k * sizeof(int)));
    CHECK(cudaMemset(d.counts, 0, k * sizeof(int)));
    CHECK(cudaMalloc(&d.label, n * sizeof(int)));
    CHECK(cudaMemset(d.label, 0xff, n * sizeof(int)));
    CHECK(cudaMalloc(&d.changed, sizeof(int)));
    CHECK(cudaMemset(d.changed, 0, sizeof(int)));
    CHECK(cudaMallocManaged(&d.rounds, sizeof(int)));
    *d.rounds = 0;

    assignPoints<Dim><<<KMeans<Dim>::blocks(n), KMeans<Dim>::Threads, k * Dim * sizeof(float)>>>(d);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    std::vector<float> got(k * Dim);
    CHECK(cudaMemcpy(got.data(), d.centers, k * Dim * sizeof(float), cudaMemcpyDeviceToHost));

    std::vector<int> label(n, -1);
    int rounds = 0;
    for (bool changed = true; changed && rounds < 100; ++rounds) {
        changed = false;
        std::vector<float> sums(k * Dim, 0); std::vector<int> counts(k, 0);
        for (int i = 0; i < n; ++i) {
            int c = nearest<Dim>(&pts[i * Dim], centers.data(), k);
            if (c != label[i]) { label[i] = c; changed = true; }
            counts[c]++;
            for (int j = 0; j < Dim; ++j) sums[c * Dim + j] += pts[i * Dim + j];
        }
        for (int i = 0; i < k * Dim; ++i) if (counts[i / Dim]) centers[i] = sums[i] / counts[i / Dim];
    }
    // fused multiply-adds can send a point half way between two centers elsewhere
    bool ok = *d.rounds < d.maxRounds;
    for (int i = 0; i < k * Dim; ++i) ok = ok && std::abs(got[i] - centers[i]) < 0.1f;
    std::cout << (ok ? "OK " : "MISMATCH ") << *d.rounds << " rounds (cpu " << rounds << ")\n";
    for (int i = 0; !ok && i < k * Dim; ++i)
        std::cout << std::setw(10) << got[i] << std::setw(10) << centers[i] << "\n";
    return !ok;
}
