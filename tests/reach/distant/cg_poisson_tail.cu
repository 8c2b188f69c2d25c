// Conjugate gradients for the 2-D Poisson problem, driven by tail launches:
// apply -> step -> direction -> apply ...
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

namespace solver {

template <typename T>
struct CG {
    int nx, ny, maxit;
    T tol2;                   // on the squared residual
    T *x, *r, *p, *Ap;
    T *scalars;               // [0] r.r  [1] p.Ap  [2] new r.r
    int *iterations;
    __host__ __device__ int size() const { return nx * ny; }
};

enum { BLOCK = 128 };

template <typename T> __global__ void apply(CG<T> s);

template <typename T>
__device__ void accumulate(T v, T *target)
{
    __shared__ T part[BLOCK];
    part[threadIdx.x] = v;
    __syncthreads();
    for (int h = BLOCK >> 1; h >= 1; h >>= 1) {
        if (threadIdx.x < h) part[threadIdx.x] += part[threadIdx.x + h];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(target, part[0]);
}

__device__ inline bool elected() { return (blockIdx.x | threadIdx.x) == 0; }

// starts `kernel` on the whole domain once the running grid is complete
template <typename T>
__device__ void then(void (*kernel)(CG<T>), const CG<T> &s)
{
    int blocks = (s.size() + BLOCK - 1) / BLOCK;
    kernel<<<blocks, BLOCK, 0, cudaStreamTailLaunch>>>(s);
}

template <typename T>
__global__ void direction(CG<T> s)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    const T beta = s.scalars[2] / s.scalars[0];
    if (i < s.size()) s.p[i] = s.r[i] + beta * s.p[i];
    if (elected()) {
        *s.iterations += 1;
        if (s.scalars[2] > s.tol2 && *s.iterations < s.maxit) then(apply<T>, s);
    }
}

template <typename T>
__global__ void step(CG<T> s)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    const T alpha = s.scalars[0] / s.scalars[1];
    T ri = 0;
    if (i < s.size()) {
        s.x[i] += alpha * s.p[i];
        ri = s.r[i] -= alpha * s.Ap[i];
    }
    accumulate(ri * ri, &s.scalars[2]);
    if (elected()) then(direction<T>, s);
}

// between direction and apply: shift the scalars
template <typename T>
__global__ void shift(CG<T> s, bool first)
{
    if (!first) s.scalars[0] = s.scalars[2];
    s.scalars[1] = s.scalars[2] = 0;
}

template <typename T>
__global__ void multiply(CG<T> s)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    T v = 0, pi = 0;
    if (i < s.size()) {
        const int x = i % s.nx, y = i / s.nx;
        pi = s.p[i];
        v = 4 * pi;
        if (x > 0)        v -= s.p[i - 1];
        if (x < s.nx - 1) v -= s.p[i + 1];
        if (y > 0)        v -= s.p[i - s.nx];
        if (y < s.ny - 1) v -= s.p[i + s.nx];
        s.Ap[i] = v;
    }
    accumulate(v * pi, &s.scalars[1]);
    if (elected()) then(step<T>, s);
}

template <typename T>
__global__ void apply(CG<T> s)
{
    if (elected()) {
        shift<T><<<1, 1, 0, cudaStreamTailLaunch>>>(s, *s.iterations == 0);
        multiply<T><<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(s);
    }
}

} // namespace solver

#define CUDA_OK(c) if ((c) != cudaSuccess) { std::fprintf(stderr, "CUDA error, line %d\n", __LINE__); std::exit(1); }

int main()
{
    using T = double;
    solver::CG<T> s;
    s.nx = 96; s.ny = 64; s.maxit = 1000; s.tol2 = 1e-16;
    const int n = s.size();
    std::vector<T> b(n), x(n), res(n);
    srand(100);
    T rr = 0;
    for (auto &v : b) { v = (T)rand() / RAND_MAX - 0.5; rr += v * v; }
    T init[3] = {rr, 0, 0};
    for (T **v : {&s.x, &s.r, &s.p, &s.Ap}) CUDA_OK(cudaMalloc(v, n * sizeof(T)));
    CUDA_OK(cudaMalloc(&s.scalars, sizeof init));
    CUDA_OK(cudaMalloc(&s.iterations, sizeof(int)));
    CUDA_OK(cudaMemset(s.x, 0, n * sizeof(T)));
    CUDA_OK(cudaMemcpy(s.r, b.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(s.p, b.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(s.scalars, init, sizeof init, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemset(s.iterations, 0, sizeof(int)));

    solver::apply<T><<<(n - 1) / solver::BLOCK + 1, solver::BLOCK>>>(s);
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());
    int its = 0;
    CUDA_OK(cudaMemcpy(x.data(), s.x, n * sizeof(T), cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(&its, s.iterations, sizeof(int), cudaMemcpyDeviceToHost));

    // the residual computed on the host tells whether x solves the system
    T worst = 0;
    for (int j = 0; j < s.ny; ++j) for (int i = 0; i < s.nx; ++i) {
        int k = j * s.nx + i;
        T v = 4 * x[k];
        if (i > 0) v -= x[k - 1];
        if (i < s.nx - 1) v -= x[k + 1];
        if (j > 0) v -= x[k - s.nx];
        if (j < s.ny - 1) v -= x[k + s.nx];
        worst = std::fmax(worst, std::fabs(b[k] - v));
    }
    if (worst < 1e-7 && its < s.maxit) std::printf("OK: %d iterations, residual %g\n", its, worst);
    else std::printf("MISMATCH: %d iterations, residual %g\n", its, worst);
    return worst < 1e-7 ? 0 : 1;
}
