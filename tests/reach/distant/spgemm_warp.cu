// C = A * B with B sparse and C kept dense (small number of columns).
// One warp per row of A; the warp's leader decides whether the row is worth a grid.
#include "csr_matrix.cuh"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;
using sparse::CsrView;
using sparse::CsrHost;

constexpr int WARP = 32;
constexpr long long FLOP_LIMIT = 4096;

__global__ void __launch_bounds__(256)
expand_row(CsrView<int> A, CsrView<int> B, int row, int *__restrict__ C)
{
    // one warp per nonzero of the A row
    auto warp = cg::tiled_partition<WARP>(cg::this_thread_block());
    const int warpsPerBlock = blockDim.x / WARP;
    const int k = A.ptr[row] + blockIdx.x * warpsPerBlock + warp.meta_group_rank();
    if (k >= A.ptr[row + 1]) return;
    const int brow = A.idx[k];
    const int a = A.val[k];
    for (int j = B.ptr[brow] + warp.thread_rank(); j < B.ptr[brow + 1]; j += WARP)
        atomicAdd(&C[(size_t)row * B.cols + B.idx[j]], a * B.val[j]);
}

__global__ void spgemm_rows(CsrView<int> A, CsrView<int> B, int *__restrict__ C, int *launched)
{
    auto block = cg::this_thread_block();
    auto warp  = cg::tiled_partition<WARP>(block);
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    if (row >= A.rows) return;                 // whole warps leave

    long long flops = 0;
    for (int k = A.ptr[row] + warp.thread_rank(); k < A.ptr[row + 1]; k += WARP)
        flops += B.length(A.idx[k]);
    for (int off = WARP / 2; off > 0; off /= 2)
        flops += warp.shfl_down(flops, off);
    flops = warp.shfl(flops, 0);

    if (flops > FLOP_LIMIT) {
        if (warp.thread_rank() == 0) {
            const int nnz = A.length(row);
            const int warps = 8;
            dim3 threads(warps * WARP);
            dim3 blocks(nnz / warps + (nnz % warps ? 1 : 0));
            expand_row<<<blocks, threads, 0, cudaStreamFireAndForget>>>(A, B, row, C);
            atomicAdd(launched, 1);
        }
        return;
    }
    for (int k = A.ptr[row]; k < A.ptr[row + 1]; ++k) {
        const int brow = A.idx[k], a = A.val[k];
        for (int j = B.ptr[brow] + warp.thread_rank(); j < B.ptr[brow + 1]; j += WARP)
            atomicAdd(&C[(size_t)row * B.cols + B.idx[j]], a * B.val[j]);
    }
}

int main()
{
    auto A = CsrHost<int>::random(2000, 1500, 6, 400, 40, 3u);
    auto B = CsrHost<int>::random(1500, 200, 20, 120, 9, 5u);
    auto dA = A.upload(), dB = B.upload();
    const size_t count = (size_t)A.rows * B.cols;
    int *dC, *dLaunched, launched = 0;
    SPARSE_CHECK(cudaMalloc(&dC, count * sizeof(int)));
    SPARSE_CHECK(cudaMalloc(&dLaunched, sizeof(int)));
    SPARSE_CHECK(cudaMemset(dC, 0, count * sizeof(int)));
    SPARSE_CHECK(cudaMemset(dLaunched, 0, sizeof(int)));

    const int block = 128, rowsPerBlock = block / WARP;
    spgemm_rows<<<(A.rows + rowsPerBlock - 1) / rowsPerBlock, block>>>(dA, dB, dC, dLaunched);
    SPARSE_CHECK(cudaGetLastError());
    SPARSE_CHECK(cudaDeviceSynchronize());

    std::vector<int> got(count), ref(count, 0);
    SPARSE_CHECK(cudaMemcpy(got.data(), dC, count * sizeof(int), cudaMemcpyDeviceToHost));
    SPARSE_CHECK(cudaMemcpy(&launched, dLaunched, sizeof(int), cudaMemcpyDeviceToHost));
    for (int r = 0; r < A.rows; ++r)
        for (int k = A.ptr[r]; k < A.ptr[r + 1]; ++k)
            for (int j = B.ptr[A.idx[k]]; j < B.ptr[A.idx[k] + 1]; ++j)
                ref[(size_t)r * B.cols + B.idx[j]] += A.val[k] * B.val[j];
    for (size_t i = 0; i < count; ++i)
        if (got[i] != ref[i]) {
            std::printf("C[%zu,%zu] = %d, want %d\n", i / B.cols, i % B.cols, got[i], ref[i]);
            return 1;
        }
    std::printf("OK (%d rows expanded by child grids)\n", launched);
    return 0;
}
