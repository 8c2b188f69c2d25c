// Events on the device order created streams of a block.
#include "conformance.cuh"

__global__ void put(int* cell, int value) { *cell = value; }
__global__ void add(int* cell, const int* a, const int* b) { *cell = 10 * *a + *b; }

__global__ void parent(int* cells, int* errors) {
    int* mine = cells + 4 * blockIdx.x;
    cudaStream_t left, right;
    cudaEvent_t event;
    int failed = 0;
    failed += cudaStreamCreateWithFlags(&left, cudaStreamNonBlocking) != cudaSuccess;
    failed += cudaStreamCreateWithFlags(&right, cudaStreamNonBlocking) != cudaSuccess;
    failed += cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess;
    put<<<1, 1, 0, left>>>(mine, 3 + blockIdx.x);
    failed += cudaEventRecord(event, left) != cudaSuccess;
    failed += cudaStreamWaitEvent(right, event, 0) != cudaSuccess;
    add<<<1, 1, 0, right>>>(mine + 1, mine, mine);
    add<<<1, 1, 0, right>>>(mine + 2, mine + 1, mine);
    failed += cudaEventRecord(event, right) != cudaSuccess;
    failed += cudaStreamWaitEvent(left, event, 0) != cudaSuccess;
    add<<<1, 1, 0, left>>>(mine + 3, mine + 2, mine + 1);
    failed += cudaEventDestroy(event) != cudaSuccess;
    failed += cudaStreamDestroy(left) != cudaSuccess;
    failed += cudaStreamDestroy(right) != cudaSuccess;
    atomicAdd(errors, failed);
}

int main() {
    Array<int> cells(8), errors(1);
    parent<<<2, 1>>>(cells, errors);
    cells.show("cells");
    errors.show("errors");
}
