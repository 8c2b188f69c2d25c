// cudaStreamTailLaunch: after the launching grid and all its other descendants, in order; sees everything that they wrote.
#include "conformance.cuh"

__global__ void grandchild(int* count) { atomicAdd(count, 1); }
__global__ void child(int* count) {
    atomicAdd(count, 10);
    grandchild<<<2, 4>>>(count);
    grandchild<<<1, 8, 0, cudaStreamFireAndForget>>>(count);
}
__global__ void note(const int* count, const int* written, int* out) {
    out[0] = *count;
    for (int i = 0; i < 64; ++i) out[1] += written[i];
}
__global__ void follow(int* out) { out[2] = out[0] * 2 + out[1]; }

__global__ void parent(int* count, int* written, int* out) {
    int t = threadIdx.x;
    if (t == 0) {
        note<<<1, 1, 0, cudaStreamTailLaunch>>>(count, written, out);
        follow<<<1, 1, 0, cudaStreamTailLaunch>>>(out);
    }
    if (t % 16 == 0) {
        child<<<1, 1>>>(count);
        child<<<1, 1, 0, cudaStreamFireAndForget>>>(count);
    }
    written[t] = t;
}

__global__ void after(int* out) { out[3] = out[2] + 1; }

int main() {
    Array<int> count(1), written(64), out(4);
    parent<<<1, 64>>>(count, written, out);
    after<<<1, 1>>>(out);
    out.show("out");
}
