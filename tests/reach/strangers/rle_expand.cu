#include <stdio.h>
#include <stdlib.h>

#define SHORT_RUN 8
#define LONG_RUN 256

typedef unsigned char u8;

__global__ void expand_short(u8 *out, u8 v)
{
    out[threadIdx.x] = v;
}

__global__ void expand_long(u8 *out, int n, u8 v)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = v;
}

/* dp = 0: everything in the thread (for timing only) */
__global__ void decode(const int *len, const u8 *val, const int *off, int runs, u8 *out, int dp)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < runs) {
        int n = len[i];
        u8 *o = out + off[i];
        if (!dp || n < SHORT_RUN) {
            for (int k = 0; k < n; ++k) o[k] = val[i];
        } else if (n < LONG_RUN) {
            expand_short<<<1, n>>>(o, val[i]);
        } else {
            expand_long<<<n / LONG_RUN, 128>>>(o, n, val[i]);
        }
    }
}

int main(int argc, char **argv)
{
    int runs = 2000, total = 0;
    int *len = (int *)malloc(runs * 4), *off = (int *)malloc(runs * 4), *dl, *doff;
    u8 *val = (u8 *)malloc(runs), *dv, *dout;
    for (int i = 0; i < runs; i++) {
        len[i] = i % 11 == 0 ? 300 + (i * 7) % 900 : (i * i) % 41;
        val[i] = (u8)(i * 97 >> 2);
        off[i] = total; total += len[i];
    }
    cudaMalloc(&dl, runs * 4); cudaMalloc(&doff, runs * 4); cudaMalloc(&dv, runs); cudaMalloc(&dout, total);
    cudaMemcpy(dl, len, runs * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(doff, off, runs * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(dv, val, runs, cudaMemcpyHostToDevice);
    cudaMemset(dout, 0, total);
    decode<<<(runs + 255) / 256, 256>>>(dl, dv, doff, runs, dout, argc < 2);
    u8 *out = (u8 *)malloc(total);
    cudaMemcpy(out, dout, total, cudaMemcpyDeviceToHost);
    unsigned a = 1, b = 0;
    for (int i = 0; i < total; i++) { a = (a + out[i]) % 65521; b = (b + a) % 65521; }
    printf("%d bytes adler %08x %s\n", total, b << 16 | a, cudaGetErrorString(cudaGetLastError()));
    return 0;
}
