// Device-side errors are printed with the thread that saw them.
#include <cstdio>
#include <cassert>
#include <cuda_runtime.h>

#define CUDA_DEV_CHECK(call)                                                                                       \
    do {                                                                                                         \
        cudaError_t err__ = (call);                                                                              \
        if (err__ != cudaSuccess) {                                                                              \
            printf("%s:%d block %d thread %d: %d\n", __FILE__, __LINE__, blockIdx.x, threadIdx.x, (int)err__);   \
        }                                                                                                        \
    } while (0)

__device__ void out_of_range(int i, int n) { printf("thread %d of block %d: %d >= %d\n", threadIdx.x, blockIdx.x, i, n); }

__device__ int checked(const int *data, int i, int n) {
    if (i >= n) {
        out_of_range(i, n);
        return 0;
    }
    return data[i];
}

__global__ void scale(const int *data, int *out, int first, int n, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[first + i] = 2 * checked(data, first + i, total);
}

__global__ void segments(const int *begin, const int *data, int *out, int count, int total) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s < count) {
        int n = begin[s + 1] - begin[s];
        if (n > 0) {
            scale<<<(n + 31) / 32, 32>>>(data, out, begin[s], n, total);
            CUDA_DEV_CHECK(cudaGetLastError());
        }
    }
}

int main() {
    const int count = 10;
    int *begin, *data, *out;
    cudaMallocManaged(&begin, (count + 1) * sizeof(int));
    cudaMallocManaged(&data, 100 * sizeof(int));
    cudaMallocManaged(&out, 100 * sizeof(int));
    begin[0] = 0;
    for (int i = 0; i < count; ++i) begin[i + 1] = begin[i] + i * 2;
    for (int i = 0; i < 100; ++i) { data[i] = i; out[i] = 0; }
    segments<<<1, 32>>>(begin, data, out, count, begin[count]);
    cudaDeviceSynchronize();
    for (int i = 0; i < 100; ++i) printf("%d ", out[i]);
    printf("\n");
}
