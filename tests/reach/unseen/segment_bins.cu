// Segments are put into bins by size; one thread launches a sort for each bin.
#include <cstdio>
#include <cuda_runtime.h>

template <typename K, int SIZE>
__global__ void sort_small(const unsigned* bins, unsigned n, K* keys, const unsigned* offsets) {
    unsigned s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= n) return;
    unsigned seg = bins[s], b = offsets[seg], e = offsets[seg + 1];
    K local[SIZE];
    for (unsigned i = 0; i < SIZE; ++i) if (b + i < e) local[i] = keys[b + i];
    for (unsigned i = 1; b + i < e; ++i)
        for (unsigned j = i; j > 0 && local[j - 1] > local[j]; --j) { K t = local[j]; local[j] = local[j - 1]; local[j - 1] = t; }
    for (unsigned i = 0; b + i < e; ++i) keys[b + i] = local[i];
}

template <typename K>
__global__ void dispatch(unsigned* bins, K* keys, const unsigned* offsets, unsigned segments) {
    __shared__ unsigned count[3], start[3];
    if (threadIdx.x < 3) count[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < segments; i += blockDim.x) {
        unsigned size = offsets[i + 1] - offsets[i];
        atomicAdd(&count[size <= 2 ? 0 : size <= 4 ? 1 : 2], 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        start[0] = 0;
        start[1] = count[0];
        start[2] = count[0] + count[1];
    }
    __syncthreads();
    if (threadIdx.x < 3) count[threadIdx.x] = start[threadIdx.x];
    __syncthreads();
    for (unsigned i = threadIdx.x; i < segments; i += blockDim.x) {
        unsigned size = offsets[i + 1] - offsets[i];
        bins[atomicAdd(&count[size <= 2 ? 0 : size <= 4 ? 1 : 2], 1u)] = i;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned n = start[1] - start[0];
        if (n > 0) sort_small<K, 2><<<dim3((n + 31) / 32), dim3(32), 0, cudaStreamFireAndForget>>>(bins + start[0], n, keys, offsets);
        n = start[2] - start[1];
        if (n > 0) sort_small<K, 4><<<dim3((n + 31) / 32), dim3(32), 0, cudaStreamFireAndForget>>>(bins + start[1], n, keys, offsets);
        n = segments - start[2];
        if (n > 0) sort_small<K, 8><<<dim3((n + 15) / 16), dim3(16), 0, cudaStreamFireAndForget>>>(bins + start[2], n, keys, offsets);
    }
}

int main() {
    const unsigned n = 40;
    unsigned *bins, *offsets;
    int* keys;
    cudaMallocManaged(&bins, n * sizeof(unsigned));
    cudaMallocManaged(&offsets, (n + 1) * sizeof(unsigned));
    cudaMallocManaged(&keys, 8 * n * sizeof(int));
    unsigned e = 0;
    for (unsigned i = 0; i < n; ++i) { offsets[i] = e; e += 1 + i % 8; }
    offsets[n] = e;
    for (unsigned i = 0; i < e; ++i) keys[i] = (i * 29) % 31;
    dispatch<int><<<1, 64>>>(bins, keys, offsets, n);
    cudaDeviceSynchronize();
    for (unsigned i = 0; i < e; ++i) printf("%d ", keys[i]);
    printf("\n");
}
