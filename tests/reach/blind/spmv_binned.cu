// y = A * x over an integer ring, rows binned by length on the fly.
#include <cstdint>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

namespace sparse {

template <typename Index, typename Value>
struct CsrView {
  Index rows;
  const Index* __restrict__ offsets;
  const Index* __restrict__ columns;
  const Value* __restrict__ values;
};

template <typename Value>
__device__ __forceinline__ void accumulate(Value* dst, Value v) {
  static_assert(sizeof(Value) == 8, "64 bit accumulators only");
  atomicAdd(reinterpret_cast<unsigned long long*>(dst), static_cast<unsigned long long>(v));
}

// one warp walks one medium row
template <typename Index, typename Value>
__global__ void row_by_warp(CsrView<Index, Value> A, Index row, const Value* x, Value* y) {
  Value part = 0;
  for (Index k = A.offsets[row] + threadIdx.x; k < A.offsets[row + 1]; k += warpSize)
    part += A.values[k] * x[A.columns[k]];
  for (int o = 16; o > 0; o >>= 1) part += __shfl_down_sync(0xffffffffu, part, o);
  if (threadIdx.x == 0) y[row] = part;
}

// many blocks share one long row
template <typename Index, typename Value>
__global__ void row_by_grid(const Index* cols, const Value* vals, Index nnz, const Value* x, Value* out) {
  Index k = static_cast<Index>(blockIdx.x) * static_cast<Index>(blockDim.x) + static_cast<Index>(threadIdx.x);
  if (k < nnz) accumulate(out, vals[k] * x[cols[k]]);
}

template <typename Index, typename Value>
__global__ void spmv(CsrView<Index, Value> A, const Value* x, Value* y) {
  const Index row = static_cast<Index>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= A.rows) return;
  const Index lo = A.offsets[row];
  const Index len = A.offsets[row + 1] - lo;

  if (len <= 8) {
    Value s = 0;
    for (Index k = lo; k < lo + len; ++k) s += A.values[k] * x[A.columns[k]];
    y[row] = s;
  } else if (len <= 96) {
    row_by_warp<<<1, 32>>>(A, row, x, y);
  } else {
    const unsigned threads = len > 256 ? 128u : 64u;
    y[row] = 0;
    row_by_grid<<<(len + threads - 1) / threads, threads>>>(A.columns + lo, A.values + lo, len, x, y + row);
  }
}

}  // namespace sparse

template <typename T>
T* upload(const std::vector<T>& h) {
  T* d = nullptr;
  cudaMalloc(&d, h.size() * sizeof(T));
  cudaMemcpy(d, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice);
  return d;
}

int main() {
  using Index = int;
  using Value = std::int64_t;
  const Index n = 900;
  std::vector<Index> offs{0}, cols;
  std::vector<Value> vals, x(n);
  std::uint32_t s = 99;
  auto next = [&s] { s ^= s << 13; s ^= s >> 17; s ^= s << 5; return s; };
  for (Index r = 0; r < n; ++r) {
    Index len = r % 41 == 0 ? 150 + next() % 400 : r % 7 == 0 ? 9 + next() % 80 : next() % 9;
    for (Index k = 0; k < len; ++k) {
      cols.push_back(next() % n);
      vals.push_back(static_cast<Value>(next() % 201) - 100);
    }
    offs.push_back(static_cast<Index>(cols.size()));
    x[r] = static_cast<Value>(next() % 1000) - 500;
  }

  sparse::CsrView<Index, Value> A{n, upload(offs), upload(cols), upload(vals)};
  Value* dx = upload(x);
  Value* dy = upload(std::vector<Value>(n, -1));
  sparse::spmv<<<(n + 127) / 128, 128>>>(A, dx, dy);
  std::vector<Value> y(n);
  if (cudaMemcpy(y.data(), dy, n * sizeof(Value), cudaMemcpyDeviceToHost) != cudaSuccess) {
    std::puts(cudaGetErrorString(cudaGetLastError()));
    return 1;
  }

  Value check = 0;
  int wrong = 0;
  for (Index r = 0; r < n; ++r) {
    Value ref = 0;
    for (Index k = offs[r]; k < offs[r + 1]; ++k) ref += vals[k] * x[cols[k]];
    wrong += ref != y[r];
    check = check * 31 + y[r];
    check %= 1000000007;
  }
  std::printf("spmv nnz=%zu checksum=%lld wrong=%d\n", cols.size(), static_cast<long long>(check), wrong);
  return wrong != 0;
}
