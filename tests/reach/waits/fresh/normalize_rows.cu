// Normalise the rows of a ragged matrix: every thread starts a reduction for its
// row, waits for it and starts the scaling.
#include <stdio.h>
#include <stdlib.h>

#define BS 64

__global__ void sumRow(const int *x, int len, int *sum)
{
    __shared__ int s[BS];
    int a = 0;
    for (int i = threadIdx.x; i < len; i += BS) a += x[i];
    s[threadIdx.x] = a;
    __syncthreads();
    for (int k = BS / 2; k > 0; k /= 2) {
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) *sum = s[0];
}

__global__ void scaleRow(const int *x, float *y, int len, float f)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < len) y[i] = x[i] * f;
}

__global__ void normalize(const int *start, const int *x, float *y, volatile int *sums, int rows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    int first = start[r], len = start[r + 1] - first;
    if (len == 0) return;
    sumRow<<<1, BS>>>(x + first, len, (int *)&sums[r]);
    cudaDeviceSynchronize();
    int s = sums[r];
    if (s != 0)
        scaleRow<<<(len + BS - 1) / BS, BS>>>(x + first, y + first, len, 1.0f / s);
}

int main()
{
    const int rows = 500;
    int start[rows + 1], n = 0;
    for (int r = 0; r < rows; r++) { start[r] = n; n += (r * 53) % 400; }
    start[rows] = n;
    int *x = (int *)malloc(n * sizeof(int));
    float *y = (float *)malloc(n * sizeof(float));
    for (int i = 0; i < n; i++) x[i] = (i * 7919) % 100;

    int *ds, *dx, *dsum; float *dy;
    cudaMalloc(&ds, sizeof start);
    cudaMalloc(&dx, n * sizeof(int));
    cudaMalloc(&dsum, rows * sizeof(int));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(ds, start, sizeof start, cudaMemcpyHostToDevice);
    cudaMemcpy(dx, x, n * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemset(dy, 0, n * sizeof(float));
    normalize<<<(rows + 31) / 32, 32>>>(ds, dx, dy, dsum, rows);
    if (cudaDeviceSynchronize() != cudaSuccess) { printf("%s\n", cudaGetErrorString(cudaGetLastError())); return 1; }
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);

    int bad = 0;
    for (int r = 0; r < rows; r++) {
        int s = 0;
        for (int i = start[r]; i < start[r + 1]; i++) s += x[i];
        for (int i = start[r]; i < start[r + 1]; i++) {
            float want = s ? x[i] * (1.0f / s) : 0.0f, d = y[i] - want;
            if (d > 1e-6f || d < -1e-6f) bad++;
        }
    }
    if (bad) printf("%d values wrong\n", bad);
    else printf("OK\n");
    return bad != 0;
}
