// expect: pass
// Parents write, launch children that read it and add up; everything that is ordered by CUDA.
#include "selftest.hpp"

__global__ void child(const int* values, int* sums, int n, int parent) {
    SHARED(int[64], partial);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    partial[threadIdx.x] = i < n ? values[parent * 100 + i] : 0;
    __syncthreads();
    for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(&sums[parent], partial[0]);
}

__global__ void parent(int* values, int* sums, int parents) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= parents) return;
    for (int i = 0; i < 100; ++i) values[p * 100 + i] = p + i;
    sums[p] = 0;
    LAUNCH(child, 2, 64)(values, sums, 100, p);
}

int main() {
    const int parents = 70;
    int *values, *sums;
    cudaMalloc(&values, parents * 100 * sizeof(int));
    cudaMalloc(&sums, parents * sizeof(int));
    LAUNCH(parent, 3, 32)(values, sums, parents);
    int result[parents];
    cudaMemcpy(result, sums, sizeof result, cudaMemcpyDeviceToHost);
    for (int p = 0; p < parents; ++p)
        if (result[p] != 100 * p + 4950) {
            std::printf("parent %d: %d\n", p, result[p]);
            return 1;
        }
    return 0;
}
