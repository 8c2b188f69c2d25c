// A reduction that halves its block until two elements are left.
#include <cstdio>
#include <cuda_runtime.h>
__global__ void reduceRecursive(int *g_idata, int *g_odata, int iStride, int iDim) {
    int *idata = g_idata + blockIdx.x * iDim;
    if (iStride == 1 && threadIdx.x == 0) {
        g_odata[blockIdx.x] = idata[0] + idata[1];
        return;
    }
    idata[threadIdx.x] += idata[threadIdx.x + iStride];
    if (threadIdx.x == 0 && blockIdx.x == 0)
        reduceRecursive<<<gridDim.x, iStride / 2, 0, cudaStreamTailLaunch>>>(g_idata, g_odata, iStride / 2, iDim);
}
int main() {
    int *in, *out;
    cudaMallocManaged(&in, 256 * sizeof(int));
    cudaMallocManaged(&out, 4 * sizeof(int));
    for (int i = 0; i < 256; ++i) in[i] = i % 7;
    reduceRecursive<<<4, 32>>>(in, out, 32, 64);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
}
