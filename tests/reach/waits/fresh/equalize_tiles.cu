// Histogram equalisation per tile. A block owns a tile; its first thread has the
// histogram made by a child grid, everybody waits, then the block maps the pixels.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define T 64
#define LEVELS 64
#define IW 512
#define IH 256

__global__ void tileHistogram(const unsigned char *img, int tx, int ty, int *hist)
{
    int x = tx + threadIdx.x;
    int y = ty + blockIdx.x;
    atomicAdd(&hist[img[y * IW + x]], 1);
}

__global__ void equalize(const unsigned char *img, unsigned char *out, int *hists)
{
    __shared__ int cdf[LEVELS];
    int *hist = hists + (blockIdx.y * gridDim.x + blockIdx.x) * LEVELS;
    if (threadIdx.x == 0) {
        tileHistogram<<<T, T>>>(img, blockIdx.x * T, blockIdx.y * T, hist);
        cudaDeviceSynchronize();
        int acc = 0;
        for (int l = 0; l < LEVELS; l++) {
            acc += ((volatile int *)hist)[l];
            cdf[l] = acc;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < T * T; i += blockDim.x) {
        int p = (blockIdx.y * T + i / T) * IW + blockIdx.x * T + i % T;
        out[p] = (unsigned char)(cdf[img[p]] * (LEVELS - 1) / (T * T));
    }
}

int main()
{
    static unsigned char img[IW * IH], got[IW * IH], want[IW * IH];
    srand(12);
    for (int i = 0; i < IW * IH; i++) img[i] = (rand() % 20 + i % IW / 16) % LEVELS;
    unsigned char *di, *dout;
    int *dh;
    const int tiles = (IW / T) * (IH / T);
    cudaMalloc(&di, sizeof img);
    cudaMalloc(&dout, sizeof img);
    cudaMalloc(&dh, tiles * LEVELS * sizeof(int));
    cudaMemset(dh, 0, tiles * LEVELS * sizeof(int));
    cudaMemcpy(di, img, sizeof img, cudaMemcpyHostToDevice);
    equalize<<<dim3(IW / T, IH / T), 128>>>(di, dout, dh);
    cudaError_t err = cudaDeviceSynchronize();
    if (err != cudaSuccess) { printf("%s\n", cudaGetErrorString(err)); return 1; }
    cudaMemcpy(got, dout, sizeof got, cudaMemcpyDeviceToHost);

    for (int ty = 0; ty < IH; ty += T)
        for (int tx = 0; tx < IW; tx += T) {
            int h[LEVELS] = {0};
            for (int i = 0; i < T * T; i++) h[img[(ty + i / T) * IW + tx + i % T]]++;
            for (int l = 1; l < LEVELS; l++) h[l] += h[l - 1];
            for (int i = 0; i < T * T; i++) {
                int p = (ty + i / T) * IW + tx + i % T;
                want[p] = (unsigned char)(h[img[p]] * (LEVELS - 1) / (T * T));
            }
        }
    int bad = 0;
    for (int i = 0; i < IW * IH; i++) bad += got[i] != want[i];
    if (bad) printf("%d pixels differ\n", bad);
    else printf("OK\n");
    return bad != 0;
}
