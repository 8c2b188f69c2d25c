// y = A x with a child grid for each long row.
#include <cstdio>
#include "spmv_config.h"

template <typename T>
__device__ __forceinline__ T warpSum(T v) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffff, v, offset);
    return v;
}

template <typename T>
__device__ T blockSum(T v) {
    __shared__ T partial[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    v = warpSum(v);
    if (lane == 0) partial[warp] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32 ? partial[lane] : T(0);
    if (warp == 0) v = warpSum(v);
    return v;
}

template <typename T>
__global__ void long_row(const index_t* __restrict__ cols, const T* __restrict__ vals, const T* __restrict__ x, T* y, index_t row,
                         index_t begin, index_t end) {
    T sum = 0;
    for (index_t j = begin + threadIdx.x; j < end; j += blockDim.x) sum += vals[j] * x[cols[j]];
    sum = blockSum(sum);
    if (threadIdx.x == 0) y[row] = sum;
}

template <typename T>
__global__ void spmv(const index_t* __restrict__ rows, const index_t* __restrict__ cols, const T* __restrict__ vals,
                     const T* __restrict__ x, T* y, index_t n) {
    const index_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    const index_t begin = rows[row], end = rows[row + 1];
    if (end - begin > LONG_ROW) {
        long_row<T><<<1, SPMV_THREADS>>>(cols, vals, x, y, row, begin, end);
    } else {
        T sum = 0;
        for (index_t j = begin; j < end; ++j) sum += vals[j] * x[cols[j]];
        y[row] = sum;
    }
}

int main() {
    const int n = 50;
    int *rows, *cols;
    float *vals, *x, *y;
    cudaMallocManaged(&rows, (n + 1) * sizeof(int));
    cudaMallocManaged(&cols, 20 * n * sizeof(int));
    cudaMallocManaged(&vals, 20 * n * sizeof(float));
    cudaMallocManaged(&x, n * sizeof(float));
    cudaMallocManaged(&y, n * sizeof(float));
    int e = 0;
    for (int r = 0; r < n; ++r) {
        rows[r] = e;
        for (int k = 0; k < (r * 3) % 17; ++k) { cols[e] = (r + k) % n; vals[e++] = 1 + k % 3; }
        x[r] = r % 4;
        y[r] = -1;
    }
    rows[n] = e;
    spmv<float><<<(n + 31) / 32, 32>>>(rows, cols, vals, x, y, n);
    cudaDeviceSynchronize();
    for (int r = 0; r < n; ++r) printf("%g ", y[r]);
    printf("\n");
}
