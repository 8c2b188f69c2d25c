// Propose and accept launch each other into the tail stream.
#include <cstdio>
#include <cuda_runtime.h>
#define N 96
__global__ void accept(int *value, int *proposal, int *moves, int round, int rounds);
__global__ void propose(int *value, int *proposal, int *moves, int round, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) proposal[i] = (value[i] * 5 + round) % 17;
    if (threadIdx.x == 0 && blockIdx.x == 0) accept<<<N / 32, 32, 0, cudaStreamTailLaunch>>>(value, proposal, moves, round, rounds);
}
__global__ void accept(int *value, int *proposal, int *moves, int round, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N && proposal[i] > value[i]) { value[i] = proposal[i]; atomicAdd(moves, 1); }
    if (threadIdx.x == 0 && blockIdx.x == 0 && round + 1 < rounds)
        propose<<<N / 32, 32, 0, cudaStreamTailLaunch>>>(value, proposal, moves, round + 1, rounds);
}
int main() {
    int *value, *proposal, *moves;
    cudaMallocManaged(&value, N * sizeof(int));
    cudaMallocManaged(&proposal, N * sizeof(int));
    cudaMallocManaged(&moves, sizeof(int));
    for (int i = 0; i < N; ++i) value[i] = i % 11;
    *moves = 0;
    propose<<<N / 32, 32>>>(value, proposal, moves, 0, 4);
    cudaDeviceSynchronize();
    long sum = 0;
    for (int i = 0; i < N; ++i) sum += value[i] * (i + 1);
    printf("%ld %d\n", sum, *moves);
}
