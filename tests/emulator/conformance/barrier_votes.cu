// __syncthreads_count, __syncthreads_and and __syncthreads_or, which are barriers as well.
#include "conformance.cuh"

__global__ void votes(int* out) {
    __shared__ int value[96];
    int t = threadIdx.x;
    value[t] = t;
    int multiples = __syncthreads_count(t % 5 == 0);
    int neighbour = value[(t + 1) % 96];
    int all = __syncthreads_and(neighbour != t);
    int none = __syncthreads_and(t != 50);
    int some = __syncthreads_or(t == 95 ? 4 : 0);
    int nobody = __syncthreads_or(t > 95);
    int nonzero = __syncthreads_count(t & 6);
    int* mine = out + (blockIdx.x * 96 + t) * 6;
    mine[0] = multiples;
    mine[1] = all != 0;
    mine[2] = none != 0;
    mine[3] = some != 0;
    mine[4] = nobody != 0;
    mine[5] = nonzero;
}

int main() {
    Array<int> out(2 * 96 * 6);
    votes<<<2, 96>>>(out);
    const int* all = out.read();
    show("first thread", all, 6);
    int same = 0;
    for (int i = 6; i < out.count(); ++i) same += all[i] == all[i % 6];
    show("agreeing", same);
}
