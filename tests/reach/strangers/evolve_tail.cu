// Genetic search for a bit string, generations chained on the device with tail launches.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>

namespace ga {

constexpr int kPopulation = 256;
constexpr int kWords = 4;

struct Genome { uint32_t w[kWords]; };

struct World {
    Genome* pop[2];
    int* fitness;
    int* best;
    uint32_t target[kWords];
    int generations;
    int done;
};

__device__ __forceinline__ uint32_t mix(uint32_t x) {
    x ^= x >> 16; x *= 0x7feb352dU; x ^= x >> 15; x *= 0x846ca68bU; x ^= x >> 16;
    return x;
}

__global__ void evaluate(World* w, int cur) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= kPopulation) return;
    int f = 0;
    for (int k = 0; k < kWords; ++k) f += 32 - __popc(w->pop[cur][i].w[k] ^ w->target[k]);
    w->fitness[i] = f;
    atomicMax(w->best, f);
}

__global__ void breed(World* w, int cur, int gen) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= kPopulation) return;
    const uint32_t r = mix(gen * 65537u + i);
    int a = r % kPopulation, b = (r >> 8) % kPopulation, c = (r >> 16) % kPopulation;
    if (w->fitness[b] > w->fitness[a]) a = b;
    if (w->fitness[c] < w->fitness[i]) c = i;
    for (int k = 0; k < kWords; ++k) {
        const uint32_t m = mix(r + k);
        uint32_t v = (w->pop[cur][a].w[k] & m) | (w->pop[cur][c].w[k] & ~m);
        if (((m >> 5) & 3) == 0) v ^= 1u << (m >> 27);
        w->pop[cur ^ 1][i].w[k] = v;
    }
}

__global__ void generation(World* w, int cur, int gen);

__global__ void select(World* w, int cur, int gen) {
    w->generations = gen;
    if (*w->best >= 120 || gen >= 300) { w->done = 1; return; }
    breed<<<kPopulation / 64, 64, 0, cudaStreamFireAndForget>>>(w, cur, gen);
    generation<<<1, 1, 0, cudaStreamTailLaunch>>>(w, cur ^ 1, gen + 1);
}

__global__ void generation(World* w, int cur, int gen) {
    evaluate<<<kPopulation / 64, 64, 0, cudaStreamFireAndForget>>>(w, cur);
    select<<<1, 1, 0, cudaStreamTailLaunch>>>(w, cur, gen);
}

} // namespace ga

int main() {
    using namespace ga;
    World* w;
    cudaMallocManaged(&w, sizeof(World));
    for (auto& p : w->pop) cudaMallocManaged(&p, kPopulation * sizeof(Genome));
    cudaMallocManaged(&w->fitness, kPopulation * sizeof(int));
    cudaMallocManaged(&w->best, sizeof(int));
    *w->best = 0; w->done = 0;
    uint32_t s = 42;
    for (int k = 0; k < kWords; ++k) w->target[k] = s = s * 1664525u + 1013904223u;
    for (int i = 0; i < kPopulation; ++i)
        for (auto& x : w->pop[0][i].w) x = s = s * 1664525u + 1013904223u;
    generation<<<1, 1>>>(w, 0, 0);
    const auto err = cudaDeviceSynchronize();
    unsigned long long sum = 0;
    for (int i = 0; i < kPopulation; ++i) sum = sum * 31 + w->fitness[i];
    std::printf("generations %d best %d checksum %llu %s\n", w->generations, *w->best, sum, cudaGetErrorString(err));
}
