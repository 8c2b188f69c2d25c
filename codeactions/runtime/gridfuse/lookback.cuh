// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Running values. A chain in which a link gets nothing from the one before but a running value:
// DecoupledLookback.

#ifndef GRIDFUSE_LOOKBACK_CUH
#define GRIDFUSE_LOOKBACK_CUH

#include "links.cuh"
#include "memory_order.cuh"
#include "threads.cuh"

#include <type_traits>

namespace gridfuse {
inline namespace v2 {

/// Operations of a DecoupledLookback. In any order the result is the same, but for sums of
/// floating-point numbers, whose rounding differs.
struct plus {
    template <class T>
    __device__ __forceinline__ T operator()(T a, T b) const {
        if constexpr (std::is_floating_point<T>::value) {
            return a + b;
        } else {
            // wraps around, as partial sums may where the whole doesn't
            using Number = std::make_unsigned_t<T>;
            return static_cast<T>(static_cast<Number>(a) + static_cast<Number>(b));
        }
    }
};
struct maximum {
    template <class T>
    __device__ __forceinline__ T operator()(T a, T b) const {
        if constexpr (std::is_same<T, float>::value) return fmaxf(a, b);
        else if constexpr (std::is_same<T, double>::value) return fmax(a, b);
        else return a < b ? b : a;
    }
};
struct minimum {
    template <class T>
    __device__ __forceinline__ T operator()(T a, T b) const {
        if constexpr (std::is_same<T, float>::value) return fminf(a, b);
        else if constexpr (std::is_same<T, double>::value) return fmin(a, b);
        else return b < a ? b : a;
    }
};

/// A chain in which a link gets nothing from the one before but a running value, to which each adds
/// its own. No link waits for the one before to be launched: it says what it adds, and looks back
/// at what those before have said, until it comes to one that knows its own value (Merrill and
/// Garland: Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016).
///
///     gridfuse::DecoupledLookback<int, gridfuse::plus> chain(memory, offset);
///     while (chain.next([&](unsigned long long link) { return compact_goes_on(n, tile + link); }))
///         compact_link(chain, in, out, n, tile + chain.number());   // calls chain.before(total)
///
/// A link sees after before() what all links before it did above before(). It can't hang, however
/// few blocks are resident: a link waits only for links before it, whose numbers were taken before,
/// by blocks that run.
///
/// What links have said stands in a ring. A link of one quarter of it starts to look back when all
/// links up to the quarter before the last are done: so it looks at this quarter, the one before
/// and the last link of that before, and nobody looks any more at the quarter that it writes over.
///
/// Each half of a value of 64 bits has a word of its own, with the state: who sees it in both has a
/// value that belongs together.
template <class T = unsigned, class Operation = plus>
class DecoupledLookback : public detail::Links {
    static_assert((sizeof(T) == 4 || sizeof(T) == 8) && std::is_trivially_copyable<T>::value,
                  "each 32 bits of a value travel with its state in a word of 64 bits");
    static constexpr unsigned kWords = sizeof(T) / 4;
    // links
    static constexpr unsigned kRing = detail::ChainState::kRing / kWords, kQuarter = kRing / 4;
    // states: the link's own value; that of all up to it
    enum : unsigned { kOwn = 1, kWhole = 2 };

    struct Local {
        T before;
        T running;   // without memory
    };

public:
    __device__ __forceinline__ explicit DecoupledLookback(ChainMemory memory, T first = T())
        : Links(memory), first_(first) {}

    /// The next link for this block; false when there is none. All threads of the block.
    template <class GoesOn>
    __device__ __forceinline__ bool next(const GoesOn& goes_on) {
        if (began_) __syncthreads();
        if (advance(goes_on)) return true;
        if (state_ != nullptr) {
            const unsigned long long taken = detail::load_relaxed(state_->tickets);
            leave((taken < kRing ? static_cast<unsigned>(taken) : kRing) * kWords);
        }
        return false;
    }

    /// The running value in front of this link, to which it adds `own` (of the first thread). All
    /// threads of the block.
    __device__ __forceinline__ T before(T own = T()) {
        __shared__ Local local;
        __syncthreads();   // release, with the fence below
        if (state_ == nullptr) {
            if (detail::linear_thread() == 0) {
                local.before = number_ == 0 ? first_ : local.running;
                local.running = Operation()(local.before, own);
            }
        } else if (detail::linear_thread() < 32) {
            const T value = look_back(own);
            if (detail::linear_thread() == 0) local.before = value;
        }
        __syncthreads();
        return local.before;
    }

    /// Where the next link would be launched: it runs already.
    __device__ __forceinline__ void launch() {}

private:
    // A value in words of 32 bits.
    struct Parts {
        unsigned part[kWords];
    };
    static __device__ __forceinline__ Parts parts_of(T value) {
        Parts parts;
        memcpy(&parts, &value, sizeof parts);
        return parts;
    }
    static __device__ __forceinline__ T value_of(const Parts& parts) {
        T value;
        memcpy(&value, &parts, sizeof value);
        return value;
    }
    // Which time round the ring, above the state.
    static __device__ __forceinline__ unsigned round_of(unsigned long long number) {
        return static_cast<unsigned>(number / kRing) << 2;
    }
    __device__ __forceinline__ unsigned long long* words_of(unsigned long long number) const {
        return state_->words + number % kRing * kWords;
    }
    __device__ __forceinline__ void say(unsigned state, T value) {
        unsigned long long* const words = words_of(number_);
        const unsigned long long tag = static_cast<unsigned long long>(round_of(number_) | state)
                                       << 32;
        const Parts parts = parts_of(value);
#pragma unroll
        for (unsigned word = 0; word < kWords; ++word)
            detail::store_relaxed(words[word], tag | parts.part[word]);
    }
    // What a link has said: its state, and the value that belongs to it.
    __device__ __forceinline__ unsigned look_at(unsigned long long number, Parts& parts) const {
        const unsigned long long* const words = words_of(number);
        unsigned state = 0;
#pragma unroll
        for (unsigned word = 0; word < kWords; ++word) {
            const unsigned long long said = detail::load_relaxed(words[word]);
            const unsigned its = static_cast<unsigned>(said >> 32) ^ round_of(number);
            parts.part[word] = static_cast<unsigned>(said);
            state = word == 0 || its == state ? its : 0;
        }
        return state;
    }
    // The value of the lane that is so far up.
    static __device__ __forceinline__ T from_above(unsigned everyone, T value, unsigned distance) {
        Parts parts = parts_of(value);
#pragma unroll
        for (unsigned word = 0; word < kWords; ++word)
            parts.part[word] = __shfl_down_sync(everyone, parts.part[word], distance);
        return value_of(parts);
    }

    // The first warp of the block.
    __device__ __forceinline__ T look_back(T own) {
        const unsigned lane = detail::linear_thread(), lanes = detail::warp_threads();
        const unsigned everyone = lanes == 32 ? ~0u : (1u << lanes) - 1;
        const unsigned long long quarter = number_ / kQuarter;
        const Operation combine{};
        if (lane == 0) {
            if (quarter >= 2)
                while (detail::load_relaxed(state_->done[(quarter - 2) % 4]) <
                       ((quarter - 2) / 4 + 1) * kQuarter) {}
            detail::fence();
            if (number_ == 0) say(kWhole, combine(first_, own));
            else say(kOwn, own);
        }
        T value = first_;
        if (number_ != 0) {
            // Nobody looks beyond the last link of the quarter before the last.
            const unsigned long long limit = quarter >= 2 ? (quarter - 1) * kQuarter - 1 : 0;
            bool some = false;
            for (unsigned long long end = number_;;) {
                const bool looks = end - limit > lane;
                const unsigned long long at = looks ? end - 1 - lane : limit;
                const unsigned limited =
                    end - limit < lanes ? static_cast<unsigned>(end - limit) : lanes;
                Parts said;
                unsigned last;   // the lane of the last link that is needed
                bool whole;
                for (;;) {
                    const unsigned state = look_at(at, said);
                    const unsigned wholes = __ballot_sync(everyone, looks && state == kWhole);
                    const unsigned known =
                        __ballot_sync(everyone, looks && (state == kWhole || state == kOwn));
                    whole = wholes != 0;
                    last = whole ? static_cast<unsigned>(detail::first_of(wholes)) : limited - 1;
                    const unsigned needed = last == 31 ? ~0u : (1u << (last + 1)) - 1;
                    // The one at the limit will know its value.
                    if ((known & needed) == needed && (whole || end - limit > lanes)) break;
                }
                T part = value_of(said);
                for (unsigned distance = 1; distance <= last; distance *= 2) {
                    const T other = from_above(everyone, part, distance);
                    if (lane + distance <= last) part = combine(part, other);
                }
                value = some ? combine(part, value) : part;
                some = true;
                if (whole) break;
                end -= lanes;
            }
        }
        detail::fence();   // acquire
        __syncwarp(everyone);
        if (lane == 0) {
            detail::fence();   // release, of what other lanes know as well
            if (number_ != 0) say(kWhole, combine(value, own));
            atomicAdd(&state_->done[quarter % 4], 1ull);
        }
        return value;   // of the first lane
    }

    T first_;
};

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_LOOKBACK_CUH
