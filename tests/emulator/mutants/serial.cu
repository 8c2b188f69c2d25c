// Small child grids in the launching thread: every thread of the child runs once, with its own built-in variables.
#include <cstdio>

#include "gridfuse.cuh"

__global__ void all(unsigned* out, unsigned* counted, bool* small) {
    gridfuse::for_each_thread(dim3(2, 3, 2), dim3(3, 2, 2), [&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
        unsigned b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        out[b * 12 + t] += 1 + b * 100 + t;
    });
    for (int count = 0; count < 14; ++count)
        gridfuse::for_each_thread(3, 4, count, [&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
            counted[blockIdx.x * blockDim.x + threadIdx.x] += gridDim.x;
        });
    small[0] = gridfuse::below_threshold(3, 10, 31);
    small[1] = gridfuse::below_threshold(3, 10, 30);
    small[2] = gridfuse::below_threshold(0, 10, 30);
    small[3] = gridfuse::below_threshold(1, 1025, 5000);
    small[4] = gridfuse::below_threshold(dim3(1, 70000), 1, 100000);
}

int main() {
    unsigned *out, *counted;
    bool* small;
    cudaMallocManaged(&out, 144 * sizeof(unsigned));
    cudaMallocManaged(&counted, 12 * sizeof(unsigned));
    cudaMallocManaged(&small, 5 * sizeof(bool));
    cudaMemset(out, 0, 144 * sizeof(unsigned));
    cudaMemset(counted, 0, 12 * sizeof(unsigned));
    all<<<1, 1>>>(out, counted, small);
    if (cudaDeviceSynchronize() != cudaSuccess) return 2;
    bool right = small[0] && !small[1] && !small[2] && !small[3] && !small[4];
    for (unsigned b = 0; b < 12; ++b)
        for (unsigned t = 0; t < 12; ++t) right = right && out[b * 12 + t] == 1 + b * 100 + t;
    for (unsigned i = 0; i < 12; ++i) right = right && counted[i] == 3 * (13 - i);   // by all counts above i
    std::printf("%s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
}
