// 200,000 launches of tiny grids, one by each thread of the parent.
//
//   many_launches [N [PENDING]]
//
// Each child adds up a few numbers. Compares with the sum on the CPU. PENDING is the size of the pool of pending launches, which holds
// all of them if nothing is said.

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                  \
    do {                                                                                             \
        cudaError_t error_ = (call);                                                                 \
        if (error_ != cudaSuccess) {                                                                 \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_));     \
            std::exit(2);                                                                            \
        }                                                                                            \
    } while (0)

__global__ void add(const int* values, int* sum, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(sum, values[begin + i]);
}

__global__ void add_all(const int* first, const int* values, int* sums, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = first[v], count = first[v + 1] - begin;
    if (count > 0) add<<<(count + 31) / 32, 32>>>(values, &sums[v], begin, count);
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? std::atoi(argv[1]) : 200000;
    std::vector<int> begin(n + 1), expected(n), found(n);
    for (int v = 0; v < n; ++v) begin[v + 1] = begin[v] + 1 + v % 7;
    std::vector<int> numbers(begin[n]);
    for (int i = 0; i < begin[n]; ++i) numbers[i] = i % 10;
    for (int v = 0; v < n; ++v)
        for (int i = begin[v]; i < begin[v + 1]; ++i) expected[v] += numbers[i];

    const int pending = argc > 2 ? std::atoi(argv[2]) : 262144;
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending));
    int *first, *values, *sums;
    CHECK(cudaMalloc(&first, begin.size() * sizeof(int)));
    CHECK(cudaMalloc(&values, numbers.size() * sizeof(int)));
    CHECK(cudaMalloc(&sums, n * sizeof(int)));
    CHECK(cudaMemcpy(first, begin.data(), begin.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(values, numbers.data(), numbers.size() * sizeof(int), cudaMemcpyHostToDevice));
    for (int round = 0; round < 2; ++round) {
        CHECK(cudaMemset(sums, 0, n * sizeof(int)));
        add_all<<<(n + 255) / 256, 256>>>(first, values, sums, n);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
    }
    CHECK(cudaMemcpy(found.data(), sums, n * sizeof(int), cudaMemcpyDeviceToHost));
    std::printf("%s\n", found == expected ? "right" : "wrong");
    return found == expected ? 0 : 1;
}
