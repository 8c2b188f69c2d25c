// expect: pass
// env: GRIDFUSE_EMU_SCHEDULE=late
// Launches beyond the limit fail, and only the launching thread can know.
#include "selftest.hpp"
__global__ void child(int* ran) { atomicAdd(ran, 1); }
__global__ void parent(int* ran, int* failed) {
    LAUNCH(child, 1, 1, 0, cudaStreamFireAndForget)(ran);
    if (cudaGetLastError() == cudaErrorLaunchPendingCountExceeded) atomicAdd(failed, 1);
    if (cudaGetLastError() != cudaSuccess) atomicAdd(failed, 1000);
}
int main() {
    int *ran = device_array<int>(1), *failed = device_array<int>(1);
    cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 10);
    LAUNCH(parent, 1, 32)(ran, failed);
    return fetch(ran) == 10 && fetch(failed) == 22 ? 0 : 1;
}
