// Adaptive Simpson quadrature; every interval that is too coarse is split and
// handed to two children whose results are added here.
#include <cmath>
#include <cstdio>
#include <vector>

struct Interval { double a, b, fa, fm, fb, whole; };

template <typename F>
__host__ __device__ double simpson(F, double a, double b, double fa, double fm, double fb)
{
    return (b - a) / 6.0 * (fa + 4.0 * fm + fb);
}

struct Bump {
    double k;
    __host__ __device__ double operator()(double x) const { return 1.0 / (1e-3 * k + (x - 0.3) * (x - 0.3)); }
};

template <typename F>
__global__ void quad(F f, Interval iv, double eps, int depth, double *result)
{
    const double m = 0.5 * (iv.a + iv.b);
    const double fl = f(0.5 * (iv.a + m)), fr = f(0.5 * (m + iv.b));
    const double left = simpson(f, iv.a, m, iv.fa, fl, iv.fm);
    const double right = simpson(f, m, iv.b, iv.fm, fr, iv.fb);
    const double delta = left + right - iv.whole;

    if (depth == 0 || fabs(delta) <= 15.0 * eps) {
        *result = left + right + delta / 15.0;
        return;
    }

    double *part = (double *)malloc(2 * sizeof(double));
    Interval l = {iv.a, m, iv.fa, fl, iv.fm, left};
    Interval r = {m, iv.b, iv.fm, fr, iv.fb, right};
    quad<<<1, 1>>>(f, l, eps / 2, depth - 1, part);
    quad<<<1, 1>>>(f, r, eps / 2, depth - 1, part + 1);
    cudaDeviceSynchronize();
    *result = part[0] + part[1];
    free(part);
}

template <typename F>
__global__ void quadMany(const F *fs, int n, double a, double b, double *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    F f = fs[i];
    double m = 0.5 * (a + b);
    Interval iv = {a, b, f(a), f(m), f(b), 0.0};
    iv.whole = simpson(f, a, b, iv.fa, iv.fm, iv.fb);
    quad<<<1, 1>>>(f, iv, 1e-7, 12, out + i);
    cudaError_t e = cudaDeviceSynchronize();
    if (e != cudaSuccess) {
        out[i] = -1.0;
        return;
    }
    out[i] *= 2.0;      // the other half of the symmetric domain
}

int main()
{
    const int n = 16;
    std::vector<Bump> f(n);
    for (int i = 0; i < n; ++i) f[i].k = 1.0 + i;
    Bump *df;
    double *dout, out[n];
    cudaMalloc(&df, n * sizeof(Bump));
    cudaMalloc(&dout, n * sizeof(double));
    cudaMemcpy(df, f.data(), n * sizeof(Bump), cudaMemcpyHostToDevice);
    cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 15);
    quadMany<<<1, n>>>(df, n, 0.0, 1.0, dout);
    cudaMemcpy(out, dout, sizeof out, cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i) {
        double c = std::sqrt(1e-3 * f[i].k);
        double exact = 2.0 * (std::atan(0.7 / c) + std::atan(0.3 / c)) / c;
        std::printf("%2d %.6f %.6f\n", i, out[i], exact);
    }
}
