// cudaStreamQuery and cudaEventQuery, while a kernel waits for the host and afterwards.
#include "conformance.cuh"

__global__ void wait_for(volatile int* flag, int* out) {
    while (*flag == 0) {
    }
    *out = 5;
}

int main() {
    volatile int* flag;
    CHECK(cudaMallocHost(reinterpret_cast<void**>(const_cast<int**>(&flag)), sizeof(int)));
    *flag = 0;
    Array<int> out(1);
    cudaStream_t busy, idle;
    cudaEvent_t before, after;
    CHECK(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&idle, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    show_error("never recorded", cudaEventQuery(after));
    CHECK(cudaEventRecord(before, busy));
    CHECK(cudaEventSynchronize(before));
    wait_for<<<1, 1, 0, busy>>>(flag, out);
    CHECK(cudaEventRecord(after, busy));
    show_error("waiting stream", cudaStreamQuery(busy));
    show_error("waiting event", cudaEventQuery(after));
    show_error("idle stream", cudaStreamQuery(idle));
    show_error("event before", cudaEventQuery(before));
    (void)cudaGetLastError();   // not ready is not a failure
    *flag = 1;
    CHECK(cudaEventSynchronize(after));
    show_error("event", cudaEventQuery(after));
    CHECK(cudaStreamSynchronize(busy));
    show_error("stream", cudaStreamQuery(busy));
    float ms = -1;
    CHECK(cudaEventElapsedTime(&ms, before, after));
    show("time passed", ms >= 0);
    out.show("out");
    CHECK(cudaEventDestroy(before));
    CHECK(cudaEventDestroy(after));
    CHECK(cudaStreamDestroy(busy));
    CHECK(cudaStreamDestroy(idle));
    CHECK(cudaFreeHost(const_cast<int*>(flag)));
}
