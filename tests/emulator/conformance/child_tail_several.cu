// Tail launches by several threads and blocks of a grid: one after the other.
#include "conformance.cuh"

// Not atomic: two of these at the same time would lose something.
__global__ void append(int* count, int* values, int value) { values[(*count)++] = value; }

__global__ void in_turn(int* count, int* values) {
    for (int turn = 0; turn < 10; ++turn) {
        if (threadIdx.x == (turn * 7) % 32) append<<<1, 1, 0, cudaStreamTailLaunch>>>(count, values, turn);
        __syncthreads();
    }
}

__global__ void at_once(int* count, int* values) {
    append<<<1, 1, 0, cudaStreamTailLaunch>>>(count, values, 1 + blockIdx.x * blockDim.x + threadIdx.x);
}

int main() {
    Array<int> counts(2), values(10), many(40);
    in_turn<<<1, 32>>>(counts, values);
    values.show("in turn");
    at_once<<<1, 40>>>(counts + 1, many);
    counts.show("counts");
    int sum = 0;
    for (int i = 0; i < 40; ++i) sum += many.read()[i];
    show("sum", sum);
}
