// __syncthreads orders the shared memory of a block: a sum as a tree, and a buffer that is used again.
#include "conformance.cuh"

__global__ void sums(const int* in, int* out) {
    __shared__ int part[128];
    int t = threadIdx.x;
    for (int round = 0; round < 3; ++round) {
        part[t] = in[blockIdx.x * 128 + t] + round;
        __syncthreads();
        for (int half = 64; half > 0; half /= 2) {
            if (t < half) part[t] += part[t + half];
            __syncthreads();
        }
        if (t == 127) out[blockIdx.x * 3 + round] = part[0];
        __syncthreads();
    }
}

__global__ void reverse(int* data) {
    __shared__ int piece[100];
    piece[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = piece[99 - threadIdx.x];
}

int main() {
    Array<int> in(4 * 128), out(4 * 3), data(100);
    in.fill([](int i) { return i * 7 % 31; });
    sums<<<4, 128>>>(in, out);
    out.show("sums");
    data.fill([](int i) { return i; });
    reverse<<<1, 100>>>(data);
    data.show("reversed");
}
