#include <cstdio>
#include <cuda_runtime.h>

__global__ void row_sum_child(const float* row_in, float* row_out, int N) {
    extern __shared__ float sdata[];
    int tid = threadIdx.x;
    float sum = 0.0f;
    for (int i = tid; i < N; i += blockDim.x) sum += row_in[i];
    sdata[tid] = sum;
    __syncthreads();

    for (int offset = blockDim.x / 2; offset > 0; offset /= 2) {
        if (tid < offset) sdata[tid] += sdata[tid + offset];
        __syncthreads();
    }
    if (tid == 0) *row_out = sdata[0];
}

// one block per row
__global__ void row_sum_parent(const float* A, float* sums, int rows, int cols) {
    int row = blockIdx.x;
    if (row >= rows) return;
    row_sum_child<<<1, 64, 64 * sizeof(float)>>>(A + row * cols, sums + row, cols);
}

int main() {
    const int rows = 30, cols = 100;
    float *d_A, *d_sums;
    cudaMallocManaged(&d_A, rows * cols * sizeof(float));
    cudaMallocManaged(&d_sums, rows * sizeof(float));
    for (int i = 0; i < rows * cols; i++) d_A[i] = (i * 7) % 9;
    row_sum_parent<<<rows, 1>>>(d_A, d_sums, rows, cols);
    cudaDeviceSynchronize();
    double s = 0;
    for (int i = 0; i < rows; i++) s += d_sums[i] * (i + 1);
    printf("%.1f\n", s);
    return 0;
}
