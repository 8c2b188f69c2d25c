// expect: pass
#include "selftest.hpp"
__global__ void child(int* ran) { atomicAdd(ran, 1); }
__global__ void parent(int* ran, int* wrong) {
    LAUNCH(child, 0, 1)(ran);
    if (cudaGetLastError() != cudaErrorInvalidConfiguration) *wrong = 1;
    LAUNCH(child, 1, 1025)(ran);
    if (cudaGetLastError() != cudaErrorInvalidConfiguration) *wrong = 2;
    LAUNCH(child, 1, dim3(1, 1, 65))(ran);
    if (cudaGetLastError() != cudaErrorInvalidConfiguration) *wrong = 3;
    LAUNCH(child, dim3(1, 65536), 1)(ran);
    if (cudaGetLastError() != cudaErrorInvalidConfiguration) *wrong = 4;
    LAUNCH(child, 1, 1, 48 * 1024 + 1)(ran);
    if (cudaGetLastError() != cudaErrorInvalidConfiguration) *wrong = 5;
    LAUNCH(child, 1, 1, 48 * 1024)(ran);
    if (cudaGetLastError() != cudaSuccess) *wrong = 6;
}
int main() {
    int *ran = device_array<int>(1), *wrong = device_array<int>(1);
    LAUNCH(parent, 1, 1)(ran, wrong);
    if (fetch(ran) != 1 || fetch(wrong) != 0) return 1;
    LAUNCH(child, 0, 1)(ran);
    if (cudaPeekAtLastError() != cudaErrorInvalidValue || cudaGetLastError() != cudaErrorInvalidValue) return 2;
    return cudaGetLastError() == cudaSuccess ? 0 : 3;
}
