// Conjugate gradients on the device: a single thread plays the CPU.
#include <cuda_runtime.h>
#include <cmath>
#include <iostream>

namespace {

const int kThreads = 128;

struct Laplace1D {
  int n;
  double shift;
};

__global__ void applyKernel(Laplace1D A, const double* x, double* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= A.n) return;
  double v = (2.0 + A.shift) * x[i];
  if (i > 0) v -= x[i - 1];
  if (i + 1 < A.n) v -= x[i + 1];
  y[i] = v;
}

__global__ void axpyKernel(int n, double a, const double* x, double b, double* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + b * y[i];
}

__global__ void dotKernel(int n, const double* x, const double* y, double* partial) {
  __shared__ double s[kThreads];
  int i = blockIdx.x * kThreads + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] * y[i] : 0.0;
  __syncthreads();
  for (int k = kThreads / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = s[0];
}

__device__ double dot(int n, const double* x, const double* y, double* partial) {
  const int blocks = (n + kThreads - 1) / kThreads;
  dotKernel<<<blocks, kThreads>>>(n, x, y, partial);
  cudaDeviceSynchronize();
  double sum = 0;
  for (int b = 0; b < blocks; ++b) sum += partial[b];
  return sum;
}

__device__ void axpy(int n, double a, const double* x, double b, double* y) {
  axpyKernel<<<(n + kThreads - 1) / kThreads, kThreads>>>(n, a, x, b, y);
}

__device__ void apply(Laplace1D A, const double* x, double* y) {
  applyKernel<<<(A.n + kThreads - 1) / kThreads, kThreads>>>(A, x, y);
}

__global__ void cg(Laplace1D A, double* x, double* r, double* p, double* Ap, double* partial,
                   double tol, int maxIter, int* iterations) {
  const int n = A.n;
  // x = 0, r = p = b on entry
  double rr = dot(n, r, r, partial);
  const double stop = tol * tol * rr;
  int it = 0;
  while (it < maxIter && rr > stop) {
    apply(A, p, Ap);
    const double alpha = rr / dot(n, p, Ap, partial);
    axpy(n, alpha, p, 1.0, x);
    axpy(n, -alpha, Ap, 1.0, r);
    const double rrNew = dot(n, r, r, partial);
    axpy(n, 1.0, r, rrNew / rr, p);
    rr = rrNew;
    ++it;
  }
  *iterations = it;
}

}  // namespace

int main() {
  const int n = 1000;
  Laplace1D A{n, 0.05};
  double h[n], *v[4], *partial;
  int *dIt, it;
  for (int i = 0; i < n; ++i) h[i] = (i % 10) - 4.5;
  for (auto& p : v) { cudaMalloc(&p, n * sizeof(double)); cudaMemset(p, 0, n * sizeof(double)); }
  cudaMalloc(&partial, n * sizeof(double));
  cudaMalloc(&dIt, sizeof(int));
  cudaMemcpy(v[1], h, sizeof h, cudaMemcpyHostToDevice);
  cudaMemcpy(v[2], h, sizeof h, cudaMemcpyHostToDevice);
  cg<<<1, 1>>>(A, v[0], v[1], v[2], v[3], partial, 1e-10, 500, dIt);
  double x[n];
  cudaMemcpy(x, v[0], sizeof x, cudaMemcpyDeviceToHost);
  cudaMemcpy(&it, dIt, sizeof it, cudaMemcpyDeviceToHost);
  double worst = 0;
  for (int i = 0; i < n; ++i) {
    double y = (2.0 + A.shift) * x[i] - (i ? x[i - 1] : 0) - (i + 1 < n ? x[i + 1] : 0);
    worst = std::fmax(worst, std::fabs(y - h[i]));
  }
  std::cout << "cg " << it << " iterations, residual " << worst << "\n";
}
