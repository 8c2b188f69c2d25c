// What a view of a grid says, of a grid of three dimensions that somebody else runs: the same as the group itself says where the grid runs.
#include <cooperative_groups.h>
#include <cstdio>

#include "gridfuse.cuh"

namespace cg = cooperative_groups;

constexpr int kNumbers = 12;

template <class Grid>
__device__ void write(const Grid& grid, unsigned long long* out) {
    unsigned long long* mine = out + kNumbers * grid.thread_rank();
    mine[0] = grid.thread_rank() + 1;
    mine[1] = grid.size();
    mine[2] = grid.num_threads();
    mine[3] = grid.block_rank();
    mine[4] = grid.num_blocks();
}

__device__ void write(dim3 a, unsigned long long* out) {
    out[0] = a.x;
    out[1] = a.y;
    out[2] = a.z;
}

__global__ void itself(unsigned long long* out) {
    const auto grid = cg::this_grid();
    write(grid, out);
    unsigned long long* mine = out + kNumbers * grid.thread_rank();
    write(cg::this_thread_block().group_index(), mine + 5);
    write(gridDim, mine + 8);
}

__global__ void viewed(unsigned long long* out, dim3 grid, dim3 block) {
    uint3 b, t;
    for (b.z = 0; b.z < grid.z; ++b.z)
        for (b.y = 0; b.y < grid.y; ++b.y)
            for (b.x = 0; b.x < grid.x; ++b.x)
                for (t.z = 0; t.z < block.z; ++t.z)
                    for (t.y = 0; t.y < block.y; ++t.y)
                        for (t.x = 0; t.x < block.x; ++t.x) {
                            const auto view = gridfuse::view_of(cg::this_grid(), t, b, grid, block);
                            write(view, out);
                            unsigned long long* mine = out + kNumbers * view.thread_rank();
                            write(gridfuse::view_of(cg::this_thread_block(), t, b, grid, block).group_index(), mine + 5);
                            write(view.dim_blocks(), mine + 8);
                            if (view.block_index().y != b.y || view.group_dim().z != grid.z) mine[11] = 1;
                        }
}

int main() {
    const dim3 grid(3, 2, 4), block(2, 3, 2);
    constexpr int kThreads = 3 * 2 * 4 * 2 * 3 * 2;
    static unsigned long long expected[kThreads * kNumbers], found[kThreads * kNumbers];
    unsigned long long* out;
    if (cudaMalloc(&out, sizeof expected) != cudaSuccess) return 1;
    cudaMemset(out, 0, sizeof expected);
    itself<<<grid, block>>>(out);
    cudaMemcpy(expected, out, sizeof expected, cudaMemcpyDeviceToHost);
    cudaMemset(out, 0, sizeof found);
    viewed<<<1, 1>>>(out, grid, block);
    if (cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
    for (int i = 0; i < kThreads * kNumbers; ++i)
        if (found[i] != expected[i]) {
            std::printf("number %d of thread %d is %llu, not %llu\n", i % kNumbers, i / kNumbers, found[i], expected[i]);
            return 1;
        }
    return 0;
}
