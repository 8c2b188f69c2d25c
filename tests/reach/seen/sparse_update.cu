// A template chain of helpers, namespaces, and constants by constexpr.
#include <cstdio>
#include <cuda_runtime.h>
namespace detail {
constexpr int kThreads = 64;
template <typename Index> __device__ __forceinline__ Index block_offset() { return static_cast<Index>(blockIdx.x) * blockDim.x; }
template <typename Index> __device__ __forceinline__ Index thread_index() { return block_offset<Index>() + threadIdx.x; }
template <typename Index> constexpr __host__ __device__ Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }
}  // namespace detail

template <typename Index, typename Value>
__global__ void scatter_kernel(Value *table, const Index *indices, const Value *values, Index begin, Index count, Index dim) {
    const Index i = detail::thread_index<Index>();
    if (i < count * dim) atomicAdd(&table[indices[begin + i / dim] * dim + i % dim], values[(begin + i / dim) * dim + i % dim]);
}

template <typename Index, typename Value>
__global__ void scatter_groups(Value *table, const Index *indices, const Value *values, const Index *groups, Index n, Index dim) {
    const Index g = detail::thread_index<Index>();
    if (g >= n) return;
    const Index begin = groups[g];
    const Index count = groups[g + 1] - begin;
    if (count > 0) {
        const Index blocks = detail::ceil_div<Index>(count * dim, detail::kThreads);
        scatter_kernel<Index, Value><<<blocks, detail::kThreads>>>(table, indices, values, begin, count, dim);
    }
}

int main() {
    const int groups = 9, dim = 4;
    int *table, *values, *indices, *begin;
    cudaMallocManaged(&table, 20 * dim * sizeof(int));
    cudaMallocManaged(&values, 100 * dim * sizeof(int));
    cudaMallocManaged(&indices, 100 * sizeof(int));
    cudaMallocManaged(&begin, (groups + 1) * sizeof(int));
    begin[0] = 0;
    for (int g = 0; g < groups; ++g) begin[g + 1] = begin[g] + g;
    for (int i = 0; i < 100; ++i) indices[i] = (i * 7) % 20;
    for (int i = 0; i < 100 * dim; ++i) values[i] = i % 5;
    for (int i = 0; i < 20 * dim; ++i) table[i] = 0;
    scatter_groups<int, int><<<1, 32>>>(table, indices, values, begin, groups, dim);
    cudaDeviceSynchronize();
    for (int i = 0; i < 20 * dim; ++i) printf("%d ", table[i]);
    printf("\n");
}
