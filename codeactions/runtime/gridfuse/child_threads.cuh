// SPDX-License-Identifier: MIT OR Apache-2.0
//
// How many threads of a child grid have something to do.

#ifndef GRIDFUSE_CHILD_THREADS_CUH
#define GRIDFUSE_CHILD_THREADS_CUH

#include "version.cuh"

#include <climits>
#include <type_traits>
#include <utility>

namespace gridfuse {
inline namespace v2 {

namespace detail {

/// Whether the arguments of a launch say how many of its threads do something.
template <class Args, class = void>
inline constexpr bool kKnowsThreads = false;
template <class Args>
inline constexpr bool
    kKnowsThreads<Args, std::void_t<decltype(std::declval<const Args&>().threads())>> = true;

/// How many threads of so many do something, by what the arguments of their grid say.
template <class Args>
__device__ __forceinline__ unsigned long long threads_with_work(unsigned long long all,
                                                                const Args& args) {
    const auto threads = args.threads();
    const unsigned long long wanted = threads > 0 ? static_cast<unsigned long long>(threads) : 0;
    // Of more threads than that some may have a number that is a negative int.
    return all <= INT_MAX && wanted < all ? wanted : all;
}

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_CHILD_THREADS_CUH
