// Adaptive Simpson quadrature of a family of integrands.
#include <cmath>
#include <cstdio>
#include <iostream>

namespace quad {

template <typename Real>
struct Damped {
    Real freq, decay;
    __host__ __device__ Real operator()(Real x) const { return sin(freq * x) * exp(-decay * x) + Real(1) / (Real(0.01) + (x - Real(0.3)) * (x - Real(0.3))); }
};

template <typename Real, typename F>
__host__ __device__ Real simpson(const F &f, Real a, Real b)
{
    return (b - a) / Real(6) * (f(a) + Real(4) * f(Real(0.5) * (a + b)) + f(b));
}

// thread k works on the k-th piece of [a,b]
template <typename Real, typename F>
__global__ void refine(F f, Real a, Real b, Real eps, int depth, Real *result)
{
    const Real w = (b - a) / Real(blockDim.x);
    const Real lo = a + w * Real(threadIdx.x), hi = lo + w, mid = Real(0.5) * (lo + hi);
    const Real whole = simpson(f, lo, hi);
    const Real halves = simpson(f, lo, mid) + simpson(f, mid, hi);
    const Real err = halves - whole;
    if (fabs(err) <= Real(15) * eps || depth == 0) {
        atomicAdd(result, halves + err / Real(15));
        return;
    }
    refine<Real, F><<<1, 4>>>(f, lo, hi, eps / Real(4), depth - 1, result);
}

template <typename Real>
__global__ void integrate_all(const Real *freq, const Real *decay, int n, Real eps, Real *results)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        Damped<Real> f{freq[i], decay[i]};
        results[i] = Real(0);
        refine<<<1, 8>>>(f, Real(0), Real(4), eps, 8, &results[i]);
    }
}

template <typename Real, typename F>
Real adapt_cpu(const F &f, Real a, Real b, Real eps, int depth, int pieces)
{
    Real sum = 0, w = (b - a) / pieces;
    for (int k = 0; k < pieces; ++k) {
        Real lo = a + w * k, hi = lo + w, mid = Real(0.5) * (lo + hi);
        Real whole = simpson(f, lo, hi), halves = simpson(f, lo, mid) + simpson(f, mid, hi), err = halves - whole;
        if (std::fabs(err) <= 15 * eps || depth == 0) sum += halves + err / 15;
        else sum += adapt_cpu(f, lo, hi, eps / 4, depth - 1, 4);
    }
    return sum;
}

} // namespace quad

#define CUDA_SAFE_CALL(call) do { cudaError_t err__ = call; if (cudaSuccess != err__) { \
    std::cerr << "CUDA error in " << __FILE__ << ":" << __LINE__ << ": " << cudaGetErrorString(err__) << std::endl; \
    exit(EXIT_FAILURE); } } while (0)

int main()
{
    const int n = 256;
    const double eps = 1e-6;
    double *freq, *decay, *results;
    CUDA_SAFE_CALL(cudaMallocManaged(&freq, n * sizeof(double)));
    CUDA_SAFE_CALL(cudaMallocManaged(&decay, n * sizeof(double)));
    CUDA_SAFE_CALL(cudaMallocManaged(&results, n * sizeof(double)));
    for (int i = 0; i < n; ++i) {
        freq[i] = 1.0 + 0.25 * i;
        decay[i] = 0.1 + 0.01 * (i % 17);
    }
    CUDA_SAFE_CALL(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 131072));
    quad::integrate_all<double><<<(n + 31) / 32, 32>>>(freq, decay, n, eps, results);
    CUDA_SAFE_CALL(cudaGetLastError());
    CUDA_SAFE_CALL(cudaDeviceSynchronize());

    double worst = 0;
    for (int i = 0; i < n; ++i) {
        quad::Damped<double> f{freq[i], decay[i]};
        double ref = quad::adapt_cpu(f, 0.0, 4.0, eps, 8, 8);
        worst = std::fmax(worst, std::fabs(ref - results[i]));
    }
    if (worst < 1e-7) std::cout << "OK, worst difference " << worst << std::endl;
    else              std::cout << "MISMATCH, worst difference " << worst << std::endl;
    CUDA_SAFE_CALL(cudaFree(freq));
    CUDA_SAFE_CALL(cudaFree(decay));
    CUDA_SAFE_CALL(cudaFree(results));
    return worst < 1e-7 ? 0 : 1;
}
