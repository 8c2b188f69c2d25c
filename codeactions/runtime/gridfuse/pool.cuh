// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Memory for nested launches.

#ifndef GRIDFUSE_POOL_CUH
#define GRIDFUSE_POOL_CUH

#include "grid.cuh"
#include "launchpad.cuh"
#include "memory_order.cuh"
#include "state.cuh"

#include <cstddef>

namespace gridfuse {
inline namespace v2 {

namespace detail {

constexpr unsigned kNestedAggregators = 8;   // of a kernel; a further one launches at once

/// What stands in front of a batch's records where the kernel that gets the batch may launch again,
/// and in front of every chunk of a pool.
struct alignas(kSliceAlignment) Front {
    // of a group of all blocks of a nested kernel
    State state;
    // for each Aggregator of the kernel: the Front of all its blocks' group
    unsigned long long groups[kNestedAggregators];
    // blocks of the kernel that need the batch no more
    unsigned blocks_done;
    unsigned size_class;                               // of a chunk

    /// Makes it ready for the kernel that is about to be launched.
    __device__ __forceinline__ void begin() {
        for (unsigned long long& group : groups) store_relaxed(group, 0ull);
        store_relaxed(blocks_done, 0u);
    }
};
// in Front::groups: no memory, each launch goes out by itself
constexpr unsigned long long kNoGroup = 1;

/// Memory for what kernels that are themselves launched by an Aggregator launch: chunks of a power
/// of two of units. Part of the parent's arena. All zero at first.
struct Pool {
    static constexpr unsigned kClasses = 20;
    // Free chunks of each size, as lists: the number of the first one's unit plus 1, or 0. The
    // upper half changes whenever a chunk is taken, so that a list that looks as before is as
    // before.
    unsigned long long free[kClasses];
    unsigned used;   // units that have ever been handed out
    Launchpad* launchpad;   // of the parent, where the host launches
};
constexpr std::size_t kUnit = 4096;

/// In place of a pool where nothing is nested.
struct NoPool {};

/// A pool as seen from a kernel.
class PoolView {
public:
    PoolView() = default;
    __host__ __device__ PoolView(unsigned char* memory, unsigned units)
        : memory_(memory), units_(units) {}

    /// Of so many bytes of memory, how many become units.
    __host__ __device__ static constexpr unsigned units_in(std::size_t bytes) {
        const std::size_t units =
            bytes < sizeof(Pool) + kSliceAlignment
                ? 0
                : (bytes - sizeof(Pool) - kSliceAlignment) / (kUnit + sizeof(unsigned));
        return units < 1u << (Pool::kClasses - 1) ? static_cast<unsigned>(units)
                                                  : 1u << (Pool::kClasses - 1);
    }

    __device__ __forceinline__ explicit operator bool() const { return memory_ != nullptr; }

    /// Where nested kernels leave orders for the host, or null.
    __device__ __forceinline__ Launchpad* launchpad() const {
        return load_relaxed(pool().launchpad);
    }
    __device__ __forceinline__ void use(Launchpad* launchpad) const {
        store_relaxed(pool().launchpad, launchpad);
    }

    /// The smallest size of a chunk that holds so many bytes.
    __device__ __forceinline__ static unsigned class_of(unsigned long long bytes) {
        unsigned size_class = 0;
        while (size_class + 1 < Pool::kClasses &&
               (static_cast<unsigned long long>(kUnit) << size_class) < bytes)
            ++size_class;
        return size_class;
    }

    /// A chunk of at least this size, or null. What it holds but for its size is left from earlier.
    __device__ __forceinline__ Front* allocate(unsigned size_class) const {
        return allocate_from(*this, size_class);
    }

    /// The same; a smaller one where there is none.
    __device__ __forceinline__ Front* allocate_at_most(unsigned size_class) const {
        for (;; --size_class) {
            if (Front* const front = allocate(size_class)) return front;
            if (size_class == 0) return nullptr;
        }
    }

    /// Gives a chunk back. Nobody may use it any more.
    __device__ __forceinline__ void release(Front* front) const { release_to(*this, front); }

private:
    // Not inlined, and by value: a reference to the view would keep the object that it is part of
    // in memory.
    static __device__ __noinline__ Front* allocate_from(PoolView view, unsigned size_class) {
        if (Front* const front = view.from_list(size_class)) return front;
        unsigned used = load_relaxed(view.pool().used);
        while (view.units_ - used >= 1u << size_class) {
            const unsigned seen = atomicCAS(&view.pool().used, used, used + (1u << size_class));
            if (seen == used) {
                Front* const front = view.at(used);
                front->size_class = size_class;
                return front;
            }
            used = seen;
        }
        for (unsigned larger = size_class + 1; larger < Pool::kClasses; ++larger)
            if (Front* const front = view.from_list(larger)) return front;
        return nullptr;
    }
    static __device__ __noinline__ void release_to(PoolView view, Front* front) {
        const unsigned unit = static_cast<unsigned>(
            static_cast<std::size_t>(reinterpret_cast<unsigned char*>(front) - view.data()) /
            kUnit);
        unsigned long long& list = view.pool().free[front->size_class];
        unsigned long long head = load_relaxed(list);
        for (;;) {
            store_relaxed(view.links()[unit], static_cast<unsigned>(head));
            fence();   // release: all uses come before
            const unsigned long long seen =
                atomicCAS(&list, head, (head & ~0xffffffffull) | (unit + 1));
            if (seen == head) return;
            head = seen;
        }
    }

    __device__ __forceinline__ Pool& pool() const { return *reinterpret_cast<Pool*>(memory_); }
    __device__ __forceinline__ unsigned* links() const {
        return reinterpret_cast<unsigned*>(memory_ + sizeof(Pool));
    }
    __device__ __forceinline__ unsigned char* data() const {
        const std::size_t front = sizeof(Pool) + units_ * sizeof(unsigned);
        return memory_ + (front + kSliceAlignment - 1) / kSliceAlignment * kSliceAlignment;
    }
    __device__ __forceinline__ Front* at(unsigned unit) const {
        return reinterpret_cast<Front*>(data() + unit * kUnit);
    }

    __device__ __forceinline__ Front* from_list(unsigned size_class) const {
        unsigned long long& list = pool().free[size_class];
        unsigned long long head = load_relaxed(list);
        while (static_cast<unsigned>(head) != 0) {
            fence();   // acquire: the link, and all uses before the release
            const unsigned unit = static_cast<unsigned>(head) - 1;
            const unsigned next = load_relaxed(links()[unit]);
            const unsigned long long seen = atomicCAS(&list, head, ((head >> 32) + 1) << 32 | next);
            if (seen == head) return at(unit);
            head = seen;
        }
        return nullptr;
    }

    unsigned char* memory_ = nullptr;
    unsigned units_ = 0;
};

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_POOL_CUH
