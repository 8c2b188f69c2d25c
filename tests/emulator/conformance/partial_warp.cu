// Blocks whose last warp is not full: masks name the threads that exist.
#include "conformance.cuh"

__global__ void partial(int* out) {
    int t = threadIdx.x, lane = t % 32;
    unsigned members = t < 32 ? ~0u : (1u << (blockDim.x - 32)) - 1;
    int ballot = __popc(__ballot_sync(members, t % 2));
    int sum = t;
    for (int distance = 1; distance < 32; distance *= 2) {
        int other = __shfl_down_sync(members, sum, distance);
        if (lane + distance < __popc(members)) sum += other;
    }
    sum = __shfl_sync(members, sum, 0);
    int* mine = out + 3 * (blockIdx.x * blockDim.x + t);
    mine[0] = ballot;
    mine[1] = sum;
    mine[2] = __shfl_xor_sync(members, t, 1);
}

int main() {
    Array<int> out(2 * 40 * 3), small(2 * 34 * 3);
    partial<<<2, 40>>>(out);
    out.show_digest("40 threads");
    show("thread 0", out.read(), 3);
    show("thread 39", out.read() + 39 * 3, 3);
    partial<<<2, 34>>>(small);
    small.show("34 threads");
}
