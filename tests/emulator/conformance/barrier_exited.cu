// Threads that have left the kernel take no part in the barriers of the others.
#include "conformance.cuh"

__global__ void countdown(int* out) {
    __shared__ int present[100];
    int t = threadIdx.x;
    for (int round = 0; round < 5; ++round) {
        if (t >= 100 - 17 * round) return;
        present[t] = round + 1;
        __syncthreads();
        int seen = 0;
        for (int i = 0; i < 100; ++i) seen += present[i] == round + 1;
        if (t == 0) out[blockIdx.x * 5 + round] = seen;
        __syncthreads();
    }
}

// Whole warps leave at once, the others count themselves.
__global__ void remaining(int* out) {
    if (threadIdx.x / 32 == 1) return;
    int count = __syncthreads_count(1);
    if (threadIdx.x / 32 == 3) return;
    int all = __syncthreads_and(1);
    if (threadIdx.x == 0) {
        out[0] = count;
        out[1] = all != 0;
    }
}

int main() {
    Array<int> out(2 * 5), counts(2);
    countdown<<<2, 100>>>(out);
    out.show("present");
    remaining<<<1, 128>>>(counts);
    counts.show("remaining");
}
