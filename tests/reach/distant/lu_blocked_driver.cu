// Blocked LU factorization without pivoting. One device thread drives the whole
// factorization so that the host is free meanwhile.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define NB 16
#define CUDA_SAFE(x) { auto e = (x); if (e != cudaSuccess) { fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e)); return 1; } }

// unblocked LU of the NB x NB diagonal block
__global__ void getf2(double *A, int lda)
{
    __shared__ double s[NB][NB + 1];
    const int tx = threadIdx.x;                 // column
    for (int r = 0; r < NB; ++r) s[r][tx] = A[r * lda + tx];
    __syncthreads();
    for (int k = 0; k < NB - 1; ++k) {
        if (tx > k) s[tx][k] /= s[k][k];        // tx plays the row here
        __syncthreads();
        if (tx > k)
            for (int r = k + 1; r < NB; ++r) s[r][tx] -= s[r][k] * s[k][tx];
        __syncthreads();
    }
    for (int r = 0; r < NB; ++r) A[r * lda + tx] = s[r][tx];
}

// row panel: U12 = L11^-1 A12, one thread per column
__global__ void trsm_row(const double *__restrict__ diag, double *panel, int lda, int ncols)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= ncols) return;
    double x[NB];
#pragma unroll
    for (int r = 0; r < NB; ++r) {
        double v = panel[r * lda + c];
        for (int k = 0; k < r; ++k) v -= diag[r * lda + k] * x[k];
        x[r] = v;
        panel[r * lda + c] = v;
    }
}

// column panel: L21 = A21 U11^-1, one thread per row
__global__ void trsm_col(const double *__restrict__ diag, double *panel, int lda, int nrows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= nrows) return;
    double x[NB];
#pragma unroll
    for (int c = 0; c < NB; ++c) {
        double v = panel[r * lda + c];
        for (int k = 0; k < c; ++k) v -= x[k] * diag[k * lda + c];
        x[c] = v / diag[c * lda + c];
        panel[r * lda + c] = x[c];
    }
}

__global__ void gemm_update(const double *L, const double *U, double *C, int lda, int n)
{
    __shared__ double ls[NB][NB], us[NB][NB];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * NB + ty, col = blockIdx.x * NB + tx;
    ls[ty][tx] = row < n ? L[row * lda + tx] : 0.0;
    us[ty][tx] = col < n ? U[ty * lda + col] : 0.0;
    __syncthreads();
    if (row >= n || col >= n) return;
    double acc = 0;
    for (int k = 0; k < NB; ++k) acc += ls[ty][k] * us[k][tx];
    C[row * lda + col] -= acc;
}

__global__ void lu_driver(double *A, int n, int *status)
{
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    for (int k = 0; k < n; k += NB) {
        double *Akk = A + k * n + k;
        const int rest = n - k - NB;
        getf2<<<1, NB>>>(Akk, n);
        if (rest > 0) {
            const int threads = 64;
            const int blocks = (rest + threads - 1) / threads;
            trsm_row<<<blocks, threads>>>(Akk, Akk + NB, n, rest);
            trsm_col<<<blocks, threads>>>(Akk, Akk + NB * n, n, rest);
            dim3 tile(NB, NB);
            dim3 tiles(rest / NB, rest / NB);
            gemm_update<<<tiles, tile>>>(Akk + NB * n, Akk + NB, Akk + NB * n + NB, n, rest);
        }
        cudaError_t e = cudaGetLastError();
        if (e != cudaSuccess) {
            printf("lu_driver: step %d: %s\n", k, cudaGetErrorString(e));
            *status = 1;
            return;
        }
    }
    *status = 0;
}

int main(int argc, char **argv)
{
    int n = 256;
    if (argc > 1) n = atoi(argv[1]) / NB * NB;
    std::vector<double> A(n * n), ref, out(n * n);
    srand(3);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            A[i * n + j] = (i == j ? n : 0) + (double)rand() / RAND_MAX;
    double *dA; int *dStatus, status = -1;
    CUDA_SAFE(cudaMalloc(&dA, A.size() * sizeof(double)));
    CUDA_SAFE(cudaMalloc(&dStatus, sizeof(int)));
    CUDA_SAFE(cudaMemcpy(dA, A.data(), A.size() * sizeof(double), cudaMemcpyHostToDevice));

    lu_driver<<<1, 1>>>(dA, n, dStatus);
    CUDA_SAFE(cudaGetLastError());
    CUDA_SAFE(cudaMemcpy(&status, dStatus, sizeof(int), cudaMemcpyDeviceToHost));
    CUDA_SAFE(cudaMemcpy(out.data(), dA, A.size() * sizeof(double), cudaMemcpyDeviceToHost));
    if (status) { printf("driver failed\n"); return 1; }

    ref = A;
    for (int k = 0; k < n; ++k)
        for (int i = k + 1; i < n; ++i) {
            ref[i * n + k] /= ref[k * n + k];
            for (int j = k + 1; j < n; ++j) ref[i * n + j] -= ref[i * n + k] * ref[k * n + j];
        }
    double worst = 0;
    for (int i = 0; i < n * n; ++i) worst = std::fmax(worst, std::fabs(ref[i] - out[i]));
    printf(worst < 1e-9 * n ? "OK %g\n" : "MISMATCH %g\n", worst);
    CUDA_SAFE(cudaFree(dA));
    CUDA_SAFE(cudaFree(dStatus));
    return worst < 1e-9 * n ? 0 : 1;
}
