// Game of life: the last block of a generation starts the next one, with the grids swapped.
#include <cstdio>
#include <cuda_runtime.h>

#define BW 8
#define AT(g, x, y) (g)[((y) + h) % h * w + ((x) + w) % w]

__device__ unsigned int blocks_done = 0;

__device__ bool am_last_block() {
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        __threadfence();
        unsigned int ticket = atomicInc(&blocks_done, gridDim.x * gridDim.y - 1);
        last = (ticket == gridDim.x * gridDim.y - 1);
    }
    __syncthreads();
    return last;
}

__global__ void generation(const unsigned char *in, unsigned char *out, int w, int h, int left) {
    const int x = blockIdx.x * BW + threadIdx.x;
    const int y = blockIdx.y * BW + threadIdx.y;
    if (x < w && y < h) {
        int n = AT(in, x - 1, y - 1) + AT(in, x, y - 1) + AT(in, x + 1, y - 1) + AT(in, x - 1, y) + AT(in, x + 1, y) +
                AT(in, x - 1, y + 1) + AT(in, x, y + 1) + AT(in, x + 1, y + 1);
        out[y * w + x] = n == 3 || (n == 2 && in[y * w + x]);
    }
    if (am_last_block() && threadIdx.x == 0 && threadIdx.y == 0 && left > 1) {
        dim3 block(BW, BW);
        dim3 grid((w + BW - 1) / BW, (h + BW - 1) / BW);
        generation<<<grid, block, 0, cudaStreamTailLaunch>>>(out, (unsigned char *)in, w, h, left - 1);
    }
}

int main() {
    const int w = 30, h = 20;
    unsigned char *a, *b;
    cudaMallocManaged(&a, w * h);
    cudaMallocManaged(&b, w * h);
    for (int i = 0; i < w * h; i++) {
        a[i] = (i * 7 + i / 11) % 3 == 0;
        b[i] = 0;
    }
    dim3 block(BW, BW);
    dim3 grid((w + BW - 1) / BW, (h + BW - 1) / BW);
    generation<<<grid, block>>>(a, b, w, h, 5);
    cudaDeviceSynchronize();
    long sum = 0;
    for (int i = 0; i < w * h; i++)
        sum = (sum * 3 + a[i] + 2 * b[i]) % 1000003;
    printf("%ld\n", sum);
}
