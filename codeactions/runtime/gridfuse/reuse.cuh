// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Thread reuse. Nothing is launched: threads that are through with the parent's body run the child
// grids that they have launched there.
//
//     __device__ void visit_body(gridfuse::ThreadReuse<gridfuse::BySize, expand_args,
//                                128>& expands, const int* row, int* dist, int n) {
//         ...
//         if (count > 0) expands.launch((count + 127) / 128, 128, {begin, count});
//     }
//
//     __global__ void visit(const int* row, int* dist, int n) {
//         gridfuse::ThreadReuse<gridfuse::BySize, expand_args, 128> expands;
//         visit_body(expands, row, dist, n);
//         expands.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim,
//                                     dim3 blockDim, const expand_args& args) {
//             expand_thread(threadIdx, blockIdx, gridDim, blockDim, dist, args.begin, args.count);
//         });
//     }
//
// Threads of a child have nothing to do with each other. All threads of a block come to
// for_each_thread, once.

#ifndef GRIDFUSE_REUSE_CUH
#define GRIDFUSE_REUSE_CUH

#include "arguments.cuh"
#include "child_threads.cuh"
#include "grid.cuh"
#include "search.cuh"
#include "threads.cuh"

#include <type_traits>

namespace gridfuse {
inline namespace v2 {

/// Assignment: the threads of a warp run what these have launched.
struct ByWarp {};

/// Assignment: the threads of a block run what these have launched.
struct ByBlock {};

/// Assignment: the threads of a warp run the small child grids that these have launched, those of a
/// block the large ones.
struct BySize {};

namespace detail {

// A warp that runs what is small runs a child grid of fewer threads than this. Of a warp that has
// more to do than the second number it keeps those of no more than the third. Measured on an H100
// with breadth-first search and shortest paths (docs/scale.md).
constexpr unsigned kSmall = 128;
constexpr unsigned kMuchForWarp = 1024;
constexpr unsigned kTiny = 32;

// A block takes up so many launches at a time.
constexpr unsigned kTakenUp = 64;

/// The grid of a launch that somebody is to run: of one dimension where its threads are known.
template <bool KnowsThreads>
struct ReusedGrid {
    unsigned x;

    __device__ __forceinline__ void set(dim3 grid) { x = grid.x; }
    __device__ __forceinline__ dim3 get() const { return dim3(x); }
};
template <>
struct ReusedGrid<false> {
    unsigned x, yz;   // as in Shape

    __device__ __forceinline__ void set(dim3 grid) {
        x = grid.x;
        yz = (grid.y - 1) | (grid.z - 1) << 16;
    }
    __device__ __forceinline__ dim3 get() const { return Shape{x, yz, 0, 0}.grid(); }
};

/// A launch that somebody is to run. Lanes hand it on word by word.
template <class Args, unsigned X, unsigned Y, unsigned Z>
struct alignas(alignof(Args) > alignof(unsigned) ? alignof(Args) : alignof(unsigned)) Reused {
    static constexpr unsigned kBlock = X * Y * Z;

    Bytes<Args> args;
    ReusedGrid<kKnowsThreads<Args>> grid;

    /// Runs one of its threads.
    template <class Body>
    __device__ __forceinline__ void run(unsigned long long number, Body&& body) const {
        const dim3 blocks = grid.get();
        uint3 block = {0, 0, 0}, thread = {0, 0, 0};
        if constexpr (kKnowsThreads<Args>) {
            // Of an int at most: with a constant block the compiler sees that blockIdx.x *
            // blockDim.x + threadIdx.x is the number.
            const unsigned own = static_cast<unsigned>(number);
            thread.x = own % X;
            block.x = own / X;
        } else {
            const unsigned own = static_cast<unsigned>(number % kBlock);
            unsigned long long row = number / kBlock;
            block.x = static_cast<unsigned>(row % blocks.x);
            row /= blocks.x;
            block.y = static_cast<unsigned>(row % blocks.y);
            block.z = static_cast<unsigned>(row / blocks.y);
            thread.x = own % X;
            thread.y = own / X % Y;
            thread.z = own / (X * Y);
        }
        body(thread, block, blocks, dim3(X, Y, Z), args.value());
    }

    /// That of another lane. All of `lanes` ask.
    __device__ __forceinline__ Reused from(unsigned lanes, unsigned lane) const {
        Reused other;
        constexpr unsigned words = sizeof(Reused) / sizeof(unsigned);
#pragma unroll
        for (unsigned i = 0; i < words; ++i) {
            const unsigned word = reinterpret_cast<const unsigned*>(this)[i];
            reinterpret_cast<unsigned*>(&other)[i] =
                __shfl_sync(lanes, word, static_cast<int>(lane));
        }
        return other;
    }
};

/// The lane with a number among those of a set.
__device__ __forceinline__ unsigned lane_at(unsigned lanes, unsigned number) {
    unsigned lane = 0;
#pragma unroll
    for (unsigned width = 16; width != 0; width /= 2) {
        const unsigned below = count_of(lanes >> lane & ((1u << width) - 1));
        if (number >= below) {
            number -= below;
            lane += width;
        }
    }
    return lane;
}

/// All bits that are set in one of the `width` first lanes, which all ask.
__device__ __forceinline__ unsigned any_of(unsigned lanes, unsigned width, unsigned bits) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    (void)width;
    return __reduce_or_sync(lanes, bits);
#else
    const unsigned lane = lane_of(linear_thread());
    for (unsigned distance = 16; distance != 0; distance /= 2) {
        const unsigned other = __shfl_down_sync(lanes, bits, distance);
        if (lane + distance < width) bits |= other;
    }
    return __shfl_sync(lanes, bits, 0);
#endif
}

/// The sum over the `width` first lanes, which all ask.
__device__ __forceinline__ unsigned sum_of(unsigned lanes, unsigned width, unsigned value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    (void)width;
    return __reduce_add_sync(lanes, value);
#else
    const unsigned lane = lane_of(linear_thread());
    for (unsigned distance = 16; distance != 0; distance /= 2) {
        const unsigned other = __shfl_down_sync(lanes, value, distance);
        if (lane + distance < width) value += other;
    }
    return __shfl_sync(lanes, value, 0);
#endif
}

/// The sum up to each of the first lanes, which all ask.
__device__ __forceinline__ unsigned sum_up_to(unsigned lanes, unsigned value) {
    const unsigned lane = lane_of(linear_thread());
    for (unsigned distance = 1; distance < 32; distance *= 2) {
        const unsigned other = __shfl_up_sync(lanes, value, distance);
        if (lane >= distance) value += other;
    }
    return value;
}

/// The launch of a thread, and how it is run with those of others.
template <class Args, unsigned X, unsigned Y, unsigned Z>
class Reuse {
    static_assert(std::is_trivially_copyable<Args>::value,
                  "the arguments of a launch are copied byte by byte");
    static_assert(valid_block(dim3(X, Y, Z)), "no block can have this size");
    static_assert(!kKnowsThreads<Args> || Y * Z == 1,
                  "threads() counts those of a grid of one dimension");

protected:
    using Record = Reused<Args, X, Y, Z>;

    // Stops the kernel where a launch isn't as it was said to be; that CUDA refuses one is no such
    // case.
    __device__ __forceinline__ void take(dim3 grid, dim3 block, const Args& args) {
        if (!valid_grid(grid)) return;
        if (block.x != X || block.y != Y || block.z != Z) __trap();
        const unsigned long long all = 1ull * grid.x * grid.y * grid.z;   // less than 2^63
        if (all >> (63 - 10) != 0) __trap();
        if constexpr (kKnowsThreads<Args>) {
            if (grid.y != 1 || grid.z != 1) __trap();
            threads_ = threads_with_work(all * X, args);
        } else {
            threads_ = all * Record::kBlock;
        }
        record_.args = Bytes<Args>(args);
        record_.grid.set(grid);
    }

    /// Whether some thread of the block has a launch. All threads of the block come here first, as
    /// most blocks have nothing to do, often.
    __device__ __forceinline__ bool block_has_some() const {
        return __syncthreads_or(threads_ != 0);
    }

    /// Whether this thread's launch is one that its warp runs, where the block, or a grid, runs
    /// others.
    __device__ __forceinline__ bool is_small() const {
        const bool small = threads_ < kSmall;
        const unsigned sum = sum_of(lanes(), width(), small ? static_cast<unsigned>(threads_) : 0);
        return sum > kMuchForWarp ? threads_ <= kTiny : small;
    }

    /// Whether the launches of those threads of the warp that say so are many threads together:
    /// `at_least`, 2^26 at most.
    __device__ __forceinline__ bool are_many(bool takes_part, unsigned at_least) const {
        const unsigned own = threads_ < at_least ? static_cast<unsigned>(threads_) : at_least;
        return sum_of(lanes(), width(), takes_part ? own : 0) >= at_least;
    }

    /// The warp runs the launches of those threads that say so, laid end to end (Merrill, Garland
    /// and Grimshaw, PPoPP 2012, section 5.1: scan-based gathering). `Any`: some may be large, and
    /// come one by one.
    template <bool Any, class Body>
    __device__ __forceinline__ void by_warp(bool takes_part, Body&& body) const {
        const unsigned lanes = this->lanes(), width = this->width(),
                       lane = lane_of(linear_thread());
        __syncwarp(lanes);
        if constexpr (Any) {
            for (unsigned large = __ballot_sync(lanes, takes_part && threads_ >= kLarge);
                 large != 0; large &= large - 1) {
                const unsigned owner = static_cast<unsigned>(first_of(large));
                const Record record = record_.from(lanes, owner);
                const unsigned long long threads =
                    __shfl_sync(lanes, threads_, static_cast<int>(owner));
                for (unsigned long long number = lane; number < threads; number += width)
                    record.run(number, body);
                __syncwarp(lanes);
            }
            takes_part = takes_part && threads_ < kLarge;
        }
        unsigned own = takes_part ? static_cast<unsigned>(threads_) : 0;
        const unsigned having = __ballot_sync(lanes, own != 0);
        if (having == 0) return;
        // The lanes that have a launch come first.
        const unsigned launches = count_of(having),
                       from = lane < launches ? lane_at(having, lane) : 0;
        const Record record = record_.from(lanes, from);
        own = __shfl_sync(lanes, own, static_cast<int>(from));
        if (lane >= launches) own = 0;
        const unsigned up_to = sum_up_to(lanes, own), first = up_to - own;
        const unsigned all = __shfl_sync(lanes, up_to, static_cast<int>(width - 1));
        const unsigned not_behind = lanes_below() | 1u << lane;
        unsigned begun = 0;
        for (unsigned at = 0; at < all; at += width) {
            const bool begins = own != 0 && first - at < width;
            const unsigned begin = any_of(lanes, width, begins ? 1u << (first - at) : 0);
            const unsigned owner = begun + count_of(begin & not_behind) - 1;
            begun += count_of(begin);
            const Record its = record.from(lanes, owner);
            const unsigned number = at + lane - __shfl_sync(lanes, first, static_cast<int>(owner));
            if (at + lane < all) its.run(number, body);
            __syncwarp(lanes);
        }
    }

    /// The same for a block. `noticed(threads)`: called by one thread, with what there is for the
    /// block to do.
    template <class Body, class Noticed>
    __device__ __forceinline__ void by_block(bool takes_part, Body&& body,
                                             Noticed&& noticed) const {
        __shared__ unsigned long long cursor;   // launches and threads that have been taken up
        __shared__ unsigned long long first[kTakenUp + 1];
        __shared__ Bytes<Record> records[kTakenUp];
        constexpr unsigned bits = 48;   // of the threads
        constexpr unsigned long long mask = (1ull << bits) - 1;
        static_assert(kTakenUp <= 64, "a grid has less than 2^42 threads with work");
        if (!__syncthreads_or(takes_part)) return;
        const unsigned thread = linear_thread(), threads = block_threads();
        if (takes_part && threads_ >> 42 != 0) __trap();
        do {
            if (thread == 0) cursor = 0;
            __syncthreads();
            if (takes_part) {
                const unsigned long long before = atomicAdd(&cursor, 1ull << bits | threads_);
                const unsigned slot = static_cast<unsigned>(before >> bits);
                // The first one that finds no room says what those in front of it come to.
                if (slot <= kTakenUp) first[slot] = before & mask;
                if (slot < kTakenUp) {
                    records[slot] = Bytes<Record>(record_);
                    takes_part = false;
                }
            }
            __syncthreads();
            unsigned launches = static_cast<unsigned>(cursor >> bits);
            unsigned long long all = cursor & mask;
            if (launches > kTakenUp) {
                launches = kTakenUp;
                all = first[kTakenUp];
            }
            if (thread == 0) noticed(all);
            unsigned slot = 0;
            for (unsigned long long at = thread; at < all; at += threads) {
                slot += not_above(first + slot + 1, launches - slot - 1, at);
                records[slot].value().run(at - first[slot], body);
            }
        } while (__syncthreads_or(takes_part));
    }

    unsigned long long threads_ = 0;   // of the launch that have something to do
    Record record_;

private:
    __device__ __forceinline__ static unsigned width() { return warp_threads(); }
    __device__ __forceinline__ static unsigned lanes() { return ~0u >> (32 - width()); }

    // A warp lays launches of fewer threads end to end; their sum is a number of 32 bits.
    static constexpr unsigned kLarge = 1u << 12;
};

}   // namespace detail

/// Takes the launches of a thread in the parent's body, and runs them after it. `Args` are the
/// arguments that differ from launch to launch; with a member function `threads()` only the first
/// so many threads of a grid are run. The child's blocks have X by Y by Z threads.
template <class Assignment, class Args, unsigned X, unsigned Y = 1, unsigned Z = 1>
class ThreadReuse : detail::Reuse<Args, X, Y, Z> {
    using Base = detail::Reuse<Args, X, Y, Z>;

public:
    ThreadReuse() = default;
    ThreadReuse(const ThreadReuse&) = delete;
    ThreadReuse& operator=(const ThreadReuse&) = delete;

    /// In place of `child<<<grid, block>>>(args...)`, in a thread that comes there once at most.
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, const Args& args) {
        this->take(grid, block, args);
    }

    /// The same in a thread that may come there more often: it runs all but its first launch by
    /// itself, by `serial(grid, block, args)`.
    template <class Serial>
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, const Args& args,
                                           Serial&& serial) {
        if (!detail::valid_grid(grid)) return;
        if (this->threads_ != 0) serial(grid, block, args);
        else this->take(grid, block, args);
    }

    /// Runs all that was launched: `body(threadIdx, blockIdx, gridDim, blockDim, args)` for each
    /// thread of the child grids.
    template <class Body>
    __device__ __forceinline__ void for_each_thread(Body&& body) {
        const bool any = this->threads_ != 0;
        if constexpr (std::is_same<Assignment, ByWarp>::value) {
            this->template by_warp<true>(any, body);
        } else {
            static_assert(
                std::is_same<Assignment, ByBlock>::value || std::is_same<Assignment, BySize>::value,
                "an assignment");
            if (!this->block_has_some()) return;
            bool small = false;
            if constexpr (std::is_same<Assignment, BySize>::value) {
                small = this->is_small();
                this->template by_warp<false>(any && small, body);
            }
            this->by_block(any && !small, body, [](unsigned long long) {});
        }
    }
};

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_REUSE_CUH
