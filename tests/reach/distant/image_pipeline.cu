// A small image pipeline scheduled on the device: the three channels are blurred in
// streams of their own, the result is combined by a tail launch.
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#define IMUL(a, b) ((a) * (b))
#define KERNEL_RADIUS 3
#define KERNEL_LENGTH (2 * KERNEL_RADIUS + 1)

__constant__ float c_Kernel[KERNEL_LENGTH];
static float h_Kernel[KERNEL_LENGTH] = {0.03f, 0.11f, 0.22f, 0.28f, 0.22f, 0.11f, 0.03f};

inline int iDivUp(int a, int b) { return (a % b != 0) ? (a / b + 1) : (a / b); }
__device__ inline unsigned dDivUp(unsigned a, unsigned b) { return (a + b - 1) / b; }

#define checkCudaErrors(v) { cudaError_t r_ = (v); if (r_) { fprintf(stderr, "CUDA error %d (%s) at line %d\n", r_, cudaGetErrorName(r_), __LINE__); exit(EXIT_FAILURE); } }

__global__ void splitKernel(const uchar4 *src, float *r, float *g, float *b, int n)
{
    int i = IMUL(blockIdx.x, blockDim.x) + threadIdx.x;
    if (i < n) { uchar4 p = src[i]; r[i] = p.x; g[i] = p.y; b[i] = p.z; }
}

__global__ void convolutionRows(const float *src, float *dst, int w, int h)
{
    int x = IMUL(blockIdx.x, blockDim.x) + threadIdx.x, y = IMUL(blockIdx.y, blockDim.y) + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0;
    for (int k = -KERNEL_RADIUS; k <= KERNEL_RADIUS; k++)
        if (x + k >= 0 && x + k < w) sum += src[y * w + x + k] * c_Kernel[KERNEL_RADIUS - k];
    dst[y * w + x] = sum;
}

__global__ void convolutionColumns(const float *src, float *dst, int w, int h)
{
    int x = IMUL(blockIdx.x, blockDim.x) + threadIdx.x, y = IMUL(blockIdx.y, blockDim.y) + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0;
    for (int k = -KERNEL_RADIUS; k <= KERNEL_RADIUS; k++)
        if (y + k >= 0 && y + k < h) sum += src[(y + k) * w + x] * c_Kernel[KERNEL_RADIUS - k];
    dst[y * w + x] = sum;
}

__global__ void luminance(const float *r, const float *g, const float *b, float *out, int n)
{
    int i = IMUL(blockIdx.x, blockDim.x) + threadIdx.x;
    if (i < n) out[i] = 0.299f * r[i] + 0.587f * g[i] + 0.114f * b[i];
}

struct Buffers {
    uchar4 *src;
    float *chan[3], *tmp[3];
    float *out;
};

__global__ void blurChannel(float *chan, float *tmp, int w, int h)
{
    dim3 threads(16, 16);
    dim3 blocks(dDivUp(w, 16), dDivUp(h, 16));
    convolutionRows<<<blocks, threads>>>(chan, tmp, w, h);
    convolutionColumns<<<blocks, threads>>>(tmp, chan, w, h);
}

__global__ void schedule(Buffers buf, int w, int h)
{
    for (int c = 0; c < 3; c++) {
        cudaStream_t s;
        if (cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) != cudaSuccess) {
            printf("no stream for channel %d\n", c);
            return;
        }
        blurChannel<<<1, 1, 0, s>>>(buf.chan[c], buf.tmp[c], w, h);
        cudaStreamDestroy(s);
    }
    // runs when all of the above are through
    luminance<<<dDivUp(w * h, 256), 256, 0, cudaStreamTailLaunch>>>(buf.chan[0], buf.chan[1], buf.chan[2], buf.out, w * h);
}

int main()
{
    const int w = 517, h = 389, n = w * h;
    std::vector<uchar4> img(n);
    srand(2009);
    for (auto &p : img) p = make_uchar4(rand() % 256, rand() % 256, rand() % 256, 255);
    Buffers buf;
    checkCudaErrors(cudaMemcpyToSymbol(c_Kernel, h_Kernel, sizeof(h_Kernel)));
    checkCudaErrors(cudaMalloc((void **)&buf.src, n * sizeof(uchar4)));
    checkCudaErrors(cudaMalloc((void **)&buf.out, n * sizeof(float)));
    for (int c = 0; c < 3; c++) {
        checkCudaErrors(cudaMalloc((void **)&buf.chan[c], n * sizeof(float)));
        checkCudaErrors(cudaMalloc((void **)&buf.tmp[c], n * sizeof(float)));
    }
    checkCudaErrors(cudaMemcpy(buf.src, img.data(), n * sizeof(uchar4), cudaMemcpyHostToDevice));

    splitKernel<<<iDivUp(n, 256), 256>>>(buf.src, buf.chan[0], buf.chan[1], buf.chan[2], n);
    schedule<<<1, 1>>>(buf, w, h);
    checkCudaErrors(cudaGetLastError());
    checkCudaErrors(cudaDeviceSynchronize());
    std::vector<float> out(n);
    checkCudaErrors(cudaMemcpy(out.data(), buf.out, n * sizeof(float), cudaMemcpyDeviceToHost));

    std::vector<double> lum(n), rows(n);
    for (int i = 0; i < n; i++) lum[i] = 0.299 * img[i].x + 0.587 * img[i].y + 0.114 * img[i].z;
    for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) {
        double s = 0;
        for (int k = -KERNEL_RADIUS; k <= KERNEL_RADIUS; k++)
            if (x + k >= 0 && x + k < w) s += lum[y * w + x + k] * h_Kernel[KERNEL_RADIUS - k];
        rows[y * w + x] = s;
    }
    for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) {
        double s = 0;
        for (int k = -KERNEL_RADIUS; k <= KERNEL_RADIUS; k++)
            if (y + k >= 0 && y + k < h) s += rows[(y + k) * w + x] * h_Kernel[KERNEL_RADIUS - k];
        if (fabs(s - out[y * w + x]) > 1e-2) {
            printf("pixel (%d,%d) is %f, expected %f\n", x, y, out[y * w + x], s);
            return 1;
        }
    }
    printf("OK\n");
    return 0;
}
