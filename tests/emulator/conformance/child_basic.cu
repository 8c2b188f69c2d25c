// A child sees what its launching thread wrote before the launch, and what others of the block wrote before a barrier before
// it; the host sees what the child wrote.
#include "conformance.cuh"

__device__ int global;

__global__ void child(const int* in, int* out, int factor) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    out[t] = in[t] * factor + global;
}

__global__ void parent(int* in, int* out) {
    int t = threadIdx.x;
    in[t] = t;
    if (t == 5) global = 1000;
    __syncthreads();
    if (t == 0) {
        in[3] = -1;
        child<<<4, 16>>>(in, out, 7);
    }
}

// Each thread for itself.
__global__ void each(int* in, int* out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    in[2 * t] = t;
    in[2 * t + 1] = -t;
    child<<<1, 2>>>(in + 2 * t, out + 2 * t, 3);
}

int main() {
    Array<int> in(64), out(64);
    parent<<<1, 64>>>(in, out);
    out.show("one");
    each<<<2, 16>>>(in, out);
    out.show("each");
}
