// LSD radix sort issued entirely by one device thread: 8 passes of
// count -> scan -> scatter, in the order of the NULL stream.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

using Key = unsigned int;

constexpr int kDigitBits = 4;
constexpr int kRadix = 1 << kDigitBits;
constexpr int kBlockKeys = 128;

struct PassBuffers {
  Key* keys[2];
  int* payload[2];
  int* counts;  // [kRadix][numBlocks]
};

template <typename K>
__device__ __forceinline__ int digit(K key, int shift) {
  return int((key >> shift) & (kRadix - 1));
}

__global__ void radixCount(const Key* keys, int n, int shift, int* counts) {
  __shared__ int hist[kRadix];
  if (threadIdx.x < kRadix) hist[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * kBlockKeys + threadIdx.x;
  if (i < n) atomicAdd(&hist[digit(keys[i], shift)], 1);
  __syncthreads();
  if (threadIdx.x < kRadix) counts[threadIdx.x * gridDim.x + blockIdx.x] = hist[threadIdx.x];
}

// exclusive scan by one block; n is small
__global__ void radixScan(int* counts, int n) {
  __shared__ int s[256];
  __shared__ int carry;
  if (threadIdx.x == 0) carry = 0;
  __syncthreads();
  for (int base = 0; base < n; base += 256) {
    int i = base + threadIdx.x;
    int v = i < n ? counts[i] : 0;
    s[threadIdx.x] = v;
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
      int t = threadIdx.x >= d ? s[threadIdx.x - d] : 0;
      __syncthreads();
      s[threadIdx.x] += t;
      __syncthreads();
    }
    if (i < n) counts[i] = carry + s[threadIdx.x] - v;
    __syncthreads();
    if (threadIdx.x == 0) carry += s[255];
    __syncthreads();
  }
}

__global__ void radixScatter(const Key* keys, const int* payload, int n, int shift, const int* offsets,
                             Key* outKeys, int* outPayload) {
  __shared__ int d[kBlockKeys];
  int i = blockIdx.x * kBlockKeys + threadIdx.x;
  d[threadIdx.x] = i < n ? digit(keys[i], shift) : -1;
  __syncthreads();
  if (i >= n) return;
  int mine = d[threadIdx.x], before = 0;
  for (int j = 0; j < threadIdx.x; ++j) before += d[j] == mine;  // stable
  int pos = offsets[mine * gridDim.x + blockIdx.x] + before;
  outKeys[pos] = keys[i];
  outPayload[pos] = payload[i];
}

__global__ void radixSort(PassBuffers b, int n) {
  const int blocks = (n + kBlockKeys - 1) / kBlockKeys;
  int src = 0;
  for (int shift = 0; shift < 32; shift += kDigitBits) {
    radixCount<<<blocks, kBlockKeys>>>(b.keys[src], n, shift, b.counts);
    radixScan<<<1, 256>>>(b.counts, kRadix * blocks);
    radixScatter<<<blocks, kBlockKeys>>>(b.keys[src], b.payload[src], n, shift, b.counts,
                                         b.keys[src ^ 1], b.payload[src ^ 1]);
    src ^= 1;
  }
}

int main() {
  const int n = 5000;
  std::mt19937 rng(99);
  std::vector<Key> keys(n);
  for (auto& k : keys) k = rng() % 3 ? rng() : rng() % 100;
  std::vector<int> ids(n), order(n);
  std::iota(ids.begin(), ids.end(), 0);

  PassBuffers b;
  for (int i = 0; i < 2; ++i) {
    cudaMalloc(&b.keys[i], n * sizeof(Key));
    cudaMalloc(&b.payload[i], n * sizeof(int));
  }
  cudaMalloc(&b.counts, kRadix * ((n + kBlockKeys - 1) / kBlockKeys) * sizeof(int));
  cudaMemcpy(b.keys[0], keys.data(), n * sizeof(Key), cudaMemcpyHostToDevice);
  cudaMemcpy(b.payload[0], ids.data(), n * sizeof(int), cudaMemcpyHostToDevice);

  radixSort<<<1, 1>>>(b, n);
  cudaError_t e = cudaMemcpy(order.data(), b.payload[0], n * sizeof(int), cudaMemcpyDeviceToHost);
  if (e != cudaSuccess) { std::printf("%s\n", cudaGetErrorString(e)); return 1; }

  std::stable_sort(ids.begin(), ids.end(), [&](int x, int y) { return keys[x] < keys[y]; });
  unsigned long long sum = 0;
  for (int i = 0; i < n; ++i) sum = sum * 31 + unsigned(order[i]) + keys[order[i]];
  std::printf("radix checksum %llu %s\n", sum, order == ids ? "PASS" : "FAIL");
  return order != ids;
}
