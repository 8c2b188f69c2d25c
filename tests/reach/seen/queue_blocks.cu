// Blocks take their item from a list; thread 0 launches what it needs, with dynamic shared memory.
#include <cstdio>
#include <cuda_runtime.h>
using uint = unsigned int;
extern __shared__ float scratch[];

__global__ void smooth(const float *in, float *out, uint first, uint n) {
    uint i = blockIdx.x * blockDim.x + threadIdx.x;
    scratch[threadIdx.x] = i < n ? in[first + i] : 0.0f;
    __syncthreads();
    if (i < n) {
        float left = threadIdx.x > 0 ? scratch[threadIdx.x - 1] : scratch[0];
        out[first + i] = 0.5f * (left + scratch[threadIdx.x]);
    }
}

__global__ void work(const float *in, float *out, const uint2 *items, uint count) {
    uint item = blockIdx.x;
    if (item >= count) return;
    uint2 range = items[item];
    if (threadIdx.x == 0 && range.y > range.x) {
        uint n = range.y - range.x;
        uint threads = 64;
        smooth<<<(n + threads - 1) / threads, threads, threads * sizeof(float)>>>(in, out, range.x, n);
    }
}

int main() {
    const uint n = 300;
    float *in, *out;
    uint2 *items;
    cudaMallocManaged(&in, n * sizeof(float));
    cudaMallocManaged(&out, n * sizeof(float));
    cudaMallocManaged(&items, 6 * sizeof(uint2));
    for (uint i = 0; i < n; ++i) { in[i] = i % 13; out[i] = 0; }
    for (uint k = 0; k < 6; ++k) { items[k].x = k * 50; items[k].y = k * 50 + k * 10; }
    work<<<6, 32>>>(in, out, items, 6);
    cudaDeviceSynchronize();
    for (uint i = 0; i < n; ++i) printf("%g ", out[i]);
    printf("\n");
}
