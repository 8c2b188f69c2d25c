// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What cooperative groups say of a grid whose body runs in another one.

#ifndef GRIDFUSE_GRID_VIEW_CUH
#define GRIDFUSE_GRID_VIEW_CUH

#include "version.cuh"

namespace gridfuse {
inline namespace v2 {

/// A grid as one of its threads sees it: `cooperative_groups::grid_group` without what lets threads
/// wait for each other, and the index that `cooperative_groups::thread_block` has in it.
class GridView {
public:
    __device__ __forceinline__ GridView(uint3 thread, uint3 block_index, dim3 grid, dim3 block)
        : thread_(thread), block_index_(block_index), grid_(grid), block_(block) {}

    /// The number of the thread in the grid, and how many threads that has.
    __device__ __forceinline__ unsigned long long thread_rank() const {
        const unsigned long long in_block =
            thread_.x + 1ull * block_.x * (thread_.y + 1ull * block_.y * thread_.z);
        return block_rank() * (1ull * block_.x * block_.y * block_.z) + in_block;
    }
    __device__ __forceinline__ unsigned long long num_threads() const {
        return num_blocks() * (1ull * block_.x * block_.y * block_.z);
    }
    __device__ __forceinline__ unsigned long long size() const { return num_threads(); }

    /// The number of the block in the grid, and how many blocks that has.
    __device__ __forceinline__ unsigned long long block_rank() const {
        return block_index_.x + 1ull * grid_.x * (block_index_.y + 1ull * grid_.y * block_index_.z);
    }
    __device__ __forceinline__ unsigned long long num_blocks() const {
        return 1ull * grid_.x * grid_.y * grid_.z;
    }
    __device__ __forceinline__ dim3 block_index() const { return dim3(block_index_); }
    __device__ __forceinline__ dim3 group_index() const { return dim3(block_index_); }
    __device__ __forceinline__ dim3 dim_blocks() const { return grid_; }
    __device__ __forceinline__ dim3 group_dim() const { return grid_; }

private:
    uint3 thread_;
    uint3 block_index_;
    dim3 grid_;
    dim3 block_;
};

/// The grid that `group` would be, or be a block of, if the built-in variables were these.
template <class Group>
__device__ __forceinline__ GridView view_of(const Group&, uint3 thread, uint3 block_index, dim3 grid,
                                            dim3 block) {
    return GridView(thread, block_index, grid, block);
}

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_GRID_VIEW_CUH
