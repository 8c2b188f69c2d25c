// Cooperative groups name the launching thread.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void piece(float* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[begin + i] *= 2.0f;
}

__global__ void by_rank(float* out, int n) {
    cg::thread_block block = cg::this_thread_block();
    int share = n / gridDim.x;
    block.sync();
    if (block.thread_rank() == 0) {
        piece<<<(share + 255) / 256, 256>>>(out, blockIdx.x * share, share);
    }
}

__global__ void by_grid(float* out, int n) {
    auto grid = cg::this_grid();
    if (grid.thread_rank() == 0) piece<<<(n + 255) / 256, 256, 0, cudaStreamTailLaunch>>>(out, 0, n);
}

__global__ void by_tile(float* out, const int* __restrict__ begin) {
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    int first = begin[blockIdx.x];
    if (tile.thread_rank() == 0) {
        piece<<<1, 64>>>(out, first, 64);
    }
}
