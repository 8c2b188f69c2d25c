#include <cstdio>
#include <cuda_runtime.h>
// The lightest edge that leaves a component (Boruvka).
#if CUDART_VERSION >= 12000
#define CHILD_STREAM cudaStreamFireAndForget
#else
#define CHILD_STREAM 0
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 600
#error "needs 64-bit atomicMin"
#endif

__global__ void find_lightest(const int* row, const int* col, const int* weight, const int* comp, unsigned long long* best, int v, int deg) {
    int k = threadIdx.x + blockIdx.x * blockDim.x;
    if (k >= deg) return;
    int e = row[v] + k;
    if (comp[col[e]] != comp[v]) {
        unsigned long long packed = ((unsigned long long)weight[e] << 32) | (unsigned)e;
        atomicMin(&best[comp[v]], packed);
    }
}

__global__ void mst_step(const int* row, const int* col, const int* weight, const int* comp, unsigned long long* best, int n) {
    int v = threadIdx.x + blockIdx.x * blockDim.x;
    if (v < n) {
        int deg = row[v + 1] - row[v];
#if CUDART_VERSION >= 12000
        if (deg > 0)
            find_lightest<<<(deg + 127) / 128, 128, 0, CHILD_STREAM>>>(row, col, weight, comp, best, v, deg);
#else
        if (deg > 0)
            find_lightest<<<(deg + 127) / 128, 128>>>(row, col, weight, comp, best, v, deg);
#endif
    }
}

int main() {
    const int n = 20;
    int *row, *col, *weight, *comp;
    unsigned long long* best;
    cudaMallocManaged(&row, (n + 1) * sizeof(int));
    cudaMallocManaged(&col, n * 6 * sizeof(int));
    cudaMallocManaged(&weight, n * 6 * sizeof(int));
    cudaMallocManaged(&comp, n * sizeof(int));
    cudaMallocManaged(&best, n * sizeof(*best));
    int e = 0;
    for (int v = 0; v < n; ++v) {
        row[v] = e;
        comp[v] = v / 3;
        best[v] = ~0ull;
        for (int k = 0; k < v % 6; ++k) { col[e] = (v + 2 * k + 1) % n; weight[e++] = (v * 5 + k * 11) % 23; }
    }
    row[n] = e;
    mst_step<<<2, 16>>>(row, col, weight, comp, best, n);
    cudaDeviceSynchronize();
    for (int v = 0; v < n; ++v) printf("%llu ", best[v]);
    printf("\n");
}
