// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Where the blocks of a chain meet.

#ifndef GRIDFUSE_LINKS_CUH
#define GRIDFUSE_LINKS_CUH

#include "grid.cuh"
#include "memory_order.cuh"
#include "threads.cuh"

#include <climits>

namespace gridfuse {
inline namespace v2 {

namespace detail {

/// What the blocks of a chain share. All zero at first, and again when the last block has left.
struct ChainState {
    static constexpr unsigned kRing = 8192;   // words
    static constexpr unsigned kMostSlots = 32;
    static constexpr unsigned kReady = 8192;   // more than blocks can be resident

    alignas(kSliceAlignment) unsigned long long tickets;   // links that have been taken
    alignas(kSliceAlignment) unsigned left;                // blocks that have left
    alignas(kSliceAlignment) unsigned long long done[4];   // see DecoupledLookback
    alignas(kSliceAlignment) unsigned long long words[kRing];
    alignas(kSliceAlignment) unsigned long long ready[kReady];   // see Chain::wait_at_once
};

}   // namespace detail

/// Where the blocks of a chain meet. A kernel parameter; made by chain_for.
class ChainMemory {
public:
    ChainMemory() = default;
    __host__ __device__ explicit ChainMemory(detail::ChainState* state) : state_(state) {}
    __device__ __forceinline__ detail::ChainState* state() const { return state_; }

private:
    detail::ChainState* state_ = nullptr;
};

namespace detail {

/// Numbers for links: each block of the grid takes one at a time. The links before one that
/// has a number have blocks that run or have run, so that a link may wait for them whatever else is
/// resident.
class Links {
public:
    /// The number of the block's link; the first is 0.
    __device__ __forceinline__ unsigned long long number() const { return number_; }

protected:
    __device__ __forceinline__ explicit Links(ChainMemory memory) : state_(memory.state()) {}

    /// Takes the next number, in one thread of the block.
    __device__ __forceinline__ unsigned long long take() {
        if (state_ != nullptr) return atomicAdd(&state_->tickets, 1ull);
        // without memory one block does everything
        return blockIdx.x != 0 ? ULLONG_MAX : began_ ? number_ + 1 : 0;
    }

    /// The next link, if all before it go on. All threads of the block, which need nothing of the
    /// last link any more.
    template <class GoesOn>
    __device__ __forceinline__ bool advance(const GoesOn& goes_on) {
        __shared__ unsigned long long ticket;
        const unsigned thread = linear_thread();
        if (thread == 0) ticket = take();
        __syncthreads();
        const unsigned long long taken = ticket;
        bool all = taken != ULLONG_MAX;
        if (all)
            for (unsigned long long link = checked_ + thread; all && link < taken;
                 link += block_threads())
                all = goes_on(link);
        if (!__syncthreads_and(all)) return false;
        checked_ = number_ = taken;
        began_ = true;
        return true;
    }

    /// The block has no further link. The last one leaves the state as it was at first, of which so
    /// many words have been used, and so many numbers of links that are ready.
    __device__ __forceinline__ void leave(unsigned words, unsigned ready = 0) {
        if (state_ == nullptr) return;
        bool last = false;
        __syncthreads();
        if (linear_thread() == 0) {
            fence();   // release
            last = atomicAdd(&state_->left, 1u) == gridDim.x - 1;
            fence();   // acquire
        }
        if (!__syncthreads_or(last)) return;
        for (unsigned word = linear_thread(); word < words; word += block_threads())
            state_->words[word] = 0;
        for (unsigned link = linear_thread(); link < ready; link += block_threads())
            state_->ready[link] = 0;
        if (linear_thread() == 0) {
            for (unsigned long long& done : state_->done) done = 0;
            state_->tickets = 0;
            state_->left = 0;
        }
    }

    ChainState* state_;
    unsigned long long number_ = 0;
    unsigned long long checked_ = 0;   // links before this one are known to go on
    bool began_ = false;
};

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_LINKS_CUH
