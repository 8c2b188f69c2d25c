// The last error of the host: kept over calls that succeed, reset by cudaGetLastError alone; the device goes on.
#include "conformance.cuh"

__global__ void kernel(int* ran) { atomicAdd(ran, 1); }

int main() {
    int* ran;
    CHECK(cudaMalloc(&ran, sizeof(int)));
    CHECK(cudaMemset(ran, 0, sizeof(int)));
    kernel<<<1, 2000>>>(ran);
    show_error("peek", cudaPeekAtLastError());
    show_error("peek again", cudaPeekAtLastError());
    show_error("synchronise", cudaDeviceSynchronize());
    show_error("kept", cudaPeekAtLastError());
    show_error("get", cudaGetLastError());
    show_error("get again", cudaGetLastError());
    kernel<<<1, 4>>>(ran);
    show_error("after a launch", cudaGetLastError());
    show_error("wrong call", cudaMemset(nullptr, 1, 1));
    show_error("its code is the last", cudaPeekAtLastError());
    kernel<<<1, 0>>>(ran);
    show_error("the later one", cudaGetLastError());
    int value = -1;
    show_error("copy", cudaMemcpy(&value, ran, sizeof(int), cudaMemcpyDeviceToHost));
    show("ran", value);
    std::printf("%s: %s\n", cudaGetErrorName(cudaErrorInvalidValue), cudaGetErrorString(cudaErrorInvalidValue));
    CHECK(cudaFree(ran));
}
