// Softmax over ragged rows. One thread per row launches the reductions of its row, waits
// for each and uses its result.
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

namespace ragged {

const int kThreads = 128;

template <bool Exp>
__global__ void rowReduce(const float *x, int n, float shift, float *result)
{
    __shared__ float s[kThreads];
    float acc = Exp ? 0.f : -FLT_MAX;
    for (int i = threadIdx.x; i < n; i += kThreads)
        acc = Exp ? acc + expf(x[i] - shift) : fmaxf(acc, x[i]);
    s[threadIdx.x] = acc;
    __syncthreads();
    for (int h = kThreads / 2; h; h /= 2) {
        if (threadIdx.x < h)
            s[threadIdx.x] = Exp ? s[threadIdx.x] + s[threadIdx.x + h] : fmaxf(s[threadIdx.x], s[threadIdx.x + h]);
        __syncthreads();
    }
    if (threadIdx.x == 0) *result = s[0];
}

__global__ void rowScale(const float *x, float *y, int n, float shift, float inv)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = expf(x[i] - shift) * inv;
}

__global__ void softmax(const float *x, float *y, const int *offsets, int rows, float *scratch)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float *in = x + offsets[r];
    float *out = y + offsets[r];
    int n = offsets[r + 1] - offsets[r];
    if (n == 0) return;
    if (n < 32) {
        float m = -FLT_MAX, sum = 0;
        for (int i = 0; i < n; i++) m = fmaxf(m, in[i]);
        for (int i = 0; i < n; i++) sum += expf(in[i] - m);
        for (int i = 0; i < n; i++) out[i] = expf(in[i] - m) / sum;
        return;
    }
    cudaStream_t st;
    cudaStreamCreateWithFlags(&st, cudaStreamNonBlocking);
    rowReduce<false><<<1, kThreads, 0, st>>>(in, n, 0.f, &scratch[r]);
    cudaDeviceSynchronize();
    float m = scratch[r];
    rowReduce<true><<<1, kThreads, 0, st>>>(in, n, m, &scratch[r]);
    cudaDeviceSynchronize();
    float sum = scratch[r];
    rowScale<<<(n + kThreads - 1) / kThreads, kThreads, 0, st>>>(in, out, n, m, 1.f / sum);
    cudaStreamDestroy(st);
}

} // namespace ragged

#define CUDA(call) do { cudaError_t e = (call); if (e != cudaSuccess) { std::printf("%s: %s\n", #call, cudaGetErrorString(e)); return 1; } } while (0)

int main()
{
    const int rows = 500;
    std::vector<int> off(1, 0);
    unsigned s = 1;
    auto rnd = [&s] { s = s * 22695477u + 1u; return s >> 16; };
    for (int r = 0; r < rows; r++) off.push_back(off.back() + (r % 5 == 0 ? 200 + rnd() % 1500 : rnd() % 30));
    int n = off.back();
    std::vector<float> x(n), y(n);
    for (auto &v : x) v = (rnd() % 2000) / 100.f - 10.f;
    float *dx, *dy, *dscratch; int *doff;
    CUDA(cudaMalloc(&dx, n * sizeof(float)));
    CUDA(cudaMalloc(&dy, n * sizeof(float)));
    CUDA(cudaMalloc(&dscratch, rows * sizeof(float)));
    CUDA(cudaMalloc(&doff, off.size() * sizeof(int)));
    CUDA(cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(doff, off.data(), off.size() * sizeof(int), cudaMemcpyHostToDevice));
    ragged::softmax<<<(rows + 31) / 32, 32>>>(dx, dy, doff, rows, dscratch);
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemcpy(y.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int r = 0; r < rows; r++) {
        double m = -1e30, sum = 0;
        for (int i = off[r]; i < off[r + 1]; i++) m = std::fmax(m, x[i]);
        for (int i = off[r]; i < off[r + 1]; i++) sum += std::exp(x[i] - m);
        for (int i = off[r]; i < off[r + 1]; i++) {
            double want = std::exp(x[i] - m) / sum;
            if (std::fabs(want - y[i]) > 1e-5) { std::printf("row %d: %g, expected %g\n", r, y[i], want); return 1; }
        }
    }
    std::printf("OK\n");
    return 0;
}
