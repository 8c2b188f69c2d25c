#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

namespace orbit {
namespace cuda {

__device__ __forceinline__ float uniform(unsigned int seed, unsigned int seq) {
    unsigned int x = seed * 747796405u + seq * 2891336453u;
    x = ((x >> ((x >> 28u) + 4u)) ^ x) * 277803737u;
    return ((x >> 22u) ^ x) * 2.3283064e-10f;
}

__global__ void gen_noise(float *__restrict__ noise, unsigned int seed, unsigned int init_seq) {
    const unsigned int tidx = blockIdx.x * blockDim.x + threadIdx.x;
    noise[tidx] = uniform(seed, init_seq + tidx);
}

__global__ void gen_color(uint8_t *__restrict__ colors, unsigned int seed, unsigned int init_seq) {
    const unsigned int tidx = threadIdx.x;
    for (int i = 0; i < 3; i++)
        colors[tidx * 3 + i] = uniform(seed, init_seq + tidx) * 255;
}

// <<<NUM_BLOCKS=1, NUM_THREADS=1>>>
__global__ void rng(float *__restrict__ nx, uint8_t *__restrict__ colors, const int nvertex, const int norbits, unsigned int seed) {
    int totalvertex = norbits * nvertex;

    // Generate random noise
    int NUM_THREADS = nvertex;
    int NUM_BLOCKS = norbits;
    gen_noise<<<NUM_BLOCKS, NUM_THREADS, 0, cudaStreamFireAndForget>>>(nx, seed, 0);

    // Generate random colors
    NUM_THREADS = norbits;
    NUM_BLOCKS = 1;
    gen_color<<<NUM_BLOCKS, NUM_THREADS, 0, cudaStreamFireAndForget>>>(colors, seed, 2 * totalvertex);
}

} // namespace cuda
} // namespace orbit

int main() {
    const int nvertex = 24, norbits = 5;
    float *nx;
    uint8_t *colors;
    cudaMallocManaged(&nx, nvertex * norbits * sizeof(float));
    cudaMallocManaged(&colors, norbits * 3);
    orbit::cuda::rng<<<1, 1>>>(nx, colors, nvertex, norbits, 42);
    cudaDeviceSynchronize();
    double s = 0;
    for (int i = 0; i < nvertex * norbits; i++)
        s += nx[i] * (i % 7);
    for (int i = 0; i < norbits * 3; i++)
        s += colors[i];
    printf("%.4f\n", s);
    return 0;
}
