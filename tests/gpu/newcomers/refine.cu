
// Refines every eighth cell, more the larger its error is.

#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

int main() {
    const int n = 1 << 17;
    std::vector<float> coarse(n + 1), error(n), fine(n * 64);
    for (int i = 0; i <= n; ++i) coarse[i] = float(i % 101);
    for (int i = 0; i < n; ++i) error[i] = i % 8 == 3 ? 0.02f + (i % 50) * 0.02f : 0;
    float *d_coarse, *d_error, *d_fine;
    cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 65536);
    cudaMalloc(&d_coarse, coarse.size() * sizeof(float));
    cudaMalloc(&d_error, n * sizeof(float));
    cudaMalloc(&d_fine, fine.size() * sizeof(float));
    cudaMemcpy(d_coarse, coarse.data(), coarse.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(d_error, error.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemset(d_fine, 0, fine.size() * sizeof(float));
    step(d_coarse, d_error, d_fine, n);
    cudaMemcpy(fine.data(), d_fine, fine.size() * sizeof(float), cudaMemcpyDeviceToHost);
    double sum = 0;
    for (float one : fine) sum += one;
    std::printf("%.6f\n", sum);
    return cudaGetLastError() == cudaSuccess && sum > 0 ? 0 : 1;
}
