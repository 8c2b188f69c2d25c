// Grids can be nested to a depth of 24.
#include "conformance.cuh"

__global__ void deeper(int depth, int* reached, int* error) {
    *reached = depth;
    if (depth >= 40) return;
    deeper<<<1, 1>>>(depth + 1, reached, error);
    cudaError_t result = cudaGetLastError();
    if (result != cudaSuccess) *error = result;
}

int main() {
    Array<int> reached(1), error(1);
    deeper<<<1, 1>>>(0, reached, error);
    reached.show("reached");
    show_error("error", error.read()[0]);
}
