// The default stream waits for all blocking streams and they for it; non-blocking streams have to be ordered by events.
#include "conformance.cuh"

__global__ void slow_put(int* cell, int value) {
    int waste = value;
    for (int i = 0; i < 2000; ++i) waste = waste * 3 % 1009 + 1;
    *cell = waste < 0 ? waste : value;
}
__global__ void combine(int* to, const int* a, const int* b) { *to = 100 * *a + *b; }

int main() {
    cudaStream_t first, second, apart;
    cudaEvent_t done;
    CHECK(cudaStreamCreate(&first));
    CHECK(cudaStreamCreate(&second));
    CHECK(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&done));
    Array<int> cells(6);
    slow_put<<<1, 1, 0, first>>>(cells, 1);
    slow_put<<<1, 1, 0, second>>>(cells + 1, 2);
    combine<<<1, 1>>>(cells + 2, cells, cells + 1);
    combine<<<1, 1, 0, first>>>(cells + 3, cells + 2, cells + 1);
    combine<<<1, 1, 0, second>>>(cells + 4, cells + 2, cells);
    combine<<<1, 1>>>(cells, cells + 3, cells + 4);
    CHECK(cudaEventRecord(done));
    CHECK(cudaStreamWaitEvent(apart, done, 0));
    combine<<<1, 1, 0, apart>>>(cells + 5, cells, cells + 2);
    CHECK(cudaStreamSynchronize(apart));
    cells.show("cells");
    CHECK(cudaEventDestroy(done));
    for (cudaStream_t stream : {first, second, apart}) CHECK(cudaStreamDestroy(stream));
}
