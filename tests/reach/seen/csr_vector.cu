// y = A x: a row with many entries gets a block of its own.
#include <cstdio>
#include <cuda_runtime.h>

#define FULL_MASK 0xffffffff

template <typename T> __device__ __forceinline__ T warpReduceSum(T val) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2)
    val += __shfl_down_sync(FULL_MASK, val, offset);
  return val;
}

template <typename T> __device__ __forceinline__ T blockReduceSum(T val) {
  static __shared__ T shared[32];
  int lane = threadIdx.x % warpSize;
  int wid = threadIdx.x / warpSize;
  val = warpReduceSum(val);
  if (lane == 0) shared[wid] = val;
  __syncthreads();
  val = (threadIdx.x < blockDim.x / warpSize) ? shared[lane] : 0;
  if (wid == 0) val = warpReduceSum(val);
  return val;
}

template <typename IndexType, typename ValueType>
__global__ void csr_row_kernel(IndexType row, IndexType begin, IndexType end, const IndexType *__restrict__ cols,
                               const ValueType *__restrict__ vals, const ValueType *__restrict__ x, ValueType *y) {
  ValueType sum = 0;
  for (IndexType i = begin + threadIdx.x; i < end; i += blockDim.x) {
    sum += vals[i] * x[cols[i]];
  }
  sum = blockReduceSum<ValueType>(sum);
  if (threadIdx.x == 0) y[row] = sum;
}

template <typename IndexType, typename ValueType>
__global__ void csr_kernel(IndexType nrows, const IndexType *__restrict__ rowptr, const IndexType *__restrict__ cols,
                           const ValueType *__restrict__ vals, const ValueType *__restrict__ x, ValueType *y, IndexType limit) {
  for (IndexType row = blockIdx.x * blockDim.x + threadIdx.x; row < nrows; row += gridDim.x * blockDim.x) {
    const IndexType begin = rowptr[row], end = rowptr[row + 1];
    if (end - begin > limit) {
      csr_row_kernel<IndexType, ValueType><<<1, 64>>>(row, begin, end, cols, vals, x, y);
      continue;
    }
    ValueType sum = 0;
    for (IndexType i = begin; i < end; i++) sum += vals[i] * x[cols[i]];
    y[row] = sum;
  }
}

int main() {
  const int n = 50;
  int *rowptr, *cols;
  float *vals, *x, *y;
  cudaMallocManaged(&rowptr, (n + 1) * sizeof(int));
  rowptr[0] = 0;
  for (int i = 0; i < n; i++) rowptr[i + 1] = rowptr[i] + (i * 11) % 37;
  cudaMallocManaged(&cols, rowptr[n] * sizeof(int));
  cudaMallocManaged(&vals, rowptr[n] * sizeof(float));
  cudaMallocManaged(&x, n * sizeof(float));
  cudaMallocManaged(&y, n * sizeof(float));
  for (int i = 0; i < rowptr[n]; i++) {
    cols[i] = (i * 13) % n;
    vals[i] = i % 4;
  }
  for (int i = 0; i < n; i++) x[i] = i % 6;
  csr_kernel<int, float><<<2, 16>>>(n, rowptr, cols, vals, x, y, 10);
  cudaDeviceSynchronize();
  double s = 0;
  for (int i = 0; i < n; i++) s += y[i] * (i % 7 + 1);
  printf("%.1f\n", s);
}
