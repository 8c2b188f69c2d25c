// What a launch's stream is depends on the toolkit, as libraries do it.
#include <cstdio>
#include <cuda_runtime.h>
#if CUDART_VERSION >= 12000 && !defined(NO_CDP2)
#define HAVE_FIRE_AND_FORGET 1
#endif
#if defined(__CUDACC_VER_MAJOR__) && (__CUDACC_VER_MAJOR__ < 9)
#error "too old"
#endif

__device__ int element() {
#if defined(__CUDA_ARCH__)
    return threadIdx.x + blockIdx.x * blockDim.x;
#else
    return 0;
#endif
}

__global__ void fill(int *p, int v, int n) {
    int i = element();
    if (i < n) p[i] = v;
}

__global__ void fill_rows(int *p, const int *n, int rows, int pitch) {
    int r = element();
    if (r >= rows) return;
#if HAVE_FIRE_AND_FORGET
    if (n[r] > 0) fill<<<(n[r] + 31) / 32, 32, 0, cudaStreamFireAndForget>>>(p + r * pitch, r, n[r]);
#else
    if (n[r] > 0) fill<<<(n[r] + 31) / 32, 32>>>(p + r * pitch, r, n[r]);
#endif
}

int main() {
    int *p, *n;
    cudaMallocManaged(&p, 10 * 50 * sizeof(int));
    cudaMallocManaged(&n, 10 * sizeof(int));
    for (int i = 0; i < 500; ++i) p[i] = -1;
    for (int r = 0; r < 10; ++r) n[r] = r * 5;
    fill_rows<<<1, 32>>>(p, n, 10, 50);
    cudaDeviceSynchronize();
    long sum = 0;
    for (int i = 0; i < 500; ++i) sum += p[i] * (i % 13);
    printf("%ld\n", sum);
}
