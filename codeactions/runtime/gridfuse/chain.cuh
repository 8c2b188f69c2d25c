// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Chains. A kernel of one block that launches itself again becomes one grid, whose blocks take the
// launches in their order: Chain, and DecoupledLookback where only a running value is passed on.

#ifndef GRIDFUSE_CHAIN_CUH
#define GRIDFUSE_CHAIN_CUH

#include "arguments.cuh"
#include "links.cuh"
#include "memory_order.cuh"
#include "threads.cuh"

#include <climits>
#include <cstddef>
#include <type_traits>

namespace gridfuse {
inline namespace v2 {

/// A kernel of one block that launches itself again, as one grid: each launch is a link of the
/// chain, each block runs a link and then takes another one.
///
///     struct compact_args { int tile; int offset; };   // the arguments that differ between the
///         links
///
///     __global__ void compact(const int* in, int* out, int n, int tile, int offset,
///                             gridfuse::ChainMemory memory) {
///         gridfuse::Chain<compact_args> chain(memory, {tile, offset});
///         while (chain.next())
///             compact_link(chain, in, out, n, chain.args().tile, chain.args().offset);   // calls
///             chain.launch({...}) to go on
///     }
///
///     compact<<<gridfuse::chain_blocks<compact>(256), 256, 0, stream>>>(in, out, n, 0, 0,
///         gridfuse::chain_for(stream));
///
/// A link begins when the one before launches it, and sees what the launching thread knew then. The
/// rest of that one goes on beside it. With chain.next(goes_on), where `goes_on(number)` says
/// whether link `number` launches another one, a link begins as soon as a block is there for it,
/// and waits for being launched in chain.wait().
///
/// It can't hang, however few blocks are resident: a link waits only for the one before, whose
/// number was taken before, by a block that runs.
template <class Args = detail::NoArguments>
class Chain : public detail::Links {
    static_assert(std::is_trivially_copyable<Args>::value,
                  "the arguments of a launch are copied byte by byte");

    // Each word of the arguments travels with the link's number: whoever sees that has the word,
    // too.
    static constexpr unsigned kWords = (sizeof(Args) + 3) / 4;
    static constexpr unsigned kStride = (kWords + 15) / 16 * 16;   // slots share no cache line
    static constexpr unsigned kFit = detail::ChainState::kRing / kStride;
    static constexpr unsigned kSlots =
        kFit < detail::ChainState::kMostSlots ? kFit : detail::ChainState::kMostSlots;
    static constexpr unsigned kEnd = UINT_MAX;
    static_assert(kSlots > 0, "more arguments than a kernel can have");

    struct Local {
        detail::Bytes<Args> args;
        detail::Bytes<Args> launched;   // without memory
        bool end;
    };

public:
    __device__ __forceinline__ explicit Chain(ChainMemory memory, const Args& first = Args())
        : Links(memory), first_(first) {}

    /// The next link for this block, when it has been launched; false when there is none. All
    /// threads of the block.
    __device__ __forceinline__ bool next() {
        if (began_ && !__syncthreads_or(launched_)) {
            end();
            return false;
        }
        // has no memory, nothing to leave
        if (!advance([](unsigned long long) { return true; })) return false;
        launched_ = false;
        receive();
        if (!local().end) return true;
        leave(kSlots * kStride);
        return false;
    }

    /// The next link for this block, which has not been launched perhaps; false when there is none.
    /// All threads of the block.
    template <class GoesOn>
    __device__ __forceinline__ bool next(const GoesOn& goes_on) {
        if (began_) __syncthreads();
        if (advance(goes_on)) return true;
        if (state_ != nullptr) {
            constexpr unsigned most = detail::ChainState::kReady;
            const unsigned long long taken = detail::load_relaxed(state_->tickets);
            leave(kSlots * kStride, taken < most ? static_cast<unsigned>(taken) : most);
        }
        return false;
    }

    /// Waits until the link has been launched: its arguments. All threads of the block.
    __device__ __forceinline__ Args wait() {
        __syncthreads();
        receive();
        return args();
    }

    /// The same for a link that launches the next one by launch_at_once(). What the links before
    /// have done until they waited is seen by what comes after it: each of them has said that it is
    /// that far, so that no link has to put a fence between getting its arguments and passing
    /// others on. That fence would take as long as the rest of it (H200: 280 of 600 ns).
    __device__ __forceinline__ Args wait_at_once() {
        __syncthreads();   // release, with get_ready's fence
        const bool by_itself = state_ == nullptr || gridDim.x > detail::ChainState::kReady;
        if (!by_itself && detail::linear_thread() < 32) get_ready();
        receive(by_itself);
        return args();
    }

    /// The arguments of the link, once it has been launched.
    __device__ __forceinline__ Args args() const { return local().args.value(); }

    /// Launches the next link. One thread of the block.
    __device__ __forceinline__ void launch(const Args& args = Args()) {
        detail::fence();   // release
        launch_at_once(args);
    }

    /// The same for the first thread of the block, where no thread has touched memory that others
    /// see since wait_at_once().
    __device__ __forceinline__ void launch_at_once(const Args& args = Args()) {
        launched_ = true;
        if (state_ == nullptr) {
            local().launched = detail::Bytes<Args>(args);
            return;
        }
        unsigned words[kWords] = {};
        memcpy(words, &args, sizeof(Args));
        unsigned long long* const slot = slot_of(number_ + 1);
        const unsigned long long tag = static_cast<unsigned long long>(tag_of(number_ + 1)) << 32;
#pragma unroll
        for (unsigned word = 0; word < kWords; ++word)
            detail::store_relaxed(slot[word], tag | words[word]);
    }

private:
    static __device__ __forceinline__ Local& local() {
        __shared__ Local local;
        return local;
    }
    __device__ __forceinline__ unsigned long long* slot_of(unsigned long long number) const {
        return state_->words + number % kSlots * kStride;
    }
    static __device__ __forceinline__ unsigned tag_of(unsigned long long number) {
        return static_cast<unsigned>(number % (kEnd - 1)) + 1;
    }

    // Says that this link has come to where it waits, and waits until all links before it have.
    // That takes no part in the chain: a link gets there without any other. The first warp of the
    // block.
    //
    // Links that are kReady apart share a place. There are no more blocks than that, so when the
    // later one has its number, one from the earlier one on is done; with it the earlier one's
    // waiting is, too, and the later one's number stands for both. It is exchanged, not written,
    // for who reads it to be past the fences of both.
    __device__ __forceinline__ void get_ready() {
        constexpr unsigned long long kReady = detail::ChainState::kReady;
        const unsigned lane = detail::linear_thread();
        if (lane == 0) {
            detail::fence();   // release
            atomicExch(&state_->ready[number_ % kReady], number_ + 1);
        }
        const unsigned long long from = number_ - seen_ > kReady ? number_ - kReady : seen_;
        for (unsigned long long link = from + lane; link < number_; link += detail::warp_threads())
            while (detail::load_relaxed(state_->ready[link % kReady]) <= link) {}
        detail::fence();   // acquire; for the whole block at the barrier below
        seen_ = number_ + 1;
    }

    // With `fence`, what is done from now on sees what was done before the launch.
    __device__ __forceinline__ void receive(bool fence = true) {
        const unsigned thread = detail::linear_thread();
        if (number_ == 0 || state_ == nullptr) {
            if (thread == 0) {
                local().args = number_ == 0 ? detail::Bytes<Args>(first_) : local().launched;
                local().end = false;
            }
        } else if (thread < 32) {
            const unsigned long long* const slot = slot_of(number_);
            const unsigned tag = tag_of(number_);
            bool end = false;
            for (unsigned word = thread; word < kWords; word += detail::warp_threads()) {
                unsigned long long seen;
                do {
                    seen = detail::load_relaxed(slot[word]);
                    end = seen >> 32 == kEnd;
                } while (!end && seen >> 32 != tag);
                const unsigned value = static_cast<unsigned>(seen);
                const unsigned bytes = word + 1 == kWords ? sizeof(Args) - 4 * word : 4;
                memcpy(reinterpret_cast<unsigned char*>(&local().args) + 4 * word, &value, bytes);
            }
            if (thread == 0) local().end = end;
        }
        if (fence && thread < 32) detail::fence();   // acquire
        __syncthreads();
    }

    // No link comes after this one. Those that wait for more have taken their numbers in vain.
    __device__ __forceinline__ void end() {
        if (state_ == nullptr) return;
        for (unsigned word = detail::linear_thread(); word < kSlots * kStride;
             word += detail::block_threads())
            detail::store_relaxed(state_->words[word], static_cast<unsigned long long>(kEnd) << 32);
        leave(kSlots * kStride);
    }

    Args first_;
    // links before this one are known to have come to where they wait
    unsigned long long seen_ = 0;
    bool launched_ = false;
};

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_CHAIN_CUH
