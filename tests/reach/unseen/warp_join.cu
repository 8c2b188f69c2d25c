// A warp looks up its bucket together; its first lane launches the probe.
#include <cstdio>
#include <cuda_runtime.h>
#define WARP_SIZE 32
#define FULL_MASK 0xffffffffu

__global__ void probe_bucket(const int* keys, const int* begin, int* matches, int bucket, int key, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && keys[begin[bucket] + i] == key) atomicAdd(&matches[bucket], 1);
}

__global__ void join(const int* keys, const int* begin, const int* probe, int* matches, int buckets) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / WARP_SIZE;
    int lane_id = threadIdx.x % WARP_SIZE;
    if (warp >= buckets) return;
    int mine = lane_id < 4 ? probe[warp * 4 + lane_id] : 0;
    int best = __reduce_max_sync(FULL_MASK, mine);
    int n = begin[warp + 1] - begin[warp];
    if (lane_id == 0 && n > 0) {
        cudaStream_t s;
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        probe_bucket<<<(n + 63) / 64, 64, 0, s>>>(keys, begin, matches, warp, best, n);
        cudaStreamDestroy(s);
    }
}

void launch_join(const int* keys, const int* begin, const int* probe, int* matches, int buckets) {
    const int per_block = 4;
    join<<<(buckets + per_block - 1) / per_block, per_block * WARP_SIZE>>>(keys, begin, probe, matches, buckets);
}
