// Sparse matrix times vector; a block of the child reduces what its threads have added up.
#include <cstdio>
#include <cuda_runtime.h>
#define THREADS 64

__device__ float reduce_block(float v) {
    __shared__ float buffer[THREADS];
    buffer[threadIdx.x] = v;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) buffer[threadIdx.x] += buffer[threadIdx.x + s];
        __syncthreads();
    }
    return buffer[0];
}

__global__ void row_product(const int *__restrict__ col, const float *__restrict__ val, const float *__restrict__ x, float *y, int row,
                            int begin, int n) {
    float sum = 0.0f;
    for (int k = threadIdx.x + blockIdx.x * blockDim.x; k < n; k += gridDim.x * blockDim.x) sum += val[begin + k] * x[col[begin + k]];
    sum = reduce_block(sum);
    if (threadIdx.x == 0) atomicAdd(&y[row], sum);
}

__global__ void spmv(const int *__restrict__ row, const int *__restrict__ col, const float *__restrict__ val,
                     const float *__restrict__ x, float *y, int rows) {
    int r = threadIdx.x + blockIdx.x * blockDim.x;
    if (r < rows) {
        int n = row[r + 1] - row[r];
        if (n > THREADS / 8)
            row_product<<<(n + 4 * THREADS - 1) / (4 * THREADS), THREADS>>>(col, val, x, y, r, row[r], n);
        else
            for (int k = 0; k < n; ++k) y[r] += val[row[r] + k] * x[col[row[r] + k]];
    }
}

int main() {
    const int rows = 40;
    int *row, *col;
    float *val, *x, *y;
    cudaMallocManaged(&row, (rows + 1) * sizeof(int));
    cudaMallocManaged(&col, rows * 24 * sizeof(int));
    cudaMallocManaged(&val, rows * 24 * sizeof(float));
    cudaMallocManaged(&x, rows * sizeof(float));
    cudaMallocManaged(&y, rows * sizeof(float));
    int e = 0;
    for (int r = 0; r < rows; ++r) {
        row[r] = e;
        for (int k = 0; k < (r * 5) % 23; ++k) { col[e] = (r + k * 3) % rows; val[e++] = 1 + (k & 3); }
        x[r] = r % 5;
        y[r] = 0;
    }
    row[rows] = e;
    spmv<<<2, 32>>>(row, col, val, x, y, rows);
    cudaDeviceSynchronize();
    for (int r = 0; r < rows; ++r) printf("%g ", y[r]);
    printf("\n");
}
