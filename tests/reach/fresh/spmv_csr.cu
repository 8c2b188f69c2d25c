// Sparse matrix-vector product, CSR, with power-law rows.
// Short rows: the owning thread.  Long rows: a block of their own, reduced in
// dynamic shared memory.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace sparse {

template <typename T>
struct CsrView {
    int rows;
    const int *rowptr;
    const int *colind;
    const T *values;

    __host__ __device__ int length(int r) const { return rowptr[r + 1] - rowptr[r]; }
};

template <typename T>
__global__ void long_row_dot(CsrView<T> A, const T *__restrict__ x, T *__restrict__ y, int r)
{
    extern __shared__ unsigned char raw[];
    T *partial = reinterpret_cast<T *>(raw);

    T acc = T(0);
    for (int k = A.rowptr[r] + threadIdx.x; k < A.rowptr[r + 1]; k += blockDim.x)
        acc += A.values[k] * x[A.colind[k]];
    partial[threadIdx.x] = acc;
    __syncthreads();

    for (unsigned step = blockDim.x / 2; step > 0; step >>= 1) {
        if (threadIdx.x < step)
            partial[threadIdx.x] += partial[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        y[r] = partial[0];
}

template <typename T, int ChildThreads>
class RowSplitter {
    static_assert((ChildThreads & (ChildThreads - 1)) == 0, "power of two, please");
    int cutoff_;

public:
    __host__ __device__ explicit RowSplitter(int cutoff) : cutoff_(cutoff) {}

    __device__ void operator()(const CsrView<T> &A, const T *x, T *y, int r) const
    {
        if (A.length(r) > cutoff_) {
            long_row_dot<T><<<1, ChildThreads, ChildThreads * sizeof(T)>>>(A, x, y, r);
            return;
        }
        T acc = T(0);
        for (int k = A.rowptr[r]; k < A.rowptr[r + 1]; ++k)
            acc += A.values[k] * x[A.colind[k]];
        y[r] = acc;
    }
};

template <typename T, typename Policy>
__global__ void spmv(CsrView<T> A, const T *x, T *y, Policy policy)
{
    const int stride = gridDim.x * blockDim.x;
    for (int r = blockIdx.x * blockDim.x + threadIdx.x; r < A.rows; r += stride)
        policy(A, x, y, r);
}

}  // namespace sparse

#define CU(x)                                                               \
    if (cudaError_t err = (x)) {                                            \
        std::printf("CUDA error %s at line %d\n", cudaGetErrorString(err), __LINE__); \
        std::exit(1);                                                       \
    }

template <typename V>
static V *upload(const std::vector<V> &h)
{
    V *d = nullptr;
    CU(cudaMalloc(&d, h.size() * sizeof(V)));
    CU(cudaMemcpy(d, h.data(), h.size() * sizeof(V), cudaMemcpyHostToDevice));
    return d;
}

int main()
{
    using real = double;
    const int n = 12000;
    std::vector<int> rp(1, 0), ci;
    std::vector<real> va, x(n), y(n), ref(n, 0.0);

    unsigned s = 7u;
    auto next = [&s]() { s ^= s << 13; s ^= s >> 17; s ^= s << 5; return s; };
    for (int i = 0; i < n; ++i) {
        x[i] = 1.0 + (i % 13) * 0.25;
        int len = 2 + next() % 6;
        if (i % 31 == 5) len = 300 + next() % 2000;
        for (int k = 0; k < len; ++k) {
            ci.push_back(next() % n);
            va.push_back(((int)(next() % 2001) - 1000) / 1000.0);
        }
        rp.push_back((int)ci.size());
    }

    int *drp = upload(rp), *dci = upload(ci);
    real *dva = upload(va), *dx = upload(x), *dy = upload(y);

    sparse::CsrView<real> A{n, drp, dci, dva};
    sparse::spmv<<<64, 64>>>(A, dx, dy, sparse::RowSplitter<real, 256>(128));
    CU(cudaGetLastError());
    CU(cudaDeviceSynchronize());
    CU(cudaMemcpy(y.data(), dy, n * sizeof(real), cudaMemcpyDeviceToHost));

    double worst = 0;
    for (int i = 0; i < n; ++i) {
        for (int k = rp[i]; k < rp[i + 1]; ++k)
            ref[i] += va[k] * x[ci[k]];
        worst = std::fmax(worst, std::fabs(ref[i] - y[i]) / (1.0 + std::fabs(ref[i])));
    }
    if (worst < 1e-10)
        std::puts("OK");
    else
        std::printf("largest relative difference %g\n", worst);
    return worst < 1e-10 ? 0 : 1;
}
