// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The memory of an arena for one launch of a parent kernel.

#ifndef GRIDFUSE_ARENA_FOR_CUH
#define GRIDFUSE_ARENA_FOR_CUH

#include "arena.cuh"
#include "batch.cuh"
#include "grid.cuh"
#include "memory.cuh"
#include "pool.cuh"
#include "state.cuh"

#include <climits>
#include <cstddef>

namespace gridfuse {
inline namespace v2 {

/// Owns the memory of an Arena for one launch in a stream: taken when made, given back when
/// destroyed, both in stream order. What arena_for returns; converts to Arena.
class ArenaOwner {
public:
    ArenaOwner(dim3 grid, dim3 block, cudaStream_t stream, std::size_t bytes_per_thread,
               unsigned aggregators, std::size_t nested_bytes) {
        const unsigned long long blocks = 1ull * grid.x * grid.y * grid.z;
        const unsigned long long threads = 1ull * block.x * block.y * block.z;
        if (blocks == 0 || threads == 0 || threads > detail::kMaxBlockThreads || aggregators == 0)
            return;
        const cudaError_t before = cudaPeekAtLastError();
        // Too large a wish is cut down rather than refused: fewer launches fit in the batches.
        for (; bytes_per_thread >= 8; bytes_per_thread /= 2, nested_bytes /= 2) {
            if (bytes_per_thread > UINT_MAX / 2 / threads) continue;
            const unsigned units = detail::PoolView::units_in(nested_bytes);
            // With nested launches a batch has a Front: each warp's, if it comes to that.
            const unsigned long long fronts =
                units == 0 ? 0 : (threads + 31) / 32 * sizeof(detail::Front);
            const unsigned long long part =
                (threads * bytes_per_thread + detail::kSliceAlignment - 1) /
                    detail::kSliceAlignment * detail::kSliceAlignment +
                fronts;
            if ((part + detail::kStateStride) * aggregators > ULLONG_MAX / 4 / blocks) continue;
            const unsigned long long states = detail::states_bytes(blocks, aggregators);
            const unsigned long long pool =
                units == 0 ? 0
                           : (nested_bytes + detail::kSliceAlignment - 1) /
                                 detail::kSliceAlignment * detail::kSliceAlignment;
            const std::size_t zeros =
                static_cast<std::size_t>(states + (units == 0 ? 0 : sizeof(detail::Pool)));
            if (!memory_.take(
                    stream, zeros,
                    static_cast<std::size_t>(states + pool + part * aggregators * blocks)))
                continue;
            arena_.memory_ = memory_.memory();
            if (units != 0) {
                memory_.spoil();   // the pool isn't left as it was at first
                arena_.pool_ = detail::PoolView(arena_.memory_ + states, units);
            }
            arena_.records_ = states + pool;
            arena_.blocks_ = blocks;
            arena_.part_bytes_ = static_cast<unsigned>(part);
            arena_.parts_ = aggregators;
            break;
        }
        // the program has not failed, it only runs without an arena
        if (before == cudaSuccess) (void)cudaGetLastError();
    }
    ArenaOwner(const ArenaOwner&) = delete;
    ArenaOwner& operator=(const ArenaOwner&) = delete;

    operator Arena() const { return arena_; }

private:
    template <auto... Kernel>
    friend class LaunchpadOwner;

    Arena arena_;
    detail::StreamMemory memory_;
};

/// Makes the arena for one launch of a parent kernel; written as the last argument of that launch:
///
///     parent<<<grid, block, 0, stream>>>(..., gridfuse::arena_for(grid, block, stream));
///
/// It lives until the end of the statement and gives its memory back in stream order, so after the
/// kernel and its children. `grid`, `block` and `stream` are those of the launch. A launch that is
/// written down takes 20 bytes and its arguments: `bytes_per_thread` decides how many fit for each
/// thread of a block, see room_for. A kernel with several Aggregators says how many in
/// `aggregators`; each gets `bytes_per_thread`. Without memory (none is left, say) the result is an
/// empty arena: the program is then slow, not wrong.
///
/// Where the children launch in their turn, through Aggregators of their own, `nested_bytes` is the
/// memory in which they write down their launches: all of them that run or wait at a time, down to
/// any depth. A block that launches takes at least 4 KiB of it until its launches have begun.
inline ArenaOwner arena_for(dim3 grid, dim3 block, cudaStream_t stream = 0,
                            std::size_t bytes_per_thread = 64, unsigned aggregators = 1,
                            std::size_t nested_bytes = 0) {
    return ArenaOwner(grid, block, stream, bytes_per_thread, aggregators, nested_bytes);
}

/// A value for `bytes_per_thread`: room for so many launches of each thread by each Aggregator,
/// given the structs of the arguments that they take. For a loop whose number of iterations isn't
/// known, 4 is a start: what finds no room is launched by itself, and is counted: see
/// direct_launches.
template <class... Args>
constexpr std::size_t room_for(unsigned launches_per_thread = 1) {
    std::size_t largest = 0;
    ((largest = sizeof(detail::Record<Args>) > largest ? sizeof(detail::Record<Args>) : largest),
     ...);
    const std::size_t room = launches_per_thread * (largest + sizeof(unsigned));
    return room < 64 ? 64 : room;
}

/// A good value for `nested_bytes`: all blocks that fit on a large GPU can write down launches at
/// the same time.
constexpr std::size_t kNestedBytes = std::size_t{64} << 20;

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_ARENA_FOR_CUH
