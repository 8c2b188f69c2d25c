// Children with dynamic shared memory of their own, launched by a parent that uses shared memory.
#include "conformance.cuh"

__global__ void child(const int* in, int* out, int count) {
    extern __shared__ int buffer[];
    __shared__ int offset;
    if (threadIdx.x == 0) offset = count * 100;
    for (int i = threadIdx.x; i < count; i += blockDim.x) buffer[i] = in[i];
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = buffer[count - 1 - i] + offset;
}

__global__ void parent(int* in, int* out) {
    __shared__ int sizes[8];
    extern __shared__ int begins[];
    int t = threadIdx.x;
    if (t < 8) sizes[t] = t + 1;
    __syncthreads();
    if (t < 8) {
        begins[t] = 0;
        for (int i = 0; i < t; ++i) begins[t] += sizes[i];
        for (int i = 0; i < sizes[t]; ++i) in[begins[t] + i] = 10 * t + i;
        child<<<1, 4, sizes[t] * sizeof(int)>>>(in + begins[t], out + begins[t], sizes[t]);
    }
    __syncthreads();
    if (t < 8) sizes[t] = begins[t] = -1;
}

int main() {
    Array<int> in(36), out(36);
    parent<<<1, 32, 8 * sizeof(int)>>>(in, out);
    out.show("out");
}
