// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Whose launches become one launch.

#ifndef GRIDFUSE_GRANULARITY_CUH
#define GRIDFUSE_GRANULARITY_CUH

#include "version.cuh"

namespace gridfuse {
inline namespace v2 {

/// Granularity: the launches of one warp of the parent kernel become one launch.
struct PerWarp {};

/// Granularity: the launches of one block of the parent kernel become one launch.
struct PerBlock {};

/// Granularity: the launches of `Blocks` neighbouring blocks of the parent kernel become one
/// launch.
template <unsigned Blocks>
struct PerMultiBlock {
    static_assert(Blocks > 0, "a group has at least one block");
};

/// Granularity: all launches of a grid of the parent kernel become one launch.
struct PerGrid {};

/// Granularity: all launches of a grid of the parent kernel become one launch, which the host does
/// when the parent is done. The parent's arena is made by launchpad_for; with another one, this is
/// the same as PerGrid.
struct PerGridFromHost {};

/// Granularity: all launches of a grid of the parent kernel are run by one grid, which the host
/// launches right after the parent without knowing what it will have to run. Their kernel takes a
/// StreamBatch; the parent a StreamArena, which is made by followed_by.
struct PerGridInStream {};

// Collects launches. Declared here, as what runs after the parent has one of its own.
template <class Granularity, auto Kernel, int Site = 0>
class Aggregator;

namespace detail {

/// How many blocks launch together. For a warp the number doesn't matter.
template <class Granularity>
struct Blocks;
template <> struct Blocks<PerWarp> { static constexpr unsigned kCount = 1; };
template <> struct Blocks<PerBlock> { static constexpr unsigned kCount = 1; };
template <unsigned Count>
struct Blocks<PerMultiBlock<Count>> {
    static constexpr unsigned kCount = Count;
};
// A grid has seldom more blocks than this.
template <> struct Blocks<PerGrid> { static constexpr unsigned kCount = 1u << 31; };
template <> struct Blocks<PerGridFromHost> { static constexpr unsigned kCount = 1u << 31; };

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_GRANULARITY_CUH
