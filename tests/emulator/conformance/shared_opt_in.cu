// More than 48 KB of dynamic shared memory: refused, until the kernel has opted in.
#include "conformance.cuh"

__global__ void reverse(int count, int* out) {
    extern __shared__ int buffer[];
    for (int i = threadIdx.x; i < count; i += blockDim.x) buffer[i] = i ^ 5;
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = buffer[count - 1 - i];
}

int main() {
    const int count = 16000, bytes = count * static_cast<int>(sizeof(int));
    Array<int> out(count);
    reverse<<<1, 256, bytes>>>(count, out);
    show_error("before", cudaGetLastError());
    out.show_digest("nothing");
    CHECK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    reverse<<<1, 256, bytes>>>(count, out);
    show_error("after", cudaPeekAtLastError());
    out.show_digest("reversed");
}
