// The Mandelbrot set by Mariani and Silver: rectangles whose border has one dwell are filled.
#include <cstdio>
#include <cassert>
#include <cuda_runtime.h>

#define MAX_DWELL 32
#define BSX 16
#define BSY 4
#define MAX_DEPTH 3
#define MIN_SIZE 8
#define SUBDIV 2
#define NEUT_DWELL (MAX_DWELL + 1)
#define DIFF_DWELL (-1)

#define cucheck_dev(call)                                                        \
    {                                                                            \
        cudaError_t cucheck_err = (call);                                        \
        if (cucheck_err != cudaSuccess) {                                        \
            const char* err_str = cudaGetErrorString(cucheck_err);               \
            printf("%s (%d): %s\n", __FILE__, __LINE__, err_str);                \
            assert(0);                                                           \
        }                                                                        \
    }

struct cplx {
    __host__ __device__ cplx(float re, float im = 0) { this->re = re; this->im = im; }
    float re, im;
};
inline __host__ __device__ cplx operator+(const cplx& a, const cplx& b) { return cplx(a.re + b.re, a.im + b.im); }
inline __host__ __device__ cplx operator*(const cplx& a, const cplx& b) { return cplx(a.re * b.re - a.im * b.im, a.im * b.re + a.re * b.im); }
inline __host__ __device__ float abs2(const cplx& a) { return a.re * a.re + a.im * a.im; }

__host__ __device__ int divup(int x, int y) { return x / y + (x % y ? 1 : 0); }

__device__ int pixel_dwell(int w, int h, int x, int y) {
    cplx c(-1.5f + 2.0f * x / w, -1.0f + 2.0f * y / h);
    cplx z = c;
    int dwell = 0;
    while (dwell < MAX_DWELL && abs2(z) < 4.0f) { z = z * z + c; dwell++; }
    return dwell;
}

__device__ int same_dwell(int d1, int d2) {
    if (d1 == d2) return d1;
    else if (d1 == NEUT_DWELL || d2 == NEUT_DWELL) return min(d1, d2);
    else return DIFF_DWELL;
}

__device__ int border_dwell(int w, int h, int x0, int y0, int d) {
    int tid = threadIdx.y * blockDim.x + threadIdx.x;
    int bs = blockDim.x * blockDim.y;
    int comm_dwell = NEUT_DWELL;
    for (int r = tid; r < d; r += bs) {
        for (int b = 0; b < 4; b++) {
            int x = b % 2 != 0 ? x0 + r : (b == 0 ? x0 + d - 1 : x0);
            int y = b % 2 == 0 ? y0 + r : (b == 1 ? y0 + d - 1 : y0);
            comm_dwell = same_dwell(comm_dwell, pixel_dwell(w, h, x, y));
        }
    }
    __shared__ int ldwells[BSX * BSY];
    int nt = min(d, BSX * BSY);
    if (tid < nt) ldwells[tid] = comm_dwell;
    __syncthreads();
    for (; nt > 1; nt /= 2) {
        if (tid < nt / 2) ldwells[tid] = same_dwell(ldwells[tid], ldwells[tid + nt / 2]);
        __syncthreads();
    }
    return ldwells[0];
}

__global__ void dwell_fill(int* dwells, int w, int x0, int y0, int d, int dwell) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < d && y < d) { x += x0; y += y0; dwells[y * w + x] = dwell; }
}

__global__ void mandelbrot_pixel(int* dwells, int w, int h, int x0, int y0, int d) {
    int x = threadIdx.x + blockDim.x * blockIdx.x;
    int y = threadIdx.y + blockDim.y * blockIdx.y;
    if (x < d && y < d) { x += x0; y += y0; dwells[y * w + x] = pixel_dwell(w, h, x, y); }
}

__global__ void mandelbrot_block(int* dwells, int w, int h, int x0, int y0, int d, int depth) {
    x0 += d * blockIdx.x, y0 += d * blockIdx.y;
    int common = border_dwell(w, h, x0, y0, d);
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        if (common != DIFF_DWELL) {
            dim3 bs(BSX, BSY), grid(divup(d, BSX), divup(d, BSY));
            dwell_fill<<<grid, bs>>>(dwells, w, x0, y0, d, common);
        } else if (depth + 1 < MAX_DEPTH && d / SUBDIV > MIN_SIZE) {
            dim3 bs(blockDim.x, blockDim.y), grid(SUBDIV, SUBDIV);
            mandelbrot_block<<<grid, bs>>>(dwells, w, h, x0, y0, d / SUBDIV, depth + 1);
        } else {
            dim3 bs(BSX, BSY), grid(divup(d, BSX), divup(d, BSY));
            mandelbrot_pixel<<<grid, bs>>>(dwells, w, h, x0, y0, d);
        }
        cucheck_dev(cudaGetLastError());
    }
}

int main() {
    const int w = 64, h = 64;
    int* dwells;
    cudaMallocManaged(&dwells, w * h * sizeof(int));
    dim3 bs(BSX, BSY), grid(2, 2);
    mandelbrot_block<<<grid, bs>>>(dwells, w, h, 0, 0, w / 2, 0);
    cudaDeviceSynchronize();
    long sum = 0;
    for (int i = 0; i < w * h; ++i) sum += dwells[i] * (i % 7 + 1);
    printf("%ld\n", sum);
}
