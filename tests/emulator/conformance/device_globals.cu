// __device__ variables: initialised, changed by kernels, copied by symbol, found by address, pointing at each other.
#include "conformance.cuh"

__device__ int counter = 40;
__device__ int grid_of[2][3] = {{1, 2, 3}, {4, 5, 6}};
static __device__ double unset[2];
__device__ int* where;

namespace inner {
__device__ unsigned long long wide;
}

__global__ void change(int* memory) {
    atomicAdd(&counter, 1);
    atomicAdd(&grid_of[threadIdx.x % 2][threadIdx.x % 3], 100);
    if (threadIdx.x == 0) {
        unset[1] += 2.5;
        inner::wide = 1ull << 40;
        where = memory;
    }
}

__global__ void follow() { where[threadIdx.x] = threadIdx.x + counter; }

int main() {
    Array<int> memory(4);
    change<<<1, 12>>>(memory);
    change<<<1, 12>>>(memory);
    follow<<<1, 4>>>();
    memory.show("memory");
    int count, six[6];
    double two[2];
    unsigned long long wide;
    CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    CHECK(cudaMemcpyFromSymbol(six, grid_of, sizeof six));
    CHECK(cudaMemcpyFromSymbol(two, unset, sizeof two));
    CHECK(cudaMemcpyFromSymbol(&wide, inner::wide, sizeof wide));
    show("counter", count);
    show("array", six, 6);
    show("double", two, 2);
    show("wide", wide);
    void* address;
    size_t size;
    CHECK(cudaGetSymbolAddress(&address, grid_of));
    CHECK(cudaGetSymbolSize(&size, grid_of));
    show("size", static_cast<unsigned>(size));
    CHECK(cudaMemset(address, 0, 3 * sizeof(int)));
    count = -5;
    CHECK(cudaMemcpyToSymbol(counter, &count, sizeof count));
    change<<<1, 12>>>(memory);
    CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    CHECK(cudaMemcpyFromSymbol(six, grid_of, sizeof six));
    show("counter", count);
    show("array", six, 6);
}
