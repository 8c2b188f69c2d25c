// Mode-3 contraction of a CSF tensor with a matrix: A(i,j,r) = sum_k T(i,j,k) * B(k,r)
#include <cassert>
#include <cstdio>
#include <vector>

template <typename T> struct Span {
    T* data; int size;
    __host__ __device__ T& operator[](int i) const { return data[i]; }
};

template <typename T>
struct CsfTensor {
    Span<int> fiberPtr;     // fiber -> first non-zero
    Span<int> slicePtr;     // slice -> first fiber
    Span<int> k;
    Span<T> values;
};

template <typename T, int RANK>
__global__ void contractFiber(CsfTensor<T> t, const T* __restrict__ B, T* __restrict__ out, int fiber)
{
    const int begin = t.fiberPtr[fiber], end = t.fiberPtr[fiber + 1];
    const int nz = begin + blockIdx.x * blockDim.y + threadIdx.y;
    if (nz >= end) return;
    atomicAdd(&out[fiber * RANK + threadIdx.x], t.values[nz] * B[t.k[nz] * RANK + threadIdx.x]);
}

template <typename T, int RANK>
__global__ void contractSlice(CsfTensor<T> t, const T* __restrict__ B, T* __restrict__ out)
{
    const int slice = blockIdx.x;
    for (int f = t.slicePtr[slice] + threadIdx.x; f < t.slicePtr[slice + 1]; f += blockDim.x) {
        const int nnz = t.fiberPtr[f + 1] - t.fiberPtr[f];
        if (nnz == 0) continue;
        const dim3 threads(RANK, 8);
        contractFiber<T, RANK><<<(nnz + 7) / 8, threads>>>(t, B, out, f);
    }
}

template <typename T>
Span<T> upload(const std::vector<T>& v)
{
    Span<T> s{nullptr, (int)v.size()};
    cudaMalloc(&s.data, v.size() * sizeof(T));
    cudaMemcpy(s.data, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice);
    return s;
}

int main()
{
    constexpr int RANK = 16;
    const int I = 30, K = 256;
    std::vector<int> slice{0}, fiber{0}, k; std::vector<int> val;
    for (int i = 0; i < I; ++i) {
        const int J = 10 + (i * 7) % 50;
        for (int j = 0; j < J; ++j) {
            const int nnz = (i * j) % 61;
            for (int q = 0; q < nnz; ++q) { k.push_back((q * 5 + j) % K); val.push_back((i + j * q) % 13 - 6); }
            fiber.push_back((int)k.size());
        }
        slice.push_back((int)fiber.size() - 1);
    }
    const int fibers = (int)fiber.size() - 1;
    std::vector<int> B(K * RANK), out(fibers * RANK, 0);
    for (size_t i = 0; i < B.size(); ++i) B[i] = (int)(i * 11 % 29) - 14;
    CsfTensor<int> t{upload(fiber), upload(slice), upload(k), upload(val)};
    auto dB = upload(B); auto dOut = upload(out);
    contractSlice<int, RANK><<<I, 32>>>(t, dB.data, dOut.data);
    const auto err = cudaDeviceSynchronize();
    assert(err == cudaSuccess); (void)err;
    cudaMemcpy(out.data(), dOut.data, out.size() * sizeof(int), cudaMemcpyDeviceToHost);
    unsigned sum = 0;
    for (int v : out) sum = sum * 31 + (unsigned)v;
    printf("fibers %d nnz %d checksum %u\n", fibers, (int)k.size(), sum);
    return 0;
}
