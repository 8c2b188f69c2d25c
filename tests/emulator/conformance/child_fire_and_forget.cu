// cudaStreamFireAndForget: children in no order, all of them done when their parent is.
#include "conformance.cuh"

__global__ void child(int* sum, int* times, int number) {
    atomicAdd(&sum[0], number);
    if (threadIdx.x == 0 && blockIdx.x == 0) atomicAdd(&times[number], 1);
}

__global__ void parent(int* sum, int* times) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < t % 3; ++i) child<<<1 + t % 2, 4 + i, 0, cudaStreamFireAndForget>>>(sum, times, t);
}

__global__ void after(const int* sum, int* seen) { *seen = *sum; }

int main() {
    Array<int> sum(1), times(120), seen(1);
    parent<<<3, 40>>>(sum, times);
    after<<<1, 1>>>(sum, seen);
    sum.show("sum");
    seen.show("seen by the next kernel");
    times.show("times");
}
