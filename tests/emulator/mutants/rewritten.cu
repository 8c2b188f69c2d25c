// A program that rewrites are applied to, and whose results are then spoiled.
#include <cstdio>

#include <cuda_runtime.h>

__device__ int total;

__global__ void child(int* out, int scale, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    out[begin + i] += scale * (i + 1) + count * 1000 + gridDim.x;
    atomicAdd(&total, scale);
}

__global__ void parent(const int* row, int* out, int scale, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count == 0) return;
    if (count > 2)
        child<<<(count + 3) / 4, 4>>>(out, scale, begin, count);
    else
        for (int i = 0; i < count; ++i) out[begin + i] = -1;
}

int main() {
    const int n = 90;
    int row[n + 1] = {0};
    for (int v = 0; v < n; ++v) row[v + 1] = row[v] + v * 7 % 13;
    int *row_there, *out[2];
    cudaMalloc(&row_there, sizeof row);
    cudaMemcpy(row_there, row, sizeof row, cudaMemcpyHostToDevice);
    cudaStream_t streams[2];
    for (int s = 0; s < 2; ++s) {
        cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking);
        cudaMalloc(&out[s], row[n] * sizeof(int));
        cudaMemsetAsync(out[s], 0, row[n] * sizeof(int), streams[s]);
    }
    for (int repeat = 0; repeat < 3; ++repeat)
        for (int s = 0; s < 2; ++s) parent<<<(n + 31) / 32, 32, 0, streams[s]>>>(row_there, out[s], s + 1, n);
    cudaDeviceSynchronize();
    bool right = cudaGetLastError() == cudaSuccess;
    int sum = 0;
    for (int s = 0; s < 2; ++s) {
        static int got[2000];
        cudaMemcpy(got, out[s], row[n] * sizeof(int), cudaMemcpyDeviceToHost);
        for (int v = 0; v < n; ++v) {
            int count = row[v + 1] - row[v];
            if (count > 2) sum += 3 * count * (s + 1);
            for (int i = 0; i < count; ++i) {
                int one = (s + 1) * (i + 1) + count * 1000 + (count + 3) / 4;
                right = right && got[row[v] + i] == (count > 2 ? 3 * one : -1);
            }
        }
    }
    int found = 0;
    cudaMemcpyFromSymbol(&found, total, sizeof found);
    right = right && found == sum;
    std::printf("%s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
}
