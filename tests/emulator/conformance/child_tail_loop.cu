// A kernel that launches itself into the tail stream until it is done: a loop, not a recursion.
#include "conformance.cuh"

__global__ void halve(int* values, int* steps, int* open) {
    int t = threadIdx.x;
    if (t == 0) *open = 0;
    __syncthreads();
    if (values[t] > 1) {
        values[t] = values[t] % 2 == 0 ? values[t] / 2 : 3 * values[t] + 1;
        ++steps[t];
        atomicOr(open, 1);
    }
    __syncthreads();
    if (t == 0 && atomicAdd(open, 0) != 0) halve<<<1, 32, 0, cudaStreamTailLaunch>>>(values, steps, open);
}

// Sweeps with children: each sweep sees what the children of the one before have done.
__global__ void add(int* cell, int value) { *cell += value; }
__global__ void sweep(int* cells, int round) {
    if (threadIdx.x < 4) add<<<1, 1>>>(&cells[threadIdx.x], cells[(threadIdx.x + 4)] + 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        add<<<1, 1>>>(&cells[4 + round % 4], 1);
        if (round > 0) sweep<<<1, 32, 0, cudaStreamTailLaunch>>>(cells, round - 1);
    }
}

int main() {
    Array<int> values(32), steps(32), open(1), cells(8);
    values.fill([](int i) { return i + 1; });
    halve<<<1, 32>>>(values, steps, open);
    values.show("values");
    steps.show("steps");
    sweep<<<1, 32>>>(cells, 40);
    cells.show("cells");
}
