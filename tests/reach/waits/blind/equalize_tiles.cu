/* Local histogram equalisation: a block per tile. Thread 0 has the tile's histogram
   made by a child grid, the whole block then scans it in shared memory and maps the pixels. */
#include <cstdio>
#include <cstdlib>
#include <vector>

typedef unsigned char uchar;
#define BINS 256
#define TILE 64

__global__ void histTile(const uchar *img, int pitch, int x0, int y0, unsigned *hist)
{
    __shared__ unsigned local[BINS];
    int t = threadIdx.y * blockDim.x + threadIdx.x;
    for (int b = t; b < BINS; b += blockDim.x * blockDim.y) local[b] = 0;
    __syncthreads();
    int x = x0 + blockIdx.x * blockDim.x + threadIdx.x;
    int y = y0 + blockIdx.y * blockDim.y + threadIdx.y;
    atomicAdd(&local[img[y * pitch + x]], 1u);
    __syncthreads();
    for (int b = t; b < BINS; b += blockDim.x * blockDim.y)
        if (local[b]) atomicAdd(&hist[b], local[b]);
}

__global__ void equalize(uchar *img, int pitch, unsigned *hists)
{
    __shared__ unsigned cdf[BINS];
    __shared__ int failed;
    const int x0 = blockIdx.x * TILE, y0 = blockIdx.y * TILE;
    unsigned *hist = hists + (blockIdx.y * gridDim.x + blockIdx.x) * BINS;
    const int t = threadIdx.x;          // BINS threads

    hist[t] = 0;
    __syncthreads();
    if (t == 0) {
        dim3 tb(32, 8), gb(TILE / 32, TILE / 8);
        histTile<<<gb, tb>>>(img, pitch, x0, y0, hist);
        cudaDeviceSynchronize();
        failed = cudaGetLastError() != cudaSuccess;
    }
    __syncthreads();
    if (failed) return;

    cdf[t] = hist[t];
    __syncthreads();
    for (int d = 1; d < BINS; d <<= 1) {
        unsigned v = t >= d ? cdf[t - d] : 0;
        __syncthreads();
        cdf[t] += v;
        __syncthreads();
    }
    for (int p = t; p < TILE * TILE; p += BINS) {
        uchar *px = img + (y0 + p / TILE) * pitch + x0 + p % TILE;
        *px = (uchar)((cdf[*px] * 255u) / (TILE * TILE));
    }
}

int main()
{
    const int w = 256, h = 192;
    std::vector<uchar> img(w * h), out(w * h);
    for (int i = 0; i < w * h; i++) img[i] = (uchar)(((i % w) * 3 + (i / w) * (i % 7)) % 120 + 40);
    uchar *d;
    unsigned *dh;
    cudaMalloc(&d, w * h);
    cudaMalloc(&dh, (w / TILE) * (h / TILE) * BINS * sizeof(unsigned));
    cudaMemcpy(d, img.data(), w * h, cudaMemcpyHostToDevice);
    equalize<<<dim3(w / TILE, h / TILE), BINS>>>(d, w, dh);
    cudaMemcpy(out.data(), d, w * h, cudaMemcpyDeviceToHost);
    unsigned long sum = 0, ref = 0;
    for (int y0 = 0; y0 < h; y0 += TILE)
        for (int x0 = 0; x0 < w; x0 += TILE) {
            unsigned cdf[BINS] = {0};
            for (int p = 0; p < TILE * TILE; p++) cdf[img[(y0 + p / TILE) * w + x0 + p % TILE]]++;
            for (int b = 1; b < BINS; b++) cdf[b] += cdf[b - 1];
            for (int p = 0; p < TILE * TILE; p++) {
                int i = (y0 + p / TILE) * w + x0 + p % TILE;
                ref += (unsigned long)(uchar)(cdf[img[i]] * 255u / (TILE * TILE)) * (i + 1);
                sum += (unsigned long)out[i] * (i + 1);
            }
        }
    printf("checksum %lu expected %lu\n", sum, ref);
    return sum != ref;
}
