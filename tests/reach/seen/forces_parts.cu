// One thread sends off the parts of a force computation, which don't depend on each other.
#include <cuda_runtime.h>
#include <cstdio>
#define THREADS_PER_BLOCK 32
__global__ void bond_forces(float dt, const int *pairs, const float *k, const float *x, float *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n) return;
    int a = pairs[2 * i], b = pairs[2 * i + 1];
    float d = k[i] * (x[b] - x[a]) * dt;
    atomicAdd(&f[a], d);
    atomicAdd(&f[b], -d);
}
__global__ void angle_forces(float dt, const int *triples, const float *k, const float *x, float *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n) return;
    float d = k[i] * (x[triples[3 * i]] - 2 * x[triples[3 * i + 1]] + x[triples[3 * i + 2]]) * dt;
    atomicAdd(&f[triples[3 * i + 1]], d);
}
__global__ void force_sync(float dt, const int *pairs, int pairs_size, const int *triples, int triples_size, const float *k, const float *x, float *f) {
    int default_threads = 32;
    int bond_blocks = (pairs_size / 2 + default_threads - 1) / default_threads;
    int angle_blocks = (triples_size / 3 + default_threads - 1) / default_threads;
    bond_forces<<<bond_blocks, default_threads, 0, cudaStreamFireAndForget>>>(dt, pairs, k, x, f, pairs_size / 2);
    angle_forces<<<angle_blocks, default_threads, 0, cudaStreamFireAndForget>>>(dt, triples, k, x, f, triples_size / 3);
}
void forces(float dt, const int *pairs, int np, const int *triples, int nt, const float *k, const float *x, float *f) {
    force_sync<<<1, 1>>>(dt, pairs, np, triples, nt, k, x, f);
    cudaDeviceSynchronize();
}
