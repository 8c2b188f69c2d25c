// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Which launch of a batch a block runs.

#ifndef GRIDFUSE_SEARCH_CUH
#define GRIDFUSE_SEARCH_CUH

#include "threads.cuh"

namespace gridfuse {
inline namespace v2 {

namespace detail {

// Where `block` lies: the last slot whose first block is not after it. `first` holds `count`
// ascending numbers, the first of them 0. Every thread of the warp must take part.
struct Place {
    unsigned slot;
    unsigned first;
};
__device__ __forceinline__ Place find(const unsigned* first, unsigned count, unsigned block) {
    const unsigned thread = linear_thread(), lane = lane_of(thread);
    unsigned low = 0;
    if ((thread | 31) < block_threads()) {   // a full warp looks at 32 places at a time
        while (count > 32) {
            const unsigned step = (count + 31) / 32, at = lane * step;
            const bool reached = at < count && first[low + at] <= block;
            const unsigned last = count_of(__ballot_sync(~0u, reached)) - 1;
            low += last * step;
            count = min(step, count - last * step);
        }
        const unsigned value = lane < count ? first[low + lane] : ~0u;
        const unsigned last = count_of(__ballot_sync(~0u, value <= block)) - 1;
        return {low + last, __shfl_sync(~0u, value, static_cast<int>(last))};
    }
    while (count > 1) {
        const unsigned half = count / 2;
        if (first[low + half] <= block) {
            low += half;
            count -= half;
        } else {
            count = half;
        }
    }
    return {low, first[low]};
}

/// How many of `count` ascending numbers are no greater than `value`.
template <class T>
__device__ __forceinline__ unsigned not_above(const T* numbers, unsigned count, T value) {
    unsigned low = 0;
    while (count > 0) {
        const unsigned half = count / 2;
        if (numbers[low + half] <= value) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_SEARCH_CUH
