// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Two launches of a thread whose order counts: the second grid reads what the first has written.
// Each is collected by an Aggregator of its own, and an InOrder declared after them keeps their order:
//
//     gridfuse::Aggregator<gridfuse::PerBlock, rank_aggregated> ranks(arena, in, rank);
//     gridfuse::Aggregator<gridfuse::PerBlock, scatter_aggregated> scatters(arena, in, rank, out);
//     gridfuse::InOrder in_order(ranks, scatters);
//     ...
//     ranks.launch(blocks, threads, {begin, count});
//     scatters.launch(blocks, threads, {begin, count});
//
// The last thread to leave launches the first batch, and then the second one into the same stream:
// all grids of the one are done before those of the other begin. A launch that finds no room keeps
// its turn, too.

#ifndef GRIDFUSE_IN_ORDER_CUH
#define GRIDFUSE_IN_ORDER_CUH

#include "aggregate.cuh"

#include <type_traits>

namespace gridfuse {
inline namespace v2 {

/// Launches what two aggregators of a kernel have collected in order: first the grids of `First`, and
/// those of `Second` once they are done. Both have the same granularity, and their children launch
/// nothing that is collected in turn.
///
/// It is declared right after them, so that it is the first to be destroyed when a thread leaves.
template <class First, class Second>
class InOrder {
public:
    __device__ __forceinline__ InOrder(First& first, Second& second)
        : first_(first), second_(second) {
        static_assert(!First::kNested && !Second::kNested,
                      "launches that are collected in turn keep no order");
        static_assert(!First::kFromHost && !Second::kFromHost,
                      "launches that the host makes keep no order");
        static_assert(std::is_same<typename First::Whose, typename Second::Whose>::value,
                      "two aggregators in order have the same granularity");
        // With memory for one of them only, a launch that goes out by itself would overtake.
        const bool direct = first.no_arena() || second.no_arena();
        first.turn_ = direct ? detail::Turn::kDirect : detail::Turn::kFirst;
        second.turn_ = direct ? detail::Turn::kDirect : detail::Turn::kSecond;
    }
    InOrder(const InOrder&) = delete;
    InOrder& operator=(const InOrder&) = delete;

    /// The thread leaves; the last one launches.
    __device__ __forceinline__ ~InOrder() {
        First& first = first_;
        Second& second = second_;
        second.leave(first.wrote_ || second.wrote_, [&] {
            auto& state = first.state();
            if (detail::load_relaxed(state.went_alone) != 0) second.turn_ = detail::Turn::kLast;
            first.launch_all(state);
        });
    }

private:
    First& first_;
    Second& second_;
};

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_IN_ORDER_CUH
