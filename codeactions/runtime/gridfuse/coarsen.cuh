// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Coarsening. coarsened and coarsened_to make the grid of a child smaller; its blocks loop over the
// blocks of the original grid.

#ifndef GRIDFUSE_COARSEN_CUH
#define GRIDFUSE_COARSEN_CUH

#include "grid.cuh"

namespace gridfuse {
inline namespace v2 {

/// The grid for a kernel each of whose blocks does the work of up to `factor` blocks of `grid`,
/// which follow each other in x at a distance: block b does b, b + n, b + 2n … with n blocks in
/// all. A grid that CUDA would refuse to launch stays as it is.
__device__ __forceinline__ dim3 coarsened(dim3 grid, unsigned factor) {
    if (detail::valid_grid(grid)) grid.x = (grid.x - 1) / factor + 1;
    return grid;
}

/// The same with at most `blocks` blocks in x, whatever the factor is.
__device__ __forceinline__ dim3 coarsened_to(dim3 grid, unsigned blocks) {
    if (detail::valid_grid(grid) && grid.x > blocks) grid.x = blocks;
    return grid;
}

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_COARSEN_CUH
