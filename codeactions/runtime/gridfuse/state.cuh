// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What the launches of a group of threads have come to.

#ifndef GRIDFUSE_STATE_CUH
#define GRIDFUSE_STATE_CUH

#include "memory_order.cuh"
#include "version.cuh"

namespace gridfuse {
inline namespace v2 {

namespace detail {

/// What the launches of a group of threads have come to. All zero at first. Read and written by
/// atomic and volatile accesses alone while several threads can.
struct State {
    // Launches written down (upper 28 bits) and the sum of their blocks (lower 36). Threads add
    // what they want. The first that is too much stays in, so that no later one fits; those take
    // theirs back (at most 2^14 warps are at it at a time, with 2^20 blocks each).
    unsigned long long cursor;
    unsigned long long full_at;  // the cursor before the first that was too much
    unsigned block_least;        // the least pack_block, inverted: so that it is a greatest, too
    unsigned block_most;         // the greatest pack_block
    unsigned shared_most;        // most dynamic shared memory
    // threads of a warp or a block that have left, and whether any of them had launched
    unsigned left;
    // of a larger group: its blocks that have left (lower half), and those of them in which a
    // thread had launched
    unsigned long long blocks_left;
    unsigned long long aside;    // the last chunk of launches put aside, or 0
    unsigned long long chunk;    // memory taken from the pool (a Front), or 0
    // A launch that has to come before those of another Aggregator went out by itself: see InOrder.
    unsigned went_alone;

    /// As it was at first, for the next launch. Strong, as nothing orders the last accesses of
    /// other blocks before these.
    __device__ __forceinline__ void reset() {
        store_relaxed(cursor, 0ull);
        store_relaxed(block_least, 0u);
        store_relaxed(block_most, 0u);
        store_relaxed(shared_most, 0u);
        store_relaxed(blocks_left, 0ull);
        store_relaxed(aside, 0ull);
        store_relaxed(went_alone, 0u);
    }
};
constexpr unsigned kBlockBits = 36;
constexpr unsigned kStateStride = 64;   // in global memory: no two in a sector
constexpr unsigned long long kMaxRecords = 1u << 27;

__host__ __device__ constexpr unsigned launches_in(unsigned long long cursor) {
    return static_cast<unsigned>(cursor >> kBlockBits);
}
__host__ __device__ constexpr unsigned long long blocks_in(unsigned long long cursor) {
    return cursor & ((1ull << kBlockBits) - 1);
}

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_STATE_CUH
