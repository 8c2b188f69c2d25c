// Gaussian elimination with partial pivoting; the driver needs the pivot row before it can
// go on, so it waits for every search.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define TPB 128
#define AT(A, n, r, c) ((A)[(size_t)(r) * ((n) + 1) + (c)])    /* augmented matrix */

struct Pivot { float value; int row; };

__global__ void findPivot(const float *A, int n, int k, Pivot *best)
{
    __shared__ Pivot s[TPB];
    Pivot p = {-1.0f, k};
    for (int r = k + threadIdx.x; r < n; r += TPB) {
        float v = fabsf(AT(A, n, r, k));
        if (v > p.value) { p.value = v; p.row = r; }
    }
    s[threadIdx.x] = p;
    __syncthreads();
    for (int h = TPB / 2; h > 0; h >>= 1) {
        if (threadIdx.x < h && s[threadIdx.x + h].value > s[threadIdx.x].value)
            s[threadIdx.x] = s[threadIdx.x + h];
        __syncthreads();
    }
    if (threadIdx.x == 0) *best = s[0];
}

__global__ void swapRows(float *A, int n, int a, int b)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c > n) return;
    float t = AT(A, n, a, c);
    AT(A, n, a, c) = AT(A, n, b, c);
    AT(A, n, b, c) = t;
}

__global__ void eliminate(float *A, int n, int k)
{
    // rows k+1.., columns k+1..n; the column k itself is left as it is
    int c = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    int r = k + 1 + blockIdx.y * blockDim.y + threadIdx.y;
    if (r < n && c <= n)
        AT(A, n, r, c) -= AT(A, n, r, k) / AT(A, n, k, k) * AT(A, n, k, c);
}

__global__ void solve(float *A, int n, Pivot *pivot, float *x)
{
    for (int k = 0; k < n; k++) {
        findPivot<<<1, TPB>>>(A, n, k, pivot);
        cudaDeviceSynchronize();
        if (pivot->value == 0.0f) { printf("singular\n"); return; }
        if (pivot->row != k)
            swapRows<<<(n + 1 + TPB - 1) / TPB, TPB>>>(A, n, k, pivot->row);
        if (k + 1 < n) {
            dim3 block(32, 8);
            dim3 grid((n - k + block.x - 1) / block.x, (n - k - 1 + block.y - 1) / block.y);
            eliminate<<<grid, block>>>(A, n, k);
        }
    }
    cudaDeviceSynchronize();
    for (int r = n - 1; r >= 0; r--) {
        float v = AT(A, n, r, n);
        for (int c = r + 1; c < n; c++) v -= AT(A, n, r, c) * x[c];
        x[r] = v / AT(A, n, r, r);
    }
}

#define gpu(x) do { cudaError_t e = (x); if (e) { fprintf(stderr, "gpu error: %s (line %d)\n", cudaGetErrorString(e), __LINE__); exit(1); } } while (0)

int main()
{
    const int n = 150;
    std::vector<float> A(n * (n + 1));
    std::vector<double> B(n * (n + 1));
    srand(90);
    for (size_t i = 0; i < A.size(); i++) B[i] = A[i] = rand() / (float)RAND_MAX - 0.5f;
    for (int i = 0; i < n; i++) B[i * (n + 1) + (i * 7 + 3) % n] = A[i * (n + 1) + (i * 7 + 3) % n] += 8.0f;

    float *dA, *dx; Pivot *dp;
    gpu(cudaMalloc(&dA, A.size() * sizeof(float)));
    gpu(cudaMalloc(&dx, n * sizeof(float)));
    gpu(cudaMalloc(&dp, sizeof(Pivot)));
    gpu(cudaMemcpy(dA, A.data(), A.size() * sizeof(float), cudaMemcpyHostToDevice));
    solve<<<1, 1>>>(dA, n, dp, dx);
    gpu(cudaGetLastError());
    gpu(cudaDeviceSynchronize());
    std::vector<float> x(n);
    gpu(cudaMemcpy(x.data(), dx, n * sizeof(float), cudaMemcpyDeviceToHost));

    std::vector<double> y(n);
    for (int k = 0; k < n; k++) {
        int p = k;
        for (int r = k; r < n; r++) if (std::fabs(AT(B, n, r, k)) > std::fabs(AT(B, n, p, k))) p = r;
        for (int c = 0; c <= n; c++) std::swap(AT(B, n, k, c), AT(B, n, p, c));
        for (int r = k + 1; r < n; r++) {
            double f = AT(B, n, r, k) / AT(B, n, k, k);
            for (int c = k; c <= n; c++) AT(B, n, r, c) -= f * AT(B, n, k, c);
        }
    }
    for (int r = n - 1; r >= 0; r--) {
        y[r] = AT(B, n, r, n);
        for (int c = r + 1; c < n; c++) y[r] -= AT(B, n, r, c) * y[c];
        y[r] /= AT(B, n, r, r);
    }
    for (int i = 0; i < n; i++)
        if (std::fabs(x[i] - y[i]) > 1e-3) { printf("x[%d] = %g, expected %g\n", i, x[i], y[i]); return 1; }
    printf("OK\n");
    return 0;
}
