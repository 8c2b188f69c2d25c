#include <cstdio>
#include <cuda_runtime.h>
template <class T> struct AddOp {
    __device__ void operator()(T* where, T what) const { atomicAdd(where, what); }
};

template <class T, class Op>
__device__ void push_edges(const int* dst, T* next, T share, int first, int count, Op op) {
    int stride = blockDim.x * gridDim.x;
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < count; k += stride) op(&next[dst[first + k]], share);
}

template <class T, class Op>
__global__ void push_kernel(const int* dst, T* next, T share, int first, int count, Op op) {
    push_edges(dst, next, share, first, count, op);
}

template <class T>
__global__ void pagerank(const int* offsets, const int* dst, const T* rank, T* next, int n) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= n) return;
    int first = offsets[node], count = offsets[node + 1] - first;
    if (count == 0) return;
    T share = rank[node] / count;
    if (count >= 32) {
        int blocks = min((count + 63) / 64, 8);
        push_kernel<<<blocks, 64>>>(dst, next, share, first, count, AddOp<T>());
    } else {
        AddOp<T> op;
        for (int k = 0; k < count; ++k) op(&next[dst[first + k]], share);
    }
}

int main() {
    const int n = 30;
    int *offsets, *dst;
    int *rank, *next;
    cudaMallocManaged(&offsets, (n + 1) * sizeof(int));
    cudaMallocManaged(&dst, n * 80 * sizeof(int));
    cudaMallocManaged(&rank, n * sizeof(int));
    cudaMallocManaged(&next, n * sizeof(int));
    int e = 0;
    for (int v = 0; v < n; ++v) {
        offsets[v] = e;
        for (int k = 0; k < (v % 7 == 0 ? 70 : v % 5); ++k) dst[e++] = (v + k) % n;
        rank[v] = 1000 * v;
        next[v] = 0;
    }
    offsets[n] = e;
    pagerank<int><<<1, 32>>>(offsets, dst, rank, next, n);
    cudaDeviceSynchronize();
    for (int v = 0; v < n; ++v) printf("%d ", next[v]);
    printf("\n");
}
