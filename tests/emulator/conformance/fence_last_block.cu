// The last block to finish adds up what the others wrote: a counter and __threadfence.
#include "conformance.cuh"

__global__ void total(const int* in, int* parts, unsigned* finished, int* out) {
    __shared__ int sum;
    __shared__ bool last;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(finished, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last) {
        if (threadIdx.x == 0) sum = 0;
        __syncthreads();
        for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) atomicAdd(&sum, parts[i]);
        __syncthreads();
        if (threadIdx.x == 0) *out += sum;
    }
}

int main() {
    Array<int> in(12 * 64), parts(12), out(1);
    Array<unsigned> finished(1);
    in.fill([](int i) { return i % 100; });
    for (int i = 0; i < 3; ++i) total<<<12, 64>>>(in, parts, finished, out);   // the counter is back at 0 after each
    out.show("total");
    parts.show("parts");
    finished.show("finished");
}
