// The limit of pending launches: a launch too many is refused with an error, and no other is lost. How far above the limit
// that was set the refusal begins is the device's business.
#include "conformance.cuh"

__global__ void wait_for(volatile int* go) {
    while (*go == 0) {
    }
    __threadfence();
}
__global__ void count(int* ran) { ++*ran; }

__global__ void parent(volatile int* go, int* ran, int* out) {
    wait_for<<<1, 1>>>(go);   // whatever follows in this stream has to wait
    int accepted = 0, error = cudaGetLastError();
    while (error == cudaSuccess && accepted < 100000) {
        count<<<1, 1>>>(ran);
        error = cudaGetLastError();
        if (error == cudaSuccess) ++accepted;
    }
    out[0] = error;
    out[1] = accepted;
    __threadfence();
    *go = 1;
}

int main() {
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 256));
    size_t limit = 0;
    CHECK(cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount));
    show("limit of 256 or more", limit >= 256);
    Array<int> go(1), ran(1), out(2);
    parent<<<1, 1>>>(go, ran, out);
    show_error("refused", out.read()[0]);
    show("all others ran", ran.read()[0] == out.read()[1]);
    show("some ran", ran.read()[0] > 0);
}
