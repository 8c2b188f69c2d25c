// gridfuse.cuh: small children run in the launching thread, large ones are launched.
#include "conformance.cuh"

#include "gridfuse.cuh"

__device__ void mark_body(uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, int* cells, int size, int number) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < size) atomicAdd(&cells[number], t + static_cast<int>(gridDim.x));
}
__global__ void mark(int* cells, int size, int number) { mark_body(threadIdx, blockIdx, gridDim, blockDim, cells, size, number); }

__global__ void parent(int* cells, int* launched, unsigned long long threshold) {
    int number = blockIdx.x * blockDim.x + threadIdx.x, size = number * 3;
    dim3 grid((size + 31) / 32), block(32);
    if (size == 0) return;
    if (gridfuse::below_threshold(grid, block, threshold)) {
        gridfuse::for_each_thread(grid, block, size, [&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
            mark_body(threadIdx, blockIdx, gridDim, blockDim, cells, size, number);
        });
    } else {
        atomicAdd(launched, 1);
        mark<<<grid, block>>>(cells, size, number);
    }
}

int main() {
    for (unsigned long long threshold : {0, 64, 100, 100000}) {
        Array<int> cells(40), launched(1);
        parent<<<2, 20>>>(cells, launched, threshold);
        cells.show("cells");
        launched.show("launched");
    }
}
