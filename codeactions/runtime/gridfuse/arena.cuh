// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Where the threads of a parent kernel write down their launches.

#ifndef GRIDFUSE_ARENA_CUH
#define GRIDFUSE_ARENA_CUH

#include "granularity.cuh"
#include "pool.cuh"
#include "state.cuh"
#include "threads.cuh"

#include <type_traits>

namespace gridfuse {
inline namespace v2 {

namespace detail {

/// What the states of an arena take, in front of the records.
__host__ __device__ constexpr unsigned long long states_bytes(unsigned long long blocks,
                                                              unsigned long long parts) {
    return (blocks * parts * kStateStride + kSliceAlignment - 1) / kSliceAlignment *
           kSliceAlignment;
}

template <bool Nested>
struct Nest;

}   // namespace detail

/// Memory in which the threads of a parent kernel write down their launches: a kernel parameter,
/// made by arena_for. It is a view, copied freely; an Arena{} without memory is valid and means
/// that every launch goes out by itself. A kernel that an Aggregator has launched finds one in its
/// Batch.
class Arena {
public:
    Arena() = default;

private:
    friend class ArenaOwner;
    template <auto... Kernel>
    friend class LaunchpadOwner;
    template <class Args, bool Nested, bool Shaped>
    friend class Batch;
    template <bool Nested>
    friend struct detail::Nest;
    template <class Granularity, auto Kernel, int Site>
    friend class Aggregator;

    struct Slice {
        unsigned char* memory;
        unsigned long long bytes;
    };

    // Of a kernel that an Aggregator launches.
    __device__ __forceinline__ Arena(detail::PoolView pool, detail::Front* front)
        : pool_(pool), front_(front) {}

    // The memory of all Aggregators comes from the pool.
    __device__ __forceinline__ bool is_nested() const { return memory_ == nullptr && pool_; }

    // Which group of the grid's blocks the calling one belongs to.
    template <class Granularity>
    __device__ __forceinline__ static unsigned long long group() {
        return detail::linear_block() / detail::Blocks<Granularity>::kCount;
    }

    // Whether there is memory for the group of an Aggregator.
    template <class Granularity>
    __device__ __forceinline__ bool has(unsigned aggregator) const {
        return aggregator < parts_ &&
               group<Granularity>() * detail::Blocks<Granularity>::kCount < blocks_;
    }

    // The state of the group, where it has memory.
    template <class Granularity>
    __device__ __forceinline__ detail::State& state(unsigned aggregator) const {
        return *reinterpret_cast<detail::State*>(
            memory_ + (aggregator * blocks_ + group<Granularity>()) * detail::kStateStride);
    }

    // What an Aggregator has for the records of the calling thread's group: for a warp a part of
    // its block's memory, for several blocks all of theirs.
    template <class Granularity>
    __device__ __forceinline__ Slice slice(unsigned aggregator) const {
        constexpr unsigned count = detail::Blocks<Granularity>::kCount;
        const unsigned long long first = group<Granularity>() * count;
        Slice slice;
        slice.memory = memory_ + records_ + (aggregator * blocks_ + first) * part_bytes_;
        slice.bytes = has<Granularity>(aggregator)
                          ? (count < blocks_ - first ? count : blocks_ - first) * part_bytes_
                          : 0;
        if constexpr (std::is_same<Granularity, PerWarp>::value) {
            const unsigned warps = (detail::block_threads() + 31) / 32;
            slice.bytes = static_cast<unsigned>(slice.bytes) / warps / detail::kSliceAlignment *
                          detail::kSliceAlignment;
            slice.memory += detail::linear_thread() / 32 * slice.bytes;
        }
        return slice;
    }

    unsigned char* memory_ = nullptr;
    // where in it the records begin, after the states and the pool
    unsigned long long records_ = 0;
    unsigned long long blocks_ = 0;   // of the parent's grid
    unsigned part_bytes_ = 0;         // for the records of a block and an Aggregator
    unsigned parts_ = 0;              // Aggregators
    unsigned taken_ = 0;
    detail::PoolView pool_;           // for nested launches
    detail::Front* front_ = nullptr;  // of the batch, in a kernel that an Aggregator has launched
    detail::Launchpad* launchpad_ = nullptr;   // where the host launches
};

namespace detail {

/// What a nested batch has besides; a base, so that it takes no room where nothing is nested.
template <bool Nested>
struct Nest {
    __device__ __forceinline__ Nest(NoPool, Front*, bool) {}
};
template <>
struct Nest<true> {
    __device__ __forceinline__ Nest(PoolView pool, Front* front, bool is_chunk)
        : own(pool, front), chunk(is_chunk) {}
    Arena own;    // for the kernel's Aggregators
    bool chunk;   // the Front is a chunk of the pool, which the kernel gives back
};

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_ARENA_CUH
