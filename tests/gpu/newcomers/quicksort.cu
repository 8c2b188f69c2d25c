
// Sorts numbers, and looks whether they are in order.

#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

int main() {
    const int n = 1 << 16;
    std::vector<int> numbers(n);
    unsigned random = 1;
    for (int& number : numbers) {
        random = random * 1664525u + 1013904223u;
        number = random >> 8;
    }
    int* data;
    cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 65536);
    cudaMalloc(&data, n * sizeof(int));
    cudaMemcpy(data, numbers.data(), n * sizeof(int), cudaMemcpyHostToDevice);
    sort(data, n);
    cudaMemcpy(numbers.data(), data, n * sizeof(int), cudaMemcpyDeviceToHost);
    for (int i = 1; i < n; ++i)
        if (numbers[i - 1] > numbers[i]) return std::printf("wrong\n"), 1;
    std::printf("right\n");
    return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
