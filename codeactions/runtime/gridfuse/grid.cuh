// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Grids and blocks: which CUDA accepts, and how their shapes are written down.

#ifndef GRIDFUSE_GRID_CUH
#define GRIDFUSE_GRID_CUH

#include "version.cuh"

#include <climits>

namespace gridfuse {
inline namespace v2 {

namespace detail {

constexpr unsigned kMaxGridX = INT_MAX;           // also the most blocks that a batch can have
constexpr unsigned kMaxGridYZ = 65535;
constexpr unsigned kMaxBlockThreads = 1024;
constexpr unsigned kMaxBlockZ = 64;
constexpr unsigned kMaxPlainShared = 48 * 1024;   // more dynamic shared memory needs an opt-in
// a grid of more blocks is worth a launch of its own
constexpr unsigned kMaxCollected = 1u << 15;
constexpr unsigned kSliceAlignment = 128;         // slices of different blocks share no cache line

/// Whether CUDA accepts a grid of this many blocks (none is refused too).
__host__ __device__ constexpr bool valid_grid(dim3 grid) {
    return grid.x - 1u < kMaxGridX && grid.y - 1u < kMaxGridYZ && grid.z - 1u < kMaxGridYZ;
}

/// Whether CUDA accepts a block of this shape.
__host__ __device__ constexpr bool valid_block(dim3 block) {
    return block.x - 1u < kMaxBlockThreads && block.y - 1u < kMaxBlockThreads &&
           block.z - 1u < kMaxBlockZ && block.x * block.y * block.z <= kMaxBlockThreads;
}

// A valid block shape in 29 bits. Every one-dimensional shape is smaller than every other one, so
// that the greatest of several shapes tells whether all of them are one-dimensional.
__host__ __device__ constexpr unsigned pack_block(dim3 block) {
    return block.x | (block.y - 1) << 11 | (block.z - 1) << 22;
}
__host__ __device__ constexpr bool packed_is_linear(unsigned packed) { return packed >> 11 == 0; }
__host__ __device__ __forceinline__ dim3 unpack_block(unsigned packed) {
    return dim3(packed & 2047, (packed >> 11 & 2047) + 1, (packed >> 22) + 1);
}

/// The shape of one launch. 16 bytes.
struct Shape {
    unsigned grid_x;
    unsigned grid_yz;        // y - 1 in the lower half, z - 1 in the upper
    unsigned block;          // pack_block
    unsigned shared_bytes;   // dynamic shared memory

    __device__ __forceinline__ dim3 grid() const {
        return dim3(grid_x, (grid_yz & 65535) + 1, (grid_yz >> 16) + 1);
    }
};

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_GRID_CUH
