// Streams created on the device: in order within each, usable by all threads of the block, destroyed before the work is done.
#include "conformance.cuh"

__global__ void step(long long* cell, int factor, int add) { *cell = *cell * factor + add; }

__global__ void parent(long long* cells, int* errors) {
    __shared__ cudaStream_t stream[2];
    int t = threadIdx.x;
    if (t < 2) atomicAdd(errors, cudaStreamCreateWithFlags(&stream[t], cudaStreamNonBlocking) != cudaSuccess);
    __syncthreads();
    for (int turn = 0; turn < 6; ++turn) {
        if (t == turn * 3) step<<<1, 1, 0, stream[0]>>>(&cells[2 * blockIdx.x], 3, turn);
        if (t == turn * 4 + 1) step<<<1, 1, 0, stream[1]>>>(&cells[2 * blockIdx.x + 1], 5, turn);
        __syncthreads();
    }
    if (t < 2) atomicAdd(errors, cudaStreamDestroy(stream[t]) != cudaSuccess);
}

// A stream for each thread.
__global__ void each(long long* cells, int* errors) {
    long long* mine = cells + threadIdx.x;
    cudaStream_t stream;
    atomicAdd(errors, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess);
    for (int turn = 0; turn < 3; ++turn) step<<<1, 1, 0, stream>>>(mine, 10, threadIdx.x % 10);
    atomicAdd(errors, cudaStreamDestroy(stream) != cudaSuccess);
}

int main() {
    Array<long long> cells(6), many(12);
    Array<int> errors(1);
    parent<<<3, 32>>>(cells, errors);
    cells.show("cells");
    each<<<1, 12>>>(many, errors);
    many.show("each");
    errors.show("errors");
}
