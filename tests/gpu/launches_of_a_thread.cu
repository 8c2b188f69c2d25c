// Many launches by each of few threads: more than an arena has room for that is made for a few launches of each thread.
//
//   launches_of_a_thread [THREADS [LAUNCHES]]
//
// A parent of one block. Each of its THREADS threads sums up LAUNCHES rows of a matrix, each by a child grid of its own. The sums are
// compared with the CPU's; prints `right` or `wrong`, and ends with 0 or 1.

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

__global__ void sum_row(const int* begin, const int* values, int* sums, int row) {
    for (int i = begin[row] + threadIdx.x; i < begin[row + 1]; i += blockDim.x) atomicAdd(&sums[row], values[i]);
}

__global__ void sum_rows(const int* begin, const int* values, int* sums, int launches) {
    const int first = threadIdx.x * launches;
    for (int i = 0; i < launches; ++i) sum_row<<<1, 64>>>(begin, values, sums, first + i);
}

int main(int argc, char** argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 256;
    const int launches = argc > 2 ? std::atoi(argv[2]) : 32;
    const int rows = threads * launches;
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, rows));
    std::vector<int> begin(rows + 1), expected(rows), found(rows);
    for (int row = 0; row < rows; ++row) begin[row + 1] = begin[row] + 1 + row * 7 % 90;
    std::vector<int> values(begin[rows]);
    for (int i = 0; i < begin[rows]; ++i) values[i] = i % 10;
    for (int row = 0; row < rows; ++row)
        for (int i = begin[row]; i < begin[row + 1]; ++i) expected[row] += values[i];
    int *device_begin, *device_values, *sums;
    CHECK(cudaMalloc(&device_begin, begin.size() * sizeof(int)));
    CHECK(cudaMalloc(&device_values, values.size() * sizeof(int)));
    CHECK(cudaMalloc(&sums, rows * sizeof(int)));
    CHECK(cudaMemcpy(device_begin, begin.data(), begin.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_values, values.data(), values.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(sums, 0, rows * sizeof(int)));
    sum_rows<<<1, threads>>>(device_begin, device_values, sums, launches);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(found.data(), sums, rows * sizeof(int), cudaMemcpyDeviceToHost));
    std::printf("%s\n", found == expected ? "right" : "wrong");
    return found == expected ? 0 : 1;
}
