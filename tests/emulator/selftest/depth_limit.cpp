// expect: pass
#include "selftest.hpp"
__global__ void nest(int depth, int* deepest, int* error) {
    atomicMax(deepest, depth);
    LAUNCH(nest, 1, 1)(depth + 1, deepest, error);
    if (cudaError_t e = cudaGetLastError()) *error = e;
}
int main() {
    int *deepest = device_array<int>(1), *error = device_array<int>(1);
    LAUNCH(nest, 1, 1)(0, deepest, error);
    return fetch(deepest) == 24 && fetch(error) == cudaErrorLaunchMaxDepthExceeded ? 0 : 1;
}
