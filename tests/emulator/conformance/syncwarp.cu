// __syncwarp orders the memory of the threads of a warp, also of some of them only.
#include "conformance.cuh"

__global__ void sums(int* out) {
    __shared__ int part[64];
    int t = threadIdx.x, lane = t % 32;
    part[t] = t + 1;
    __syncwarp();
    for (int half = 16; half > 0; half /= 2) {
        int other = lane < half ? part[t + half] : 0;
        __syncwarp();
        if (lane < half) part[t] += other;
        __syncwarp();
    }
    if (lane == 0) out[t / 32] = part[t];
}

// The even lanes pass values round among themselves, while the odd lanes do something else.
__global__ void halves(int* out) {
    __shared__ int ring[32];
    int lane = threadIdx.x;
    if (lane % 2 == 0) {
        int value = lane;
        for (int turn = 0; turn < 5; ++turn) {
            ring[lane] = value;
            __syncwarp(0x55555555);
            value = ring[(lane + 2) % 32] + 100;
            __syncwarp(0x55555555);
        }
        out[lane] = value;
    } else {
        ring[lane] = 1000 + lane;
        __syncwarp(0xaaaaaaaa);
        out[lane] = ring[(lane + 30) % 32];
    }
}

int main() {
    Array<int> out(2), ring(32);
    sums<<<1, 64>>>(out);
    out.show("sums");
    halves<<<1, 32>>>(ring);
    ring.show("rings");
}
