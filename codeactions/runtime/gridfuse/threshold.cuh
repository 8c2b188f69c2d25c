// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Thresholding. for_each_thread runs a small child grid in the launching thread instead;
// below_threshold says which grids are small, is_launchable which are launched at all. When the
// threads of a block wait for each other, for_each_block runs the blocks, and for_each_thread their
// threads between two barriers.

#ifndef GRIDFUSE_THRESHOLD_CUH
#define GRIDFUSE_THRESHOLD_CUH

#include "grid.cuh"

namespace gridfuse {
inline namespace v2 {

/// Whether CUDA launches such a grid at all: not without threads, and not with a block of more than
/// 1024.
__device__ __forceinline__ bool is_launchable(dim3 grid, dim3 block) {
    return detail::valid_grid(grid) && detail::valid_block(block);
}

/// Whether a child grid has fewer than `threshold` threads. False for a grid that CUDA would refuse
/// to launch (no threads, a block of more than 1024), so that such a launch fails as it would have.
__device__ __forceinline__ bool below_threshold(dim3 grid, dim3 block,
                                                unsigned long long threshold) {
    if (!is_launchable(grid, block)) return false;
    const unsigned long long blocks = 1ull * grid.x * grid.y * grid.z;   // less than 2^63
    return blocks < threshold && blocks * (block.x * block.y * block.z) < threshold;
}

/// What a grid that runs in one thread may have of dynamic shared memory for each thread that is
/// below the threshold, in bytes.
constexpr unsigned kSharedPerThread = 8;

/// The same for a grid whose blocks have `shared` bytes of dynamic shared memory: true only where
/// that fits into what the threshold leaves for it.
__device__ __forceinline__ bool below_threshold(dim3 grid, dim3 block, unsigned long long shared,
                                                unsigned long long threshold) {
    return shared <= threshold * kSharedPerThread && below_threshold(grid, block, threshold);
}

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_THRESHOLD_CUH
