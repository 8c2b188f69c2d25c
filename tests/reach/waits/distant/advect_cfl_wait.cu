// A set of independent 1-D advection problems, one block per problem. In each step thread 0
// launches the search for the fastest cell, waits, and the block uses the time step.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

typedef double real_t;

struct Problem {
    int     cells;
    real_t  length;
    real_t *q;       // cells
    real_t *qNext;   // cells
    real_t *speed;   // cells
    real_t *vmax;    // 1
};

const int WIDTH = 128;

__global__ void fastest(const real_t *speed, const real_t *q, int n, real_t *vmax)
{
    __shared__ real_t m[WIDTH];
    real_t v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v = fmax(v, fabs(speed[i]) * (1.0 + 0.1 * q[i]));
    m[threadIdx.x] = v;
    __syncthreads();
    for (unsigned h = blockDim.x >> 1; h > 0; h >>= 1) {
        if (threadIdx.x < h) m[threadIdx.x] = fmax(m[threadIdx.x], m[threadIdx.x + h]);
        __syncthreads();
    }
    if (threadIdx.x == 0) *vmax = m[0];
}

__host__ __device__ inline real_t upwind(const real_t *q, const real_t *speed, int i, int n, real_t lambda)
{
    real_t v = speed[i] * (1.0 + 0.1 * q[i]);
    int l = i ? i - 1 : n - 1, r = i + 1 < n ? i + 1 : 0;
    return v > 0 ? q[i] - lambda * v * (q[i] - q[l]) : q[i] - lambda * v * (q[r] - q[i]);
}

__global__ void simulate(Problem *problems, real_t tEnd, int maxSteps)
{
    Problem p = problems[blockIdx.x];
    const real_t dx = p.length / p.cells;
    real_t t = 0;
    for (int step = 0; step < maxSteps && t < tEnd; step++) {
        if (threadIdx.x == 0) {
            fastest<<<1, WIDTH>>>(p.speed, p.q, p.cells, p.vmax);
            cudaDeviceSynchronize();
        }
        __syncthreads();
        const real_t v = *(volatile real_t *)p.vmax;
        real_t dt = 0.5 * dx / v;
        if (t + dt > tEnd) dt = tEnd - t;
        for (int i = threadIdx.x; i < p.cells; i += blockDim.x)
            p.qNext[i] = upwind(p.q, p.speed, i, p.cells, dt / dx);
        __syncthreads();
        real_t *tmp = p.q; p.q = p.qNext; p.qNext = tmp;
        t += dt;
    }
    if (threadIdx.x == 0) problems[blockIdx.x].q = p.q;   // where the result is
}

inline void chk(cudaError_t e) { if (e != cudaSuccess) { std::cerr << cudaGetErrorString(e) << std::endl; std::exit(1); } }

int main()
{
    const int count = 12, maxSteps = 400;
    const real_t tEnd = 0.25;
    Problem *probs;
    chk(cudaMallocManaged(&probs, count * sizeof(Problem)));
    std::vector<std::vector<real_t>> q(count), sp(count);
    for (int k = 0; k < count; k++) {
        Problem &p = probs[k];
        p.cells = 100 + 50 * k;
        p.length = 1.0 + k;
        q[k].resize(p.cells); sp[k].resize(p.cells);
        for (int i = 0; i < p.cells; i++) {
            real_t x = (real_t)i / p.cells;
            q[k][i] = std::exp(-50 * (x - 0.4) * (x - 0.4));
            sp[k][i] = std::sin(6.283185307179586 * x + k) + 0.3;
        }
        size_t bytes = p.cells * sizeof(real_t);
        chk(cudaMalloc(&p.q, bytes)); chk(cudaMalloc(&p.qNext, bytes)); chk(cudaMalloc(&p.speed, bytes));
        chk(cudaMalloc(&p.vmax, sizeof(real_t)));
        chk(cudaMemcpy(p.q, q[k].data(), bytes, cudaMemcpyHostToDevice));
        chk(cudaMemcpy(p.speed, sp[k].data(), bytes, cudaMemcpyHostToDevice));
    }
    simulate<<<count, 64>>>(probs, tEnd, maxSteps);
    chk(cudaGetLastError());
    chk(cudaDeviceSynchronize());

    for (int k = 0; k < count; k++) {
        const int n = probs[k].cells;
        std::vector<real_t> a = q[k], b(n), got(n);
        const real_t dx = probs[k].length / n;
        real_t t = 0;
        for (int s = 0; s < maxSteps && t < tEnd; s++) {
            real_t v = 0;
            for (int i = 0; i < n; i++) v = std::fmax(v, std::fabs(sp[k][i]) * (1.0 + 0.1 * a[i]));
            real_t dt = 0.5 * dx / v;
            if (t + dt > tEnd) dt = tEnd - t;
            for (int i = 0; i < n; i++) b[i] = upwind(a.data(), sp[k].data(), i, n, dt / dx);
            a.swap(b);
            t += dt;
        }
        chk(cudaMemcpy(got.data(), probs[k].q, n * sizeof(real_t), cudaMemcpyDeviceToHost));
        for (int i = 0; i < n; i++)
            if (std::fabs(a[i] - got[i]) > 1e-9) {
                std::cout << "problem " << k << " cell " << i << ": " << got[i] << " expected " << a[i] << "\n";
                return 1;
            }
    }
    std::cout << "OK\n";
    return 0;
}
