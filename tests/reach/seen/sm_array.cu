// Arrays as parameters, a functor, and thread ids by template helper.
#include <cstdio>
#include <cuda_runtime.h>
template <int DIM> __device__ int linear_id();
template <> __device__ int linear_id<1>() { return blockIdx.x * blockDim.x + threadIdx.x; }
template <> __device__ int linear_id<2>() {
    return (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x * blockDim.y + threadIdx.y * blockDim.x + threadIdx.x;
}
struct Square {
    __device__ int operator()(int x) const { return x * x; }
};
template <typename F> __global__ void map_segment(const int in[], int out[], int first, int n, F f) {
    int i = linear_id<1>();
    if (i < n) out[first + i] = f(in[first + i]);
}
__global__ void map_segments(const int in[], int out[], const int offsets[], int segments) {
    int s = linear_id<1>();
    if (s < segments && offsets[s + 1] > offsets[s])
        map_segment<<<(offsets[s + 1] - offsets[s] + 63) / 64, 64>>>(in, out, offsets[s], offsets[s + 1] - offsets[s], Square());
}
int main() {
    int *in, *out, *offsets;
    cudaMallocManaged(&in, 200 * sizeof(int));
    cudaMallocManaged(&out, 200 * sizeof(int));
    cudaMallocManaged(&offsets, 11 * sizeof(int));
    offsets[0] = 0;
    for (int s = 0; s < 10; ++s) offsets[s + 1] = offsets[s] + s * 4;
    for (int i = 0; i < 200; ++i) { in[i] = i; out[i] = 0; }
    map_segments<<<1, 32>>>(in, out, offsets, 10);
    cudaDeviceSynchronize();
    for (int i = 0; i < 200; ++i) printf("%d ", out[i]);
    printf("\n");
}
