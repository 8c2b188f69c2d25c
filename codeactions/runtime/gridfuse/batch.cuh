// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Launches that one grid runs.

#ifndef GRIDFUSE_BATCH_CUH
#define GRIDFUSE_BATCH_CUH

#include "arena.cuh"
#include "arguments.cuh"
#include "grid.cuh"
#include "memory_order.cuh"
#include "pool.cuh"
#include "search.cuh"
#include "threads.cuh"

#include <type_traits>

namespace gridfuse {
inline namespace v2 {

template <class Args, bool Nested = false, bool Shaped = false>
class Batch;

namespace detail {

/// One launch as written down in the arena.
template <class Args>
struct Record {
    Shape shape;
    Bytes<Args> args;
};

}   // namespace detail

/// What an aggregated child kernel runs: some launches with arguments of type `Args`, written down
/// by an Aggregator. The first parameter of such a kernel.
///
/// `Args` is any trivially copyable type: the arguments that differ between the launches. `Nested`:
/// see NestedBatch. `Shaped`: see ShapedBatch.
template <class Args, bool Nested, bool Shaped>
class Batch : detail::Nest<Nested> {
    static_assert(std::is_trivially_copyable<Args>::value,
                  "the arguments of a launch are copied byte by byte");
    static_assert(alignof(Args) <= detail::kSliceAlignment, "over-aligned launch arguments");

    using Nest = detail::Nest<Nested>;
    using Pool = std::conditional_t<Nested, detail::PoolView, detail::NoPool>;

public:
    /// Runs the child's code for the block of the child grid that this block stands for. Called
    /// once, by every thread of the kernel: `body(blockIdx, gridDim, blockDim, args)` gets what the
    /// built-in variables would have been in a launch of its own, and that launch's arguments;
    /// `threadIdx` is the built-in. Threads that the launch did not ask for (when block sizes
    /// differ between the launches of a batch, the largest is launched) do not call `body`.
    template <class Body>
    __device__ __forceinline__ void for_each_block(Body&& body) const {
        uint3 block = blockIdx;
        dim3 grid = gridDim;
        dim3 threads = blockDim;
        detail::Bytes<Args> args;
        if (count_ == 0) {
            args = alone_;
        } else {
            // If there are as many blocks as launches, then each has one.
            const detail::Place place = count_ == gridDim.x
                                            ? detail::Place{blockIdx.x, blockIdx.x}
                                            : detail::find(first_, count_, blockIdx.x);
            const detail::Record<Args>& record = records_[place.slot];
            const detail::Shape shape = record.shape;
            args = record.args;
            grid = shape.grid();
            threads = detail::unpack_block(shape.block);
            block.x = blockIdx.x - place.first;
            if (shape.grid_yz != 0) {
                const unsigned row = block.x / grid.x;
                block.x -= row * grid.x;
                block.z = row / grid.y;
                block.y = row - block.z * grid.y;
            }
        }
        if constexpr (Nested) {
            if (this->chunk) {
                __syncthreads();   // all threads have read their record
                if (detail::linear_thread() == 0) release(this->own.pool_, this->own.front_);
            }
        }
        if constexpr (Shaped) {
            // Threads in their order, which makes the warps, are in a row here.
            const unsigned thread = detail::linear_thread();
            if (thread >= threads.x * threads.y * threads.z) return;
            const unsigned row = thread / threads.x, layer = row / threads.y;
            body(uint3{thread - row * threads.x, row - layer * threads.y, layer}, block, grid,
                 threads, args.value());
        } else {
            // Block sizes differ in one-dimensional blocks only.
            if (count_ != 0 && threadIdx.x >= threads.x) return;
            body(block, grid, threads, args.value());
        }
    }

    /// For the Aggregators of a kernel that launches in its turn. They are declared before
    /// for_each_block is called.
    __device__ __forceinline__ Arena& arena() {
        static_assert(Nested, "a kernel that launches in its turn takes a gridfuse::NestedBatch");
        return this->own;
    }

private:
    template <class Granularity, auto Kernel, int Site>
    friend class Aggregator;

    // A block needs the batch's chunk no more; the last one gives it back.
    static __device__ __noinline__ void release(Pool pool, detail::Front* front) {
        detail::fence();
        if (atomicAdd(&front->blocks_done, 1u) + 1 != gridDim.x * gridDim.y * gridDim.z) return;
        detail::fence();
        pool.release(front);
    }

    /// One launch with a grid of its own. `front`: a chunk of the pool, or null.
    __device__ __forceinline__ Batch(const detail::Bytes<Args>& args, Pool pool,
                                     detail::Front* front)
        : Nest(pool, front, front != nullptr),
          records_(nullptr),
          first_(nullptr),
          count_(0),
          alone_(args) {}

    /// The launches that follow `front`, or in memory without a Front. `release`: it is a chunk of
    /// the pool.
    __device__ __forceinline__ Batch(const detail::Record<Args>* records, const unsigned* first,
                                     unsigned count, Pool pool, detail::Front* front, bool release)
        : Nest(pool, front, release), records_(records), first_(first), count_(count) {}

    const detail::Record<Args>* records_;
    const unsigned* first_;   // for each record, the number of blocks before it
    unsigned count_;          // 0: one launch, with the arguments in alone_
    detail::Bytes<Args> alone_;
};

/// The same for a kernel that launches in its turn through Aggregators of its own, and for the
/// kernels that such a kernel launches. Only these pay for it.
template <class Args>
using NestedBatch = Batch<Args, true>;

/// The same for a kernel of which the launches have blocks of several dimensions, in different
/// shapes. Blocks of as many threads as the largest has run it, in one dimension, and
/// `body(threadIdx, blockIdx, gridDim, blockDim, args)` gets its thread, too.
template <class Args>
using ShapedBatch = Batch<Args, false, true>;

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_BATCH_CUH
