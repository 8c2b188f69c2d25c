// Memory that threads of a warp allocate together: who asks for nothing gets an error, and its place stays as it is.
#include <cstdio>

#include "gridfuse.cuh"

__global__ void take(unsigned* wrong) {
    unsigned* part = wrong;
    const unsigned bytes = threadIdx.x % 3 * 4;
    const cudaError_t error = gridfuse::cuda_malloc_together(&part, bytes);
    const bool given = error == cudaSuccess && part != wrong && part != nullptr;
    const bool refused = error == cudaErrorInvalidValue && part == wrong && cudaGetLastError() == cudaErrorInvalidValue;
    if (bytes == 0 ? !refused : !given) atomicAdd(wrong, 1);
    if (given) {
        *part = threadIdx.x;
        gridfuse::cuda_free_together(part);
    }
}

int main() {
    unsigned* wrong;
    cudaMallocManaged(&wrong, sizeof *wrong);
    *wrong = 0;
    take<<<2, 32>>>(wrong);
    if (cudaDeviceSynchronize() != cudaSuccess) return 2;
    std::printf("%u\n", *wrong);
    return *wrong == 0 ? 0 : 1;
}
