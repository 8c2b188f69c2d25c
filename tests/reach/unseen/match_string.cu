#include <stdio.h>
#include <cuda_runtime.h>
#define MAX_PATTERN 16
__constant__ char d_pattern[MAX_PATTERN];
__device__ int d_hits;

__global__ void compare(const char text[], int flags[], int pos, int m) {
    int j = threadIdx.x;
    if (j < m && text[pos + j] != d_pattern[j]) flags[pos] = 0;
}

__global__ void search(const char text[], int flags[], int n, int m) {
    int tid = blockDim.x * blockIdx.x + threadIdx.x;
    if (tid <= n - m && text[tid] == d_pattern[0]) {
        flags[tid] = 1;
        compare<<<1, m>>>(text, flags, tid, m);
        cudaError_t e = cudaGetLastError();
        if (e != cudaSuccess) printf("thread %d: %s\n", tid, cudaGetErrorString(e));
    }
}

int main() {
    const char* text = "abracadabra abracadabra";
    const char* pattern = "abra";
    char* t;
    int* flags;
    int n = 23, m = 4;
    cudaMallocManaged(&t, n);
    cudaMallocManaged(&flags, n * sizeof(int));
    for (int i = 0; i < n; ++i) { t[i] = text[i]; flags[i] = 0; }
    cudaMemcpyToSymbol(d_pattern, pattern, m);
    search<<<1, 32>>>(t, flags, n, m);
    cudaDeviceSynchronize();
    for (int i = 0; i < n; ++i) printf("%d", flags[i]);
    printf("\n");
}
