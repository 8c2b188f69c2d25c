// Generic two-stage reduction; the block that finishes last launches the second stage.
#include <cfloat>
#include <climits>
#include <iostream>
#include <vector>
#include <cuda_runtime.h>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

#define CUDA_CHECK_ERROR(call)                                                   \
{                                                                                \
    const cudaError_t error = call;                                              \
    if (error != cudaSuccess) {                                                  \
        std::cerr << "Error: " << __FILE__ << ", " << __LINE__ << ": "           \
                  << cudaGetErrorString(error) << std::endl;                     \
        exit(-10 * error);                                                       \
    }                                                                            \
}

template <typename T> struct Sum {
    __host__ __device__ static T identity() { return T(0); }
    __host__ __device__ T operator()(T a, T b) const { return a + b; }
};
template <typename T> struct Max;
template <> struct Max<int> {
    __host__ __device__ static int identity() { return INT_MIN; }
    __host__ __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};
template <> struct Max<float> {
    __host__ __device__ static float identity() { return -FLT_MAX; }
    __host__ __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <typename T, typename Op>
__device__ T blockReduce(T v, Op op, T *shared)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    for (int d = warp.size() / 2; d > 0; d >>= 1)
        v = op(v, warp.shfl_down(v, d));
    if (warp.thread_rank() == 0) shared[warp.meta_group_rank()] = v;
    block.sync();
    if (warp.meta_group_rank() == 0) {
        v = warp.thread_rank() < warp.meta_group_size() ? shared[warp.thread_rank()] : Op::identity();
        for (int d = warp.size() / 2; d > 0; d >>= 1)
            v = op(v, warp.shfl_down(v, d));
    }
    return v;
}

template <typename T, typename Op>
__global__ void finalReduce(const T *partial, int n, T *result, Op op)
{
    __shared__ T sh[32];
    T v = Op::identity();
    for (int i = threadIdx.x; i < n; i += blockDim.x) v = op(v, partial[i]);
    v = blockReduce(v, op, sh);
    if (threadIdx.x == 0) *result = v;
}

template <typename T, typename Op>
__global__ void reduce(const T *__restrict__ in, size_t n, T *partial, T *result, unsigned *ticket, Op op)
{
    __shared__ T sh[32];
    T v = Op::identity();
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        v = op(v, in[i]);
    v = blockReduce(v, op, sh);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = v;
        __threadfence();
        if (atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1) {
            const int threads = gridDim.x < 256 ? 128 : 256;
            finalReduce<T, Op><<<1, threads>>>(partial, gridDim.x, result, op);
        }
    }
}

template <typename T, typename Op>
T deviceReduce(const std::vector<T> &h, Op op)
{
    const int blocks = 200, threads = 256;
    T *dIn, *dPartial, *dResult, result;
    unsigned *dTicket;
    CUDA_CHECK_ERROR(cudaMalloc(&dIn, h.size() * sizeof(T)));
    CUDA_CHECK_ERROR(cudaMalloc(&dPartial, blocks * sizeof(T)));
    CUDA_CHECK_ERROR(cudaMalloc(&dResult, sizeof(T)));
    CUDA_CHECK_ERROR(cudaMalloc(&dTicket, sizeof(unsigned)));
    CUDA_CHECK_ERROR(cudaMemset(dTicket, 0, sizeof(unsigned)));
    CUDA_CHECK_ERROR(cudaMemcpy(dIn, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice));
    reduce<T, Op><<<blocks, threads>>>(dIn, h.size(), dPartial, dResult, dTicket, op);
    CUDA_CHECK_ERROR(cudaGetLastError());
    CUDA_CHECK_ERROR(cudaDeviceSynchronize());
    CUDA_CHECK_ERROR(cudaMemcpy(&result, dResult, sizeof(T), cudaMemcpyDeviceToHost));
    CUDA_CHECK_ERROR(cudaFree(dIn)); CUDA_CHECK_ERROR(cudaFree(dPartial));
    CUDA_CHECK_ERROR(cudaFree(dResult)); CUDA_CHECK_ERROR(cudaFree(dTicket));
    return result;
}

int main()
{
    std::vector<int> a(1 << 20);
    std::vector<float> f(777777);
    for (size_t i = 0; i < a.size(); i++) a[i] = int(unsigned(i) * 2654435761u >> 20) - 2048;
    for (size_t i = 0; i < f.size(); i++) f[i] = float((i * 40503u) & 0xffff) / 8.0f;
    int sum = 0, mx = INT_MIN; float fm = -FLT_MAX;
    for (int v : a) { sum += v; if (v > mx) mx = v; }
    for (float v : f) if (v > fm) fm = v;

    int gs = deviceReduce(a, Sum<int>()), gm = deviceReduce(a, Max<int>());
    float gf = deviceReduce(f, Max<float>());
    if (gs != sum || gm != mx || gf != fm) {
        std::cout << "MISMATCH " << gs << "/" << sum << " " << gm << "/" << mx << " " << gf << "/" << fm << "\n";
        return 1;
    }
    std::cout << "OK\n";
    return 0;
}
