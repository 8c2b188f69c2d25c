// Static and dynamic shared memory in one kernel do not overlap, up to 48 KB together.
#include "conformance.cuh"

__global__ void both(int dynamic, int* out) {
    __shared__ int fixed[1024];
    __shared__ long long sum;
    extern __shared__ int flexible[];
    int t = threadIdx.x;
    if (t == 0) sum = 0;
    for (int i = t; i < 1024; i += blockDim.x) fixed[i] = i;
    for (int i = t; i < dynamic; i += blockDim.x) flexible[i] = -2 * i;
    __syncthreads();
    long long mine = 0;
    for (int i = t; i < 1024; i += blockDim.x) mine += fixed[i];
    for (int i = t; i < dynamic; i += blockDim.x) mine += flexible[i];
    atomicAdd(reinterpret_cast<unsigned long long*>(&sum), static_cast<unsigned long long>(mine));
    __syncthreads();
    if (t == 0) out[blockIdx.x] = static_cast<int>(sum);
}

int main() {
    for (int dynamic : {0, 1, 500, 11000}) {
        Array<int> out(2);
        both<<<2, 128, dynamic * sizeof(int)>>>(dynamic, out);
        out.show("sums");
    }
}
