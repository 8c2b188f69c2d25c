// Sparse matrix times vector with rows binned on the fly: short rows are summed by
// their thread, long rows (ACSR style) by a grid of their own.
#include "csr_matrix.cuh"
#include <cmath>
#include <algorithm>

namespace sparse {
namespace detail {

template <typename T, unsigned Threads>
__global__ void long_row(CsrView<T> A, const T *__restrict__ x, T alpha, T *y, int row)
{
    __shared__ T cache[Threads];
    const int begin = A.ptr[row], end = A.ptr[row + 1];
    T sum = T(0);
    for (int j = begin + blockIdx.x * Threads + threadIdx.x; j < end; j += gridDim.x * Threads)
        sum += A.val[j] * x[A.idx[j]];
    cache[threadIdx.x] = sum;
    __syncthreads();
#pragma unroll
    for (unsigned s = Threads / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) cache[threadIdx.x] += cache[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(&y[row], alpha * cache[0]);
}

template <typename T>
struct row_policy {
    static constexpr int      max_serial = 24;
    static constexpr unsigned threads    = 64;
    static constexpr int      per_thread = 4;
};

template <typename T>
constexpr int row_policy<T>::max_serial;

} // namespace detail

template <typename T, typename Policy = detail::row_policy<T>>
__global__ void spmv_kernel(CsrView<T> A, const T *__restrict__ x, T alpha, T beta, T *y)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= A.rows) return;

    const T scaled = beta == T(0) ? T(0) : beta * y[row];
    const int len = A.length(row);
    if (len <= Policy::max_serial) {
        T acc = T(0);
        for (int j = A.ptr[row]; j < A.ptr[row + 1]; ++j)
            acc += __ldg(&A.val[j]) * __ldg(&x[A.idx[j]]);
        y[row] = alpha * acc + scaled;
        return;
    }
    y[row] = scaled;
    constexpr int tile = Policy::threads * Policy::per_thread;
    const int nblk = (len + tile - 1) / tile;
    detail::long_row<T, Policy::threads><<<nblk, Policy::threads>>>(A, x, alpha, y, row);
}

template <typename T>
void spmv(const CsrView<T> &A, const T *x, T alpha, T beta, T *y, cudaStream_t stream = 0)
{
    const int block = 128;
    spmv_kernel<T><<<(A.rows + block - 1) / block, block, 0, stream>>>(A, x, alpha, beta, y);
    SPARSE_CHECK(cudaGetLastError());
}

} // namespace sparse

template <typename T>
static int test(const char *name, T tol)
{
    auto A = sparse::CsrHost<T>::random(6000, 3000, 7, 900, 30, 17u);
    auto dA = A.upload();
    std::vector<T> x(A.cols), y(A.rows), out(A.rows);
    for (int i = 0; i < A.cols; ++i) x[i] = T((i * 37) % 101) / T(50) - T(1);
    for (int i = 0; i < A.rows; ++i) y[i] = T(i % 13);

    T *dx, *dy;
    SPARSE_CHECK(cudaMalloc(&dx, x.size() * sizeof(T)));
    SPARSE_CHECK(cudaMalloc(&dy, y.size() * sizeof(T)));
    SPARSE_CHECK(cudaMemcpy(dx, x.data(), x.size() * sizeof(T), cudaMemcpyHostToDevice));
    SPARSE_CHECK(cudaMemcpy(dy, y.data(), y.size() * sizeof(T), cudaMemcpyHostToDevice));
    sparse::spmv<T>(dA, dx, T(2), T(0.5), dy);
    SPARSE_CHECK(cudaDeviceSynchronize());
    SPARSE_CHECK(cudaMemcpy(out.data(), dy, out.size() * sizeof(T), cudaMemcpyDeviceToHost));

    for (int r = 0; r < A.rows; ++r) {
        double acc = 0, mag = 1;
        for (int j = A.ptr[r]; j < A.ptr[r + 1]; ++j) {
            acc += double(A.val[j]) * x[A.idx[j]];
            mag += std::fabs(double(A.val[j]) * x[A.idx[j]]);
        }
        double want = 2 * acc + 0.5 * y[r];
        if (std::fabs(want - out[r]) > tol * mag) {
            std::printf("%s: row %d is %g, expected %g\n", name, r, double(out[r]), want);
            return 1;
        }
    }
    cudaFree(dx); cudaFree(dy);
    return 0;
}

int main()
{
    int bad = test<float>("float", 1e-5f) + test<double>("double", 1e-12);
    std::puts(bad ? "FAILED" : "OK");
    return bad;
}
