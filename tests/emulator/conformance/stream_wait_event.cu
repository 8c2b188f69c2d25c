// cudaStreamWaitEvent orders streams: a diamond of kernels, and an event that is recorded again.
#include "conformance.cuh"

__global__ void put(int* cell, int value) { *cell = value; }
__global__ void add(int* cell, const int* a, const int* b) { *cell = 10 * *a + *b; }
__global__ void double_it(int* cell) { *cell *= 2; }

int main() {
    cudaStream_t left, right;
    cudaEvent_t begun, done;
    CHECK(cudaStreamCreateWithFlags(&left, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&right, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    Array<int> cells(3), results(4);
    for (int round = 0; round < 4; ++round) {
        put<<<1, 1, 0, left>>>(cells, round + 1);
        CHECK(cudaEventRecord(begun, left));
        CHECK(cudaStreamWaitEvent(right, begun, 0));
        add<<<1, 1, 0, right>>>(cells + 1, cells, cells);   // 11, 22, 33, ...
        add<<<1, 1, 0, left>>>(cells + 2, cells, cells);
        double_it<<<1, 1, 0, left>>>(cells + 2);            // 22, 44, 66, ...
        CHECK(cudaEventRecord(done, right));
        CHECK(cudaStreamWaitEvent(left, done, 0));
        add<<<1, 1, 0, left>>>(results + round, cells + 1, cells + 2);
    }
    CHECK(cudaStreamSynchronize(left));
    results.show("results");
    CHECK(cudaEventDestroy(begun));
    CHECK(cudaEventDestroy(done));
    CHECK(cudaStreamDestroy(left));
    CHECK(cudaStreamDestroy(right));
}
