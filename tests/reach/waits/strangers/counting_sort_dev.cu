#include <stdio.h>
#include <stdlib.h>

#define BINS 256
#define BLOCK 128

__global__ void histogram_k(int *histogram, const int *input, int length) {
  int threadx = blockIdx.x * blockDim.x + threadIdx.x;
  if (length <= threadx) {
    return;
  }
  atomicAdd(&histogram[input[threadx]], 1);
}

__global__ void bins_to_inclusive(int *histogram) {
  __shared__ int s[BINS];
  int t = threadIdx.x;
  s[t] = histogram[t];
  __syncthreads();
  for (int d = 1; d < BINS; d *= 2) {
    int v = t >= d ? s[t - d] : 0;
    __syncthreads();
    s[t] += v;
    __syncthreads();
  }
  histogram[t] = s[t];
}

__global__ void fill_run(int *sorted, int start, int count, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sorted[start + i] = value;
}

// one thread per bin, each one launches the grid that writes its run
__global__ void inclusive_to_sorted(const int *histogram, int *sorted) {
  int threadx = threadIdx.x;
  int start = threadx ? histogram[threadx - 1] : 0;
  int count = histogram[threadx] - start;
  if (count > 0) {
    fill_run<<<(count + BLOCK - 1) / BLOCK, BLOCK>>>(sorted, start, count, threadx);
  }
}

__global__ void check_k(const int *sorted, int length, int *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 1 < length && sorted[i] > sorted[i + 1]) atomicAdd(errors, 1);
}

__global__ void counting_sort(int *histogram, const int *input, int *sorted, int length, int *errors) {
  if (threadIdx.x == 0) {
    histogram_k<<<(length + BLOCK - 1) / BLOCK, BLOCK>>>(histogram, input, length);
    cudaDeviceSynchronize();
    bins_to_inclusive<<<1, BINS>>>(histogram);
    cudaDeviceSynchronize();
    inclusive_to_sorted<<<1, BINS>>>(histogram, sorted);
    cudaDeviceSynchronize();
    check_k<<<(length + BLOCK - 1) / BLOCK, BLOCK>>>(sorted, length, errors);
  }
}

int main() {
  int n = 50000;
  int *h = (int *)malloc(n * sizeof(int));
  unsigned r = 3;
  for (int i = 0; i < n; i++) { r = r * 69069u + 1u; int v = (r >> 16) % BINS; h[i] = v * v / BINS; }
  int *d_in, *d_out, *d_hist, *d_err, err;
  cudaMalloc((void **)&d_in, n * sizeof(int));
  cudaMalloc((void **)&d_out, n * sizeof(int));
  cudaMalloc((void **)&d_hist, BINS * sizeof(int));
  cudaMalloc((void **)&d_err, sizeof(int));
  cudaMemset(d_hist, 0, BINS * sizeof(int));
  cudaMemset(d_err, 0, sizeof(int));
  cudaMemcpy(d_in, h, n * sizeof(int), cudaMemcpyHostToDevice);
  counting_sort<<<1, 32>>>(d_hist, d_in, d_out, n, d_err);
  cudaMemcpy(&err, d_err, sizeof(int), cudaMemcpyDeviceToHost);
  cudaMemcpy(h, d_out, n * sizeof(int), cudaMemcpyDeviceToHost);
  long long s = 0;
  for (int i = 0; i < n; i++) s += (long long)h[i] * (i % 61);
  printf("errors %d checksum %lld\n", err, s);
  return 0;
}
