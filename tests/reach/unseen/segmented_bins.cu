#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

namespace {

template <typename KeyType, int N>
__global__ void sort_small(const unsigned *bins, unsigned n_segs, KeyType *keys, const int64_t *seg_offsets) {
  const unsigned seg = blockIdx.x * blockDim.x + threadIdx.x;
  if (seg >= n_segs)
    return;
  const auto offset = seg_offsets[bins[seg]];
  const auto size = seg_offsets[bins[seg] + 1] - offset;
  KeyType local[N];
#pragma unroll
  for (int i = 0; i < N; i++)
    local[i] = i < size ? keys[offset + i] : KeyType(0x7fffffff);
  for (int i = 0; i < N; i++)
    for (int j = 0; j + 1 < N - i; j++)
      if (local[j] > local[j + 1]) {
        KeyType t = local[j];
        local[j] = local[j + 1];
        local[j + 1] = t;
      }
  for (int i = 0; i < N; i++)
    if (i < size)
      keys[offset + i] = local[i];
}

template <int N_BINS> __device__ int get_bin(int64_t size) {
  return size <= 2 ? 0 : size <= 4 ? 1 : 2;
}

template <typename KeyType>
__global__ void dispatch_segments(int n_segments, const int64_t *seg_offsets, unsigned *bins, KeyType *keys) {
  __shared__ unsigned bins_smem[4];
  if (threadIdx.x < 4)
    bins_smem[threadIdx.x] = 0;
  __syncthreads();
  for (unsigned i = threadIdx.x; i < n_segments; i += blockDim.x)
    atomicAdd(&bins_smem[get_bin<3>(seg_offsets[i + 1] - seg_offsets[i]) + 1], 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned sum = 0;
    for (int b = 0; b < 4; b++) {
      sum += bins_smem[b];
      bins_smem[b] = sum;
    }
    unsigned at[3] = {bins_smem[0], bins_smem[1], bins_smem[2]};
    for (int i = 0; i < n_segments; i++)
      bins[at[get_bin<3>(seg_offsets[i + 1] - seg_offsets[i])]++] = i;
  }
  __syncthreads();

  // Launch kernels
  if (threadIdx.x == 0) {
    unsigned n_segs = bins_smem[1] - bins_smem[0];
    if (n_segs > 0) {
      sort_small<KeyType, 2><<<dim3((n_segs + 31) / 32), dim3(32), 0, cudaStreamFireAndForget>>>(
        bins + bins_smem[0], n_segs, keys, seg_offsets);
    }
    n_segs = bins_smem[2] - bins_smem[1];
    if (n_segs > 0) {
      sort_small<KeyType, 4><<<dim3((n_segs + 31) / 32), dim3(32), 0, cudaStreamFireAndForget>>>(
        bins + bins_smem[1], n_segs, keys, seg_offsets);
    }
    n_segs = bins_smem[3] - bins_smem[2];
    if (n_segs > 0) {
      sort_small<KeyType, 8><<<dim3((n_segs + 31) / 32), dim3(32), 0, cudaStreamFireAndForget>>>(
        bins + bins_smem[2], n_segs, keys, seg_offsets);
    }
  }
}

} // namespace

int main() {
  const int n = 70;
  int64_t *offsets;
  unsigned *bins;
  int *keys;
  cudaMallocManaged(&offsets, (n + 1) * sizeof(int64_t));
  cudaMallocManaged(&bins, n * sizeof(unsigned));
  offsets[0] = 0;
  for (int i = 0; i < n; i++)
    offsets[i + 1] = offsets[i] + 1 + (i * 5) % 8;
  cudaMallocManaged(&keys, offsets[n] * sizeof(int));
  for (int i = 0; i < offsets[n]; i++)
    keys[i] = (i * 7919) % 101;
  dispatch_segments<int><<<1, 64>>>(n, offsets, bins, keys);
  cudaDeviceSynchronize();
  long sum = 0;
  for (int i = 0; i < offsets[n]; i++)
    sum = (sum * 3 + keys[i]) % 1000003;
  printf("%ld\n", sum);
}
