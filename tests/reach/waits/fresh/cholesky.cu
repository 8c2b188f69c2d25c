// Right-looking Cholesky, one column at a time, driven from the device.
#include <cstdio>
#include <cmath>
#include <vector>

namespace la {

struct Matrix {
    double *a;
    int n;
    __host__ __device__ double &operator()(int i, int j) const { return a[j * n + i]; }
};

__global__ void scaleColumn(Matrix A, int k)
{
    int i = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < A.n) A(i, k) /= A(k, k);
}

__global__ void trailingUpdate(Matrix A, int k)
{
    int i = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    int j = k + 1 + blockIdx.y * blockDim.y + threadIdx.y;
    if (i < A.n && j <= i) A(i, j) -= A(i, k) * A(j, k);
}

template <int BX, int BY>
__global__ void factor(Matrix A, int *info)
{
    for (int k = 0; k < A.n; ++k) {
        double d = *(volatile double *)&A(k, k);
        if (!(d > 0)) { *info = k + 1; return; }
        A(k, k) = sqrt(d);
        int rest = A.n - k - 1;
        if (rest == 0) break;
        scaleColumn<<<(rest + 63) / 64, 64>>>(A, k);
        trailingUpdate<<<dim3((rest + BX - 1) / BX, (rest + BY - 1) / BY), dim3(BX, BY)>>>(A, k);
        cudaError_t e = cudaDeviceSynchronize();
        if (e != cudaSuccess) { *info = -(int)e; return; }
    }
}

}  // namespace la

int main()
{
    const int n = 192;
    std::vector<double> h(n * n), L;
    for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i) h[j * n + i] = 1.0 / (1 + std::abs(i - j)) + (i == j ? 4.0 : 0.0);
    L = h;
    la::Matrix A{nullptr, n}, R{L.data(), n};
    int *dinfo, info = 0;
    cudaMalloc(&A.a, n * n * sizeof(double));
    cudaMalloc(&dinfo, sizeof(int));
    cudaMemset(dinfo, 0, sizeof(int));
    cudaMemcpy(A.a, h.data(), n * n * sizeof(double), cudaMemcpyHostToDevice);
    la::factor<16, 8><<<1, 1>>>(A, dinfo);
    if (cudaError_t e = cudaDeviceSynchronize()) { std::printf("%s\n", cudaGetErrorString(e)); return 1; }
    cudaMemcpy(h.data(), A.a, n * n * sizeof(double), cudaMemcpyDeviceToHost);
    cudaMemcpy(&info, dinfo, sizeof info, cudaMemcpyDeviceToHost);

    for (int k = 0; k < n; ++k) {
        R(k, k) = std::sqrt(R(k, k));
        for (int i = k + 1; i < n; ++i) R(i, k) /= R(k, k);
        for (int j = k + 1; j < n; ++j)
            for (int i = j; i < n; ++i) R(i, j) -= R(i, k) * R(j, k);
    }
    double worst = 0;
    for (int j = 0; j < n; ++j)
        for (int i = j; i < n; ++i) worst = std::fmax(worst, std::fabs(R(i, j) - h[j * n + i]));
    if (info == 0 && worst < 1e-10) std::puts("OK");
    else std::printf("info %d, difference %g\n", info, worst);
    return !(info == 0 && worst < 1e-10);
}
