// csr_matrix.cuh - tiny CSR container shared by the sparse examples
#pragma once
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

namespace sparse {

inline void check(cudaError_t st, const char *expr, int line)
{
    if (st == cudaSuccess) return;
    std::fprintf(stderr, "line %d: %s -> %s\n", line, expr, cudaGetErrorName(st));
    std::abort();
}
#define SPARSE_CHECK(e) ::sparse::check((e), #e, __LINE__)

template <typename T>
struct CsrView {                 // device pointers, passed by value
    int rows, cols;
    const int *__restrict__ ptr;
    const int *__restrict__ idx;
    const T   *__restrict__ val;
    __device__ __forceinline__ int length(int r) const { return ptr[r + 1] - ptr[r]; }
};

template <typename T>
struct CsrHost {
    int rows = 0, cols = 0;
    std::vector<int> ptr{0}, idx;
    std::vector<T> val;

    // every `period`-th row gets `heavy` entries, others `light`
    static CsrHost random(int r, int c, int light, int heavy, int period, unsigned seed)
    {
        CsrHost m; m.rows = r; m.cols = c;
        for (int i = 0; i < r; ++i) {
            int k = (i % period == period / 2) ? heavy : light;
            for (int j = 0; j < k; ++j) {
                seed = seed * 1103515245u + 12345u;
                m.idx.push_back((seed >> 8) % c);
                m.val.push_back(T((seed >> 16) % 17) - T(8));
            }
            m.ptr.push_back((int)m.idx.size());
        }
        return m;
    }

    CsrView<T> upload() const
    {
        int *p, *i; T *v;
        SPARSE_CHECK(cudaMalloc(&p, ptr.size() * sizeof(int)));
        SPARSE_CHECK(cudaMalloc(&i, idx.size() * sizeof(int)));
        SPARSE_CHECK(cudaMalloc(&v, val.size() * sizeof(T)));
        SPARSE_CHECK(cudaMemcpy(p, ptr.data(), ptr.size() * sizeof(int), cudaMemcpyHostToDevice));
        SPARSE_CHECK(cudaMemcpy(i, idx.data(), idx.size() * sizeof(int), cudaMemcpyHostToDevice));
        SPARSE_CHECK(cudaMemcpy(v, val.data(), val.size() * sizeof(T), cudaMemcpyHostToDevice));
        return CsrView<T>{rows, cols, p, i, v};
    }
};

} // namespace sparse
