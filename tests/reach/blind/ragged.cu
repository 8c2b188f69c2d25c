// Ragged arrays: nested parallel_for written with lambdas inside kernels.
#include <cstdio>
#include <numeric>
#include <vector>

namespace nested {

template <class F>
__global__ void apply_n(int n, F f) {
  int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) f(i);
}

template <class F, class Acc>
__global__ void reduce_n(int n, F f, Acc* out) {
  Acc v = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) v += f(i);
  atomicAdd(out, v);
}

// usable from any thread of any kernel
template <int Block = 64, class F>
__device__ void parallel_for(int n, const F& f) {
  if (n > 0) apply_n<<<(n + Block - 1) / Block, Block>>>(n, f);
}

}  // namespace nested

template <class T>
struct Ragged {
  int lists;
  int* off;
  T* data;
  __host__ __device__ int length(int l) const { return off[l + 1] - off[l]; }
};

// data[l][i] = (l * 1000 + i) xor key
__global__ void generate(Ragged<unsigned> r, unsigned key) {
  int l = blockIdx.x * blockDim.x + threadIdx.x;
  if (l >= r.lists) return;
  unsigned* p = r.data + r.off[l];
  nested::parallel_for(r.length(l), [=](int i) { p[i] = (unsigned(l) * 1000u + unsigned(i)) ^ key; });
}

// out[l][i] = in[l][len - 1 - i] + neighbour
__global__ void reverse_add(Ragged<unsigned> in, Ragged<unsigned> out) {
  for (int l = blockIdx.x * blockDim.x + threadIdx.x; l < in.lists; l += gridDim.x * blockDim.x) {
    const int len = in.length(l);
    const unsigned* a = in.data + in.off[l];
    unsigned* b = out.data + out.off[l];
    nested::parallel_for<32>(len, [a, b, len](int i) {
      int j = len - 1 - i;
      b[i] = a[j] + (j > 0 ? a[j - 1] : 0u);
    });
  }
}

__global__ void totals(Ragged<unsigned> r, unsigned long long* sums) {
  int l = blockIdx.x * blockDim.x + threadIdx.x;
  if (l < r.lists && r.length(l) != 0) {
    const unsigned* p = r.data + r.off[l];
    auto weighted = [p](int i) -> unsigned long long { return (unsigned long long)p[i] * (i % 7 + 1); };
    int width = r.length(l) < 100 ? 32 : 128;
    nested::reduce_n<<<1, width>>>(r.length(l), weighted, sums + l);
  }
}

int main() {
  const int lists = 300;
  std::vector<int> off(lists + 1, 0);
  for (int l = 0; l < lists; ++l) off[l + 1] = off[l] + (l % 17 == 0 ? 400 + l : (l * 37) % 29);
  const int total = off.back();

  int* d_off;
  unsigned *d_a, *d_b;
  unsigned long long* d_sums;
  cudaMalloc(&d_off, off.size() * sizeof(int));
  cudaMalloc(&d_a, total * sizeof(unsigned));
  cudaMalloc(&d_b, total * sizeof(unsigned));
  cudaMalloc(&d_sums, lists * sizeof(unsigned long long));
  cudaMemset(d_sums, 0, lists * sizeof(unsigned long long));
  cudaMemcpy(d_off, off.data(), off.size() * sizeof(int), cudaMemcpyHostToDevice);

  Ragged<unsigned> a{lists, d_off, d_a}, b{lists, d_off, d_b};
  generate<<<3, 100>>>(a, 0x5a5au);
  reverse_add<<<2, 64>>>(a, b);
  totals<<<10, 32>>>(b, d_sums);

  std::vector<unsigned long long> sums(lists);
  cudaError_t e = cudaMemcpy(sums.data(), d_sums, lists * sizeof(unsigned long long), cudaMemcpyDeviceToHost);
  if (e != cudaSuccess) return std::printf("error %d\n", int(e)), 1;

  unsigned long long got = 0, want = 0;
  for (int l = 0; l < lists; ++l) {
    got += sums[l] * (l + 1);
    int len = off[l + 1] - off[l];
    auto val = [&](int i) { return (unsigned(l) * 1000u + unsigned(i)) ^ 0x5a5au; };
    unsigned long long s = 0;
    for (int i = 0; i < len; ++i) {
      int j = len - 1 - i;
      unsigned v = val(j) + (j > 0 ? val(j - 1) : 0u);
      s += (unsigned long long)v * (i % 7 + 1);
    }
    want += s * (l + 1);
  }
  std::printf("ragged %llu %llu\n", got, want);
  return got != want;
}
