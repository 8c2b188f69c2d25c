// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Thread reuse, and a grid right after the parent for what is too much for a warp: where there was
// much lately.
//
//     __global__ void visit(const int* row, const int* col, int* dist, int n,
//                           gridfuse::StreamArena arena) {
//         gridfuse::ThreadReuseInStream<expand_aggregated> expands(arena);
//         visit_body(expands, row, dist, n);
//         expands.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim,
//                                     dim3 blockDim, const expand_args& args) {
//             expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, dist, args.begin,
//                           args.count);
//         });
//     }
//
//     visit<<<blocks, threads, 0, stream>>>(row, col, dist, n,
//         gridfuse::followed_at_need<expand_aggregated>(blocks, threads, stream, col, dist));

#ifndef GRIDFUSE_REUSE_IN_STREAM_CUH
#define GRIDFUSE_REUSE_IN_STREAM_CUH

#include "reuse.cuh"
#include "stream.cuh"

namespace gridfuse {
inline namespace v2 {

namespace detail {

/// What the threads of a parent take for a kernel with a StreamBatch.
template <auto Kernel>
using ReuseFor =
    Reuse<typename StreamChild<decltype(Kernel)>::Args, StreamChild<decltype(Kernel)>::kX,
          StreamChild<decltype(Kernel)>::kY, StreamChild<decltype(Kernel)>::kZ>;

}   // namespace detail

/// As ThreadReuse with BySize, for a parent that `Kernel` may follow: what is too much for a warp
/// is written down for it, where it does, and is run by the block where it doesn't.
template <auto Kernel>
class ThreadReuseInStream : detail::ReuseFor<Kernel> {
    using Child = detail::StreamChild<decltype(Kernel)>;

public:
    /// The arguments that differ between the launches.
    using Args = typename Child::Args;

    __device__ __forceinline__ explicit ThreadReuseInStream(const StreamArena& arena)
        : arena_(arena) {}
    ThreadReuseInStream(const ThreadReuseInStream&) = delete;
    ThreadReuseInStream& operator=(const ThreadReuseInStream&) = delete;

    /// In place of `child<<<grid, block>>>(args...)`, in a thread that comes there once at most.
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, const Args& args) {
        this->take(grid, block, args);
    }

    /// The same in a thread that may come there more often. All but its first launch are written
    /// down; where that can't be, the thread runs them by itself: `serial(grid, block, args)`.
    template <class Serial>
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, const Args& args,
                                           Serial&& serial) {
        if (!detail::valid_grid(grid)) return;
        if (this->threads_ == 0) this->take(grid, block, args);
        else if (arena_.is_followed())
            Aggregator<PerGridInStream, Kernel>(arena_).launch(grid, block, args, serial);
        else serial(grid, block, args);
    }

    /// Runs what was launched, or writes it down: `body(threadIdx, blockIdx, gridDim, blockDim,
    /// args)` for each thread of the child grids.
    template <class Body>
    __device__ __forceinline__ void for_each_thread(Body&& body) {
        if (!this->block_has_some()) return;
        const bool any = this->threads_ != 0, small = this->is_small();
        if (!arena_.is_followed()) {
            this->template by_warp<false>(any && small, body);
            this->by_block(any && !small, body, [&](unsigned long long threads) {
                if (threads >= detail::kMuch) arena_.tell();
            });
            return;
        }
        if (this->are_many(any && !small, detail::kMuch)) arena_.tell_once();
        // Nothing is small where the whole grid is there at a time: then all wait for the thread
        // that comes last.
        const bool writes = any && !(small && arena_.is_large());
        if (writes) {
            const auto serial = [&](dim3, dim3, const Args&) {
                for (unsigned long long number = 0; number < this->threads_; ++number)
                    this->record_.run(number, body);
            };
            const dim3 block(Child::kX, Child::kY, Child::kZ);
            Aggregator<PerGridInStream, Kernel>(arena_).launch(this->record_.grid.get(), block,
                                                               this->record_.args.value(), serial);
        }
        if (arena_.is_large()) this->template by_warp<false>(any && !writes, body);
    }

private:
    StreamArena arena_;
};

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_REUSE_IN_STREAM_CUH
