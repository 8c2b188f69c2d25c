// Each particle has the cells around it searched by a grid; block size from a template, helpers in a chain.
#include <cstdio>
#include <cuda_runtime.h>
#include <device_launch_parameters.h>

static __device__ inline int tid_in_grid() { return threadIdx.x + blockDim.x * blockIdx.x; }
static __device__ inline int threads_in_grid() { return gridDim.x * blockDim.x; }
static __device__ inline bool mine(int& i, int n) { i = tid_in_grid(); return i < n; }

template <unsigned int BLOCK>
__global__ void interact(const float4* pos, float* density, int self, int first, int count) {
    int i;
    if (!mine(i, count)) return;
    for (; i < count; i += threads_in_grid()) {
        float4 a = pos[self], b = pos[first + i];
        float d = (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y);
        if (d < a.w) atomicAdd(&density[self], 1.0f);
    }
}

template <unsigned int BLOCK>
__global__ void density_pass(const float4* pos, const int* cellStart, const int* cellOf, float* density, int n) {
    int p = tid_in_grid();
    if (p >= n) return;
    int cell = cellOf[p];
    int first = cellStart[cell], count = cellStart[cell + 1] - first;
    dim3 block(BLOCK), grid((count + BLOCK - 1) / BLOCK);
    if (count > 0) interact<BLOCK><<<grid, block>>>(pos, density, p, first, count);
}

int main() {
    const int n = 48;
    float4* pos;
    int *start, *of;
    float* density;
    cudaMallocManaged(&pos, n * sizeof(float4));
    cudaMallocManaged(&start, 7 * sizeof(int));
    cudaMallocManaged(&of, n * sizeof(int));
    cudaMallocManaged(&density, n * sizeof(float));
    for (int i = 0; i < n; ++i) { pos[i] = make_float4(i % 5, i % 7, 0, 9); of[i] = i / 8; density[i] = 0; }
    for (int c = 0; c < 7; ++c) start[c] = c * 8;
    density_pass<64><<<1, 64>>>(pos, start, of, density, n);
    cudaDeviceSynchronize();
    for (int i = 0; i < n; ++i) printf("%g ", density[i]);
    printf("\n");
}
