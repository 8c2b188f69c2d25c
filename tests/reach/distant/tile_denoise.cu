// Adaptive denoising: a block looks at one tile, and only if the tile is noisy its first
// thread launches the (expensive) median filter for it; otherwise the tile is copied.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned char uchar;

const int TILE = 32;
const int RADIUS = 2;
const int WINDOW = (2 * RADIUS + 1) * (2 * RADIUS + 1);

typedef struct Image_ {
    int width, height, pitch;
    uchar *data;
} Image;

__host__ __device__ inline uchar median_at(const Image &img, int x, int y)
{
    uchar w[WINDOW];
    int k = 0;
    for (int dy = -RADIUS; dy <= RADIUS; dy++)
        for (int dx = -RADIUS; dx <= RADIUS; dx++) {
            int xx = x + dx, yy = y + dy;
            xx = xx < 0 ? 0 : xx >= img.width ? img.width - 1 : xx;
            yy = yy < 0 ? 0 : yy >= img.height ? img.height - 1 : yy;
            w[k++] = img.data[yy * img.pitch + xx];
        }
    for (int i = 0; i <= WINDOW / 2; i++)
        for (int j = i + 1; j < WINDOW; j++)
            if (w[j] < w[i]) { uchar t = w[i]; w[i] = w[j]; w[j] = t; }
    return w[WINDOW / 2];
}

__global__ void median_tile(Image src, Image dst, int x0, int y0)
{
    int x = x0 + blockIdx.x * blockDim.x + threadIdx.x;
    int y = y0 + blockIdx.y * blockDim.y + threadIdx.y;
    if (x < src.width && y < src.height)
        dst.data[y * dst.pitch + x] = median_at(src, x, y);
}

__global__ void denoise(Image src, Image dst, int threshold, int *noisy_tiles)
{
    __shared__ int sum, sum2, cnt;
    int x = blockIdx.x * TILE + threadIdx.x;
    bool leader = threadIdx.x == 0 && threadIdx.y == 0;
    if (leader) { sum = 0; sum2 = 0; cnt = 0; }
    __syncthreads();
    for (int r = threadIdx.y; r < TILE; r += blockDim.y) {
        int y = blockIdx.y * TILE + r;
        if (x < src.width && y < src.height) {
            int v = src.data[y * src.pitch + x];
            atomicAdd(&sum, v);
            atomicAdd(&sum2, v * v);
            atomicAdd(&cnt, 1);
        }
    }
    __syncthreads();
    // variance * cnt^2 > threshold * cnt^2
    bool noisy = (long long)sum2 * cnt - (long long)sum * sum > (long long)threshold * cnt * cnt;
    if (noisy) {
        if (leader) {
            dim3 threads(16, 8, 1);
            dim3 blocks(TILE / threads.x, TILE / threads.y, 1);
            median_tile<<<blocks, threads>>>(src, dst, blockIdx.x * TILE, blockIdx.y * TILE);
            if (cudaGetLastError() != cudaSuccess)
                printf("tile %d,%d: launch failed\n", blockIdx.x, blockIdx.y);
            atomicAdd(noisy_tiles, 1);
        }
    } else {
        for (int r = threadIdx.y; r < TILE; r += blockDim.y) {
            int y = blockIdx.y * TILE + r;
            if (x < src.width && y < src.height)
                dst.data[y * dst.pitch + x] = src.data[y * src.pitch + x];
        }
    }
}

int main(int argc, char **argv)
{
    Image h, src, dst;
    h.width = 1000; h.height = 600; h.pitch = 1024;
    size_t bytes = (size_t)h.pitch * h.height;
    h.data = (uchar *)calloc(bytes, 1);
    srand(11);
    for (int y = 0; y < h.height; y++)
        for (int x = 0; x < h.width; x++) {
            int v = 100 + (x + y) / 40;
            if ((x / 100 + y / 150) % 3 == 0 && rand() % 8 == 0) v = rand() % 256;
            h.data[y * h.pitch + x] = (uchar)v;
        }
    src = dst = h;
    int *d_noisy, noisy = 0;
    cudaMalloc((void **)&src.data, bytes);
    cudaMalloc((void **)&dst.data, bytes);
    cudaMalloc((void **)&d_noisy, sizeof(int));
    cudaMemcpy(src.data, h.data, bytes, cudaMemcpyHostToDevice);
    cudaMemset(dst.data, 0, bytes);
    cudaMemset(d_noisy, 0, sizeof(int));

    const int threshold = 60;
    dim3 block(TILE, 8);
    dim3 grid((h.width + TILE - 1) / TILE, (h.height + TILE - 1) / TILE);
    denoise<<<grid, block>>>(src, dst, threshold, d_noisy);
    cudaError_t err = cudaDeviceSynchronize();
    if (err != cudaSuccess) { printf("denoise: %s\n", cudaGetErrorString(err)); return 2; }

    uchar *out = (uchar *)malloc(bytes);
    cudaMemcpy(out, dst.data, bytes, cudaMemcpyDeviceToHost);
    cudaMemcpy(&noisy, d_noisy, sizeof(int), cudaMemcpyDeviceToHost);
    int expect_noisy = 0;
    for (int ty = 0; ty < h.height; ty += TILE)
        for (int tx = 0; tx < h.width; tx += TILE) {
            long long s = 0, s2 = 0, c = 0;
            for (int y = ty; y < ty + TILE && y < h.height; y++)
                for (int x = tx; x < tx + TILE && x < h.width; x++) {
                    int v = h.data[y * h.pitch + x];
                    s += v; s2 += v * v; c++;
                }
            bool n = s2 * c - s * s > threshold * c * c;
            expect_noisy += n;
            for (int y = ty; y < ty + TILE && y < h.height; y++)
                for (int x = tx; x < tx + TILE && x < h.width; x++) {
                    uchar want = n ? median_at(h, x, y) : h.data[y * h.pitch + x];
                    if (out[y * h.pitch + x] != want) {
                        printf("pixel (%d,%d): %d, expected %d\n", x, y, out[y * h.pitch + x], want);
                        return 1;
                    }
                }
        }
    printf(noisy == expect_noisy ? "OK, %d noisy tiles\n" : "wrong count %d\n", noisy);
    cudaFree(src.data); cudaFree(dst.data); cudaFree(d_noisy);
    free(h.data); free(out);
    return noisy != expect_noisy;
}
