#include <cstdio>
#include <cuda_runtime.h>

__global__ void dot(const float *a, const float *b, int n, float *partial) {
    int i = threadIdx.x;
    if (i < n) atomicAdd(partial, a[i] * b[i]);
}

__global__ void normalise(const float *m, const float *v, float *partial, float *out, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    partial[r] = 0.0f;
    dot<<<1, 32>>>(m + r * cols, v, cols, &partial[r]);
    cudaDeviceSynchronize();
    out[r] = partial[r] / cols;
}

int main() {
    const int rows = 20, cols = 24;
    float *m, *v, *p, *o;
    cudaMallocManaged(&m, rows * cols * sizeof(float));
    cudaMallocManaged(&v, cols * sizeof(float));
    cudaMallocManaged(&p, rows * sizeof(float));
    cudaMallocManaged(&o, rows * sizeof(float));
    for (int i = 0; i < rows * cols; i++) m[i] = i % 5;
    for (int i = 0; i < cols; i++) v[i] = i % 3;
    normalise<<<1, 32>>>(m, v, p, o, rows, cols);
    cudaDeviceSynchronize();
    double s = 0;
    for (int i = 0; i < rows; i++) s += o[i] * (i + 1);
    printf("%.3f\n", s);
}
