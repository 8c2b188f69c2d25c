// SPDX-License-Identifier: MIT OR Apache-2.0
//
// After the parent. With PerGridInStream nothing is launched by the device, and the host waits for
// nothing: it launches a grid that runs what the parent is going to collect right after the parent.
//
//     __global__ void expand_aggregated(gridfuse::StreamBatch<expand_args, 128> batch,
//                                       const int* col, int* dist);
//
//     visit<<<blocks, threads, 0, stream>>>(row, col, dist, n,
//                                           gridfuse::followed_by<expand_aggregated>(blocks,
//                                               threads, stream, col, dist));
//
// The size of the child's blocks and the arguments that all launches share are known before, and so
// is how many launches a thread has at most; where it isn't (gridfuse::kNotKnown), launch() is also
// told how a thread runs by itself what finds no room. The children launch nothing through
// Aggregators of their own. Of a child whose threads have nothing to do with each other, and
// nothing to do at all from a number on that is among its arguments, that grid runs just the
// threads that have, evenly dealt out to its blocks:
//
//     struct expand_args { int begin; int count; __device__ int threads() const { return count; }
//                         };
//
//     __global__ void expand_aggregated(gridfuse::StreamBatch<expand_args, 128> batch,
//                                       const int* col, int* dist) {
//         batch.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim,
//                                   const expand_args& args) {
//             expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, dist, args.begin,
//                           args.count);
//         });
//     }

#ifndef GRIDFUSE_STREAM_CUH
#define GRIDFUSE_STREAM_CUH

#include "arguments.cuh"
#include "child_threads.cuh"
#include "direct_launches.cuh"
#include "granularity.cuh"
#include "grid.cuh"
#include "lately.cuh"
#include "memory.cuh"
#include "memory_order.cuh"
#include "occupancy.cuh"
#include "search.cuh"
#include "state.cuh"
#include "threads.cuh"

#include <atomic>
#include <climits>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace gridfuse {
inline namespace v2 {

/// For followed_by: how often a thread launches isn't known. There is room for some launches, and
/// what finds none runs in the thread that would have launched it.
constexpr unsigned kNotKnown = 0;

namespace detail {

// That room: so many launches for each thread of the parent, and so many in all, whichever is more.
constexpr unsigned kRoomEach = 8;
constexpr unsigned long long kRoomLeast = 1u << 16;

/// A launch has found no room.
__device__ __forceinline__ void count_full(bool is_first) {
    atomicAdd(&direct_launches, 1ull);
    if (is_first) say_full();
}

// The blocks of a parent write down their launches in so many segments of the memory at most, as
// atomic operations on one cursor go one at a time. Where a segment would be for a few blocks
// only, fewer segments are sooner looked through.
constexpr unsigned kSegments = 32;
constexpr unsigned kSegmentBlocks = 32;

// So many threads of children are worth a grid that follows, for which the parent's blocks would
// take about as long (an H100, docs/scale.md).
constexpr unsigned kMuch = 2048;

/// What the launches of a segment have come to.
struct alignas(kStateStride) StreamState {
    // as State::cursor, with threads in place of blocks where these are known
    unsigned long long cursor;
    // of the first segment: tiles that blocks of the follower have taken besides their first ones
    unsigned taken;
    // of the first segment: the last launch that has told the host that there is much
    unsigned told;
};

// Where threads of children are dealt out, one by one, a block has at most so many threads, and
// takes so many for each of them at a time.
constexpr unsigned kFollowerThreads = 256;
constexpr unsigned kMostEach = 4;

// Records are moved by words of 16 bytes.
template <class Args>
constexpr std::size_t kRecordAlignment = alignof(Args) > 16 ? alignof(Args) : 16;

/// One launch as written down, where its threads are known: the grid has one dimension.
template <class Args>
struct alignas(kRecordAlignment<Args>) ThreadRecord {
    unsigned grid_x;
    Bytes<Args> args;
};

/// One launch as written down. All of them have the same block.
template <class Args>
struct alignas(kRecordAlignment<Args>) BlockRecord {
    unsigned grid_x;
    unsigned grid_yz;   // as in Shape
    Bytes<Args> args;

    __device__ __forceinline__ dim3 grid() const { return Shape{grid_x, grid_yz, 0, 0}.grid(); }

    // The index of a block, given how many there are before it.
    __device__ __forceinline__ uint3 block(unsigned number) const {
        uint3 index = {number, 0, 0};
        if (grid_yz != 0) {
            const dim3 grid = this->grid();
            const unsigned row = number / grid.x;
            index.x -= row * grid.x;
            index.z = row / grid.y;
            index.y = row - index.z * grid.y;
        }
        return index;
    }
};

template <class Args>
using StreamRecord = std::conditional_t<kKnowsThreads<Args>, ThreadRecord<Args>, BlockRecord<Args>>;

/// Copies a record by the most that one instruction moves.
template <class Record>
__device__ __forceinline__ void copy_record(Record& to, const Record& from) {
    static_assert(alignof(Record) % 16 == 0, "words of 16 bytes");
    constexpr unsigned words = sizeof(Record) / 16;
    for (unsigned i = 0; i < words; ++i)
        reinterpret_cast<uint4*>(&to)[i] = reinterpret_cast<const uint4*>(&from)[i];
}

}   // namespace detail

/// Memory in which the threads of a parent kernel write down launches that a grid after it in the
/// stream runs: a kernel parameter, made by followed_by. It is a view, copied freely.
class StreamArena {
public:
    StreamArena() = default;

    /// Whether a grid follows that runs what is written down.
    __device__ __forceinline__ bool is_followed() const { return memory_ != nullptr; }

    /// Whether the parent has more threads than the GPU runs at a time.
    __device__ __forceinline__ bool is_large() const { return large_; }

    /// Tells the host that the parent's threads have launched much.
    __device__ __forceinline__ void tell() const {
        if (told_ != nullptr) *static_cast<volatile unsigned*>(told_) = number_;
    }

    /// The same where a grid follows: most of the threads that come here find that somebody has
    /// told.
    __device__ __forceinline__ void tell_once() const {
        detail::StreamState& first = state(turn_, 0);
        if (detail::load_relaxed(first.told) != number_ &&
            atomicExch(&first.told, number_) != number_)
            tell();
    }

private:
    template <class Args, unsigned X, unsigned Y, unsigned Z>
    friend class StreamBatch;
    template <class Granularity, auto Kernel, int Site>
    friend class Aggregator;
    template <auto Kernel, unsigned Launches, bool AtNeed, class Function>
    friend class Follower;

    __device__ __forceinline__ detail::StreamState& state(unsigned turn, unsigned segment) const {
        return reinterpret_cast<detail::StreamState*>(memory_)[turn * detail::kSegments + segment];
    }
    // That of the calling thread's block.
    __device__ __forceinline__ unsigned segment() const {
        return static_cast<unsigned>(detail::linear_block()) & (segments_ - 1);
    }
    template <class Args>
    __device__ __forceinline__ detail::StreamRecord<Args>* records(unsigned segment) const {
        return reinterpret_cast<detail::StreamRecord<Args>*>(memory_ + kStates) +
               static_cast<std::size_t>(segment) * capacity_;
    }
    // For each record of a segment, how many blocks (or threads, see for_each_thread) there are
    // before its own.
    template <class Args>
    __device__ __forceinline__ unsigned* first(unsigned segment) const {
        return reinterpret_cast<unsigned*>(records<Args>(segments_)) +
               segment * (capacity_ + std::size_t{1});
    }

    // Two states of each segment, one for this launch of the parent, the other for the next one
    // with the same memory.
    static constexpr std::size_t kStates = 2 * detail::kSegments * sizeof(detail::StreamState);
    static_assert(kStates % detail::kSliceAlignment == 0, "the records are aligned");

    unsigned char* memory_ = nullptr;
    unsigned capacity_ = 0;   // launches of a segment; its first() has one more place
    unsigned segments_ = 1;   // a power of two
    unsigned turn_ = 0;       // which states are this launch's
    unsigned number_ = 0;     // of this launch, for Lately
    unsigned* told_ = nullptr;
    bool large_ = false;
};

/// What an aggregated child kernel runs that the host launches right after the parent: launches
/// with arguments of type `Args` and blocks of X by Y by Z threads. The first parameter of such a
/// kernel.
template <class Args, unsigned X, unsigned Y = 1, unsigned Z = 1>
class StreamBatch {
    static_assert(std::is_trivially_copyable<Args>::value,
                  "the arguments of a launch are copied byte by byte");
    static_assert(alignof(Args) <= detail::kSliceAlignment, "over-aligned launch arguments");
    static_assert(detail::valid_block(dim3(X, Y, Z)), "no block can have this size");

public:
    /// Runs the child's code, for the blocks of child grids one at a time. Called once, by every
    /// thread of the kernel: `body(blockIdx, gridDim, blockDim, args)` gets what the built-in
    /// variables would have been in a launch of its own, and that launch's arguments; `threadIdx`
    /// is the built-in. Nothing keeps the threads of this block together between two blocks of
    /// children: a body that uses shared memory ends with a barrier.
    template <class Body>
    __device__ __forceinline__ void for_each_block(Body&& body) const {
        static_assert(
            !detail::kKnowsThreads<Args>,
            "for_each_thread runs a child of which it is known how many threads do something");
        // Not neighbouring ones: these belong to the same launch, mostly, and one whose blocks take
        // long would keep the others waiting.
        for_each_part(blockIdx.x, gridDim.x,
                      [&](const detail::BlockRecord<Args>& record, unsigned block) {
                          const detail::Bytes<Args> args = record.args;
                          body(record.block(block), record.grid(), dim3(X, Y, Z), args.value());
                      });
    }

    /// The same, for the threads of child grids one at a time, and only for those that have
    /// something to do: `Args` has a member function `threads()`, which says that in a grid with
    /// these arguments no thread does anything but the first so many. `body(threadIdx, blockIdx,
    /// gridDim, blockDim, args)` runs as that thread, and meets no others of its block or its warp.
    // Load-balancing search (Baxter, moderngpu, 2013): the threads of all child grids stand in a
    // row, of which a block takes a tile at a time. It looks for the tile's launches once, and each
    // of its threads finds its own among these, in shared memory.
    template <class Body>
    __device__ __forceinline__ void for_each_thread(Body&& body) const {
        static_assert(detail::kKnowsThreads<Args>,
                      "the struct of the arguments has a member function threads()");
        static_assert(X % 32 == 0 && Y == 1 && Z == 1, "a block of whole warps, of one dimension");
        __shared__ Segments all;
        // of the tile's launches
        __shared__ unsigned first[detail::kFollowerThreads * (detail::kMostEach + 1)];
        __shared__ unsigned next;
        if (threadIdx.x < detail::kSegments) count(all);
        __syncthreads();
        const unsigned tiles = all.first_tile[detail::kSegments], tile = all.tile;
        for (unsigned at = blockIdx.x; at < tiles;) {
            // In whichever order blocks are done, as some threads of children take longer than
            // others.
            unsigned taken = tiles;
            if (threadIdx.x == 0 && tiles > gridDim.x)
                taken = gridDim.x + atomicAdd(&arena_.state(arena_.turn_, 0).taken, 1u);
            const unsigned segment =
                tiles == all.first_tile[1]
                    ? 0
                    : detail::not_above(all.first_tile, detail::kSegments, at) - 1;
            const unsigned from = (at - all.first_tile[segment]) * tile,
                           rest = all.threads[segment] - from;
            const unsigned to = from + (rest < tile ? rest : tile);
            const unsigned* its_first = arena_.first<Args>(segment);
            unsigned count = all.launches[segment], low = 0;
            if (count > blockDim.x) low = detail::find(its_first, count, from).slot;
            its_first += low;
            count -= low;
            // The launches that begin before the tile's end. Each has a thread, so there are as
            // many as threads at most, and those before.
            unsigned launches = 0, found;
            do {
                const unsigned slot = launches + threadIdx.x;
                const unsigned before = slot < count ? its_first[slot] : UINT_MAX;
                first[slot] = before;
                found = static_cast<unsigned>(__syncthreads_count(before < to));
                launches += found;
            } while (found == blockDim.x);
            const detail::StreamRecord<Args>* const records = arena_.records<Args>(segment) + low;
            for (unsigned thread = from + threadIdx.x; thread < to; thread += blockDim.x) {
                const unsigned slot = detail::not_above(first, launches, thread) - 1,
                               number = thread - first[slot];
                detail::StreamRecord<Args> record;
                detail::copy_record(record, records[slot]);
                body(uint3{number % X, 0, 0}, uint3{number / X, 0, 0}, dim3(record.grid_x), dim3(X),
                     record.args.value());
            }
            if (threadIdx.x == 0) next = taken;
            __syncthreads();
            at = next;
        }
    }

    /// The name that for_each_thread had in version 1, for code that was rewritten then.
    template <class Body>
    __device__ __forceinline__ void for_each_warp(Body&& body) const {
        for_each_thread(static_cast<Body&&>(body));
    }

private:
    template <auto Kernel, unsigned Launches, bool AtNeed, class Function>
    friend class Follower;

    explicit StreamBatch(const StreamArena& arena) : arena_(arena) {}

    // What all segments have.
    struct Segments {
        unsigned first_tile[detail::kSegments + 1];   // how many tiles there are before each
        unsigned launches[detail::kSegments];
        unsigned threads[detail::kSegments];
        unsigned tile;   // threads of children, a multiple of those of a block
    };

    // By the first warp of a block.
    __device__ __forceinline__ void count(Segments& all) const {
        static_assert(detail::kSegments == 32, "a thread of the warp for each");
        const unsigned segment = threadIdx.x;
        Written written = {0, 0};
        if (segment < arena_.segments_) written = read(segment);
        all.launches[segment] = written.launches;
        all.threads[segment] = written.parts;
        reset();
        // Small tiles where large ones would leave blocks without any.
        const unsigned resident = gridDim.x * blockDim.x;
        unsigned filled = written.parts / (resident / 32 + 1);
        for (unsigned distance = 16; distance != 0; distance /= 2)
            filled += __shfl_xor_sync(~0u, filled, static_cast<int>(distance));
        unsigned each = 1;
        while (each < detail::kMostEach && filled >= 64 * each) each *= 2;
        const unsigned tile = each * blockDim.x,
                       own = written.parts / tile + (written.parts % tile != 0);
        unsigned sum = own;
        for (unsigned distance = 1; distance < 32; distance *= 2) {
            const unsigned other = __shfl_up_sync(~0u, sum, distance);
            if (segment >= distance) sum += other;
        }
        all.first_tile[segment] = sum - own;
        if (segment == detail::kSegments - 1) {
            all.first_tile[detail::kSegments] = sum;
            all.tile = tile;
        }
    }

    // What is written down in a segment: launches, and the blocks or threads of these.
    struct Written {
        unsigned launches, parts;
    };
    __device__ __forceinline__ Written read(unsigned segment) const {
        const unsigned long long cursor = arena_.state(arena_.turn_, segment).cursor;
        const Written written = {detail::launches_in(cursor),
                                 static_cast<unsigned>(detail::blocks_in(cursor))};
        if (written.launches <= arena_.capacity_) return written;
        // the others have run already
        return {arena_.capacity_, arena_.first<Args>(segment)[arena_.capacity_]};
    }

    // The launch before this one is long done with its states, the next one hasn't begun. It may
    // have more segments than this one.
    __device__ __forceinline__ void reset() const {
        if (blockIdx.x != 0) return;
        for (unsigned segment = detail::linear_thread(); segment < detail::kSegments;
             segment += detail::block_threads()) {
            detail::StreamState& state = arena_.state(arena_.turn_ ^ 1, segment);
            state.cursor = 0;
            state.taken = 0;
        }
    }

    // `body(record, number)` for each `step`th block of all child grids together, from `part` on:
    // the launch that it belongs to, and its number there. There is one segment.
    template <class Body>
    __device__ __forceinline__ void for_each_part(unsigned part, unsigned step, Body&& body) const {
        const detail::BlockRecord<Args>* const records = arena_.records<Args>(0);
        const unsigned* const first = arena_.first<Args>(0);
        const Written written = read(0);
        reset();
        const unsigned count = written.launches, parts = written.parts;
        for (; part < parts; part += step) {
            // If there are as many parts as launches, then each has one.
            const detail::Place place =
                count == parts ? detail::Place{part, part} : detail::find(first, count, part);
            body(records[place.slot], part - place.first);
            if (parts - part <= step) return;   // the sum might be too large a number
        }
    }

    StreamArena arena_;
};

namespace detail {

/// What the type of a kernel with a StreamBatch says.
template <class Function>
struct StreamChild {
    static_assert(sizeof(Function) == 0,
                  "what runs after the parent is a void (gridfuse::StreamBatch<Args, X>, ...)");
};
template <class T, unsigned BlockX, unsigned BlockY, unsigned BlockZ, class... Uniform>
struct StreamChild<void (*)(StreamBatch<T, BlockX, BlockY, BlockZ>, Uniform...)> {
    using Args = T;
    static constexpr unsigned kX = BlockX, kY = BlockY, kZ = BlockZ;
};

}   // namespace detail

/// Collects launches for the grid after the parent. Declared, and used, as the others; nothing
/// happens when a thread leaves, and a kernel that launches nothing pays nothing.
template <auto Kernel, int Site>
class Aggregator<PerGridInStream, Kernel, Site> {
    using Child = detail::StreamChild<decltype(Kernel)>;

public:
    /// The arguments that differ between the launches.
    using Args = typename Child::Args;

    __device__ __forceinline__ explicit Aggregator(const StreamArena& arena) : arena_(arena) {}
    Aggregator(const Aggregator&) = delete;
    Aggregator& operator=(const Aggregator&) = delete;

    /// In place of `child<<<grid, block>>>(args...)`. The kernel is stopped
    /// (cudaErrorLaunchFailure) by what can't be run: another block than that of the StreamBatch,
    /// more launches than followed_by was told, more than 2^32 blocks in all. Where threads are
    /// known: a grid of more than one dimension, more than 2^32 threads that blocks of the same
    /// segment ask for.
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, const Args& args) {
        write_down<false>(grid, block, args, [](dim3, dim3, const Args&) { __trap(); });
    }

    /// The same where nobody knows how often a thread launches (kNotKnown in followed_by): the
    /// calling thread runs what finds no room, by `serial(grid, block, args)`, and counts it in
    /// direct_launches.
    template <class Serial>
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, const Args& args,
                                           Serial&& serial) {
        write_down<true>(grid, block, args, static_cast<Serial&&>(serial));
    }

private:
    template <bool MayBeFull, class Full>
    __device__ __forceinline__ void write_down(dim3 grid, dim3 block, const Args& args,
                                               Full&& full) {
        // CUDA refuses a grid of no blocks and one that is too large.
        if (!detail::valid_grid(grid)) return;
        const unsigned long long parts = this->parts(grid, args);
        if (block.x != Child::kX || block.y != Child::kY || block.z != Child::kZ ||
            parts > UINT_MAX)
            __trap();
        if constexpr (detail::kKnowsThreads<Args>) {
            if (grid.y != 1 || grid.z != 1) __trap();
            if (parts == 0) return;
        }
        const unsigned segment = arena_.segment();
        const detail::Bytes<Args> bytes(args);
        const unsigned long long at = reserve<MayBeFull>(segment, static_cast<unsigned>(parts));
        const unsigned slot = detail::launches_in(at);
        // The first one that finds no room says what those in front of it come to.
        if (slot < arena_.capacity_ ||
            (MayBeFull && slot == arena_.capacity_ && arena_.memory_ != nullptr))
            arena_.template first<Args>(segment)[slot] =
                static_cast<unsigned>(detail::blocks_in(at));
        if (slot >= arena_.capacity_) {
            if constexpr (MayBeFull) detail::count_full(slot == arena_.capacity_);
            full(grid, block, args);
            return;
        }
        detail::StreamRecord<Args> record;
        record.grid_x = grid.x;
        if constexpr (!detail::kKnowsThreads<Args>)
            record.grid_yz = (grid.y - 1) | (grid.z - 1) << 16;
        record.args = bytes;
        detail::copy_record(arena_.template records<Args>(segment)[slot], record);
    }

    // How many blocks, or threads, of a grid there are to run.
    __device__ __forceinline__ static unsigned long long parts(dim3 grid, const Args& args) {
        const unsigned long long blocks = 1ull * grid.x * grid.y * grid.z;
        if constexpr (detail::kKnowsThreads<Args>) {
            return detail::threads_with_work(blocks * Child::kX, args);
        } else {
            (void)args;
            return blocks;
        }
    }

    // Slot and number of blocks (or threads) before it, as in the cursor. The threads of a warp
    // that happen to be here together move the cursor once.
    template <bool MayBeFull>
    __device__ __forceinline__ unsigned long long reserve(unsigned segment, unsigned blocks) {
        const unsigned together = __activemask();
        if (__any_sync(together, blocks > UINT_MAX / 32))
            return advance<MayBeFull>(segment, 1, blocks);
        const unsigned below = together & detail::lanes_below();
        const unsigned rank = detail::count_of(below);
        unsigned before = 0, sum = 0;
        // A vote for each bit: most grids are small, and any set of threads may be together here.
        for (unsigned bit = 0; __any_sync(together, blocks >> bit != 0); ++bit) {
            const unsigned holders = __ballot_sync(together, blocks >> bit & 1);
            sum += detail::count_of(holders) << bit;
            before += detail::count_of(holders & below) << bit;
        }
        unsigned long long at = 0;
        if (rank == 0) at = advance<MayBeFull>(segment, detail::count_of(together), sum);
        at = __shfl_sync(together, at, detail::first_of(together));
        return at + (static_cast<unsigned long long>(rank) << detail::kBlockBits) + before;
    }

    template <bool MayBeFull>
    __device__ __forceinline__ unsigned long long advance(unsigned segment, unsigned launches,
                                                          unsigned blocks) {
        if constexpr (MayBeFull) {
            // However often they come, the threads that are there at a time are all that count any
            // further. One that found room the last time counts without a look, which would be a
            // trip to memory in front of the addition's.
            if (arena_.memory_ == nullptr ||
                (!room_ && detail::launches_in(detail::load_relaxed(
                               arena_.state(arena_.turn_, segment).cursor)) > arena_.capacity_))
                return (arena_.capacity_ + 1ull) << detail::kBlockBits;
        } else {
            if (arena_.memory_ == nullptr) __trap();
        }
        const unsigned long long step =
            static_cast<unsigned long long>(launches) << detail::kBlockBits | blocks;
        const unsigned long long before =
            atomicAdd(&arena_.state(arena_.turn_, segment).cursor, step);
        const bool room = detail::launches_in(before) < arena_.capacity_;
        // What finds no room isn't run from here, however much it is.
        if (room && detail::blocks_in(before) + blocks > UINT_MAX) __trap();
        if constexpr (MayBeFull) room_ = room;
        return before;
    }

    StreamArena arena_;
    bool room_ = false;   // what the thread added to the cursor last came before the room's end
};

/// Owns the memory of a StreamArena for one launch of a parent in a stream, and launches the grid
/// after it: when destroyed. See followed_by.
template <auto Kernel, unsigned Launches, bool AtNeed = false, class Function = decltype(Kernel)>
class Follower;
template <auto Kernel, unsigned Launches, bool AtNeed, class Args, unsigned X, unsigned Y,
          unsigned Z, class... Uniform>
class Follower<Kernel, Launches, AtNeed, void (*)(StreamBatch<Args, X, Y, Z>, Uniform...)> {
    using Batch = StreamBatch<Args, X, Y, Z>;

public:
    /// `grid`, `block` and `stream` are those of the parent's launch, `uniform` the arguments that
    /// all launches share.
    Follower(dim3 grid, dim3 block, cudaStream_t stream, Uniform... uniform)
        : memory_(detail::KeptMemory::of_followers()), stream_(stream), uniform_(uniform...) {
        // CUDA refuses the parent
        if (!detail::valid_grid(grid) || !detail::valid_block(block)) return;
        const unsigned long long blocks = 1ull * grid.x * grid.y * grid.z;   // less than 2^63
        const cudaError_t before = cudaPeekAtLastError();
        if constexpr (AtNeed) {
            const bool needed = is_needed(blocks * block.x * block.y * block.z);
            if (before == cudaSuccess) (void)cudaGetLastError();
            if (!needed) return;
        }
        const unsigned each =
            block.x * block.y * block.z * (Launches != kNotKnown ? Launches : detail::kRoomEach);
        if (detail::kKnowsThreads<Args>) {
            while (arena_.segments_ < detail::kSegments &&
                   blocks / arena_.segments_ >= 2 * detail::kSegmentBlocks)
                arena_.segments_ *= 2;
        }
        const unsigned segments = arena_.segments_;
        const unsigned long long in_segment = blocks / segments + (blocks % segments != 0),
                                 most = detail::kMaxRecords / segments;
        unsigned long long launches = in_segment < most / each ? in_segment * each : most;
        if (Launches == kNotKnown && launches < detail::kRoomLeast / segments)
            launches = detail::kRoomLeast / segments;
        // With less memory than all of them could need it depends on how many there are: too many
        // stop the parent.
        for (; launches != 0; launches /= 2) {
            const std::size_t each_launch = sizeof(detail::StreamRecord<Args>) + sizeof(unsigned);
            const std::size_t records =
                segments * (static_cast<std::size_t>(launches) * each_launch + sizeof(unsigned));
            if (!memory_.take(stream, StreamArena::kStates, StreamArena::kStates + records))
                continue;
            arena_.memory_ = memory_.memory();
            arena_.capacity_ = static_cast<unsigned>(launches);
            arena_.turn_ = memory_.turn();
            break;
        }
        if (before == cudaSuccess) (void)cudaGetLastError();
    }
    ~Follower() {
        if (arena_.memory_ == nullptr) return;
        Batch batch(arena_);
        const Resident resident = this->resident();
        const auto launch = [&](auto&... uniform) {
            void* arguments[] = {&batch, detail::address_of(uniform)...};
            return cudaLaunchKernel(Kernel, dim3(resident.blocks), dim3(resident.threads, Y, Z),
                                    arguments, 0, stream_);
        };
        // the error stays for the program to see
        if (std::apply(launch, uniform_) != cudaSuccess) memory_.spoil();
    }
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;

    operator StreamArena() const { return arena_; }

private:
    // Whether there may be much to run after a parent of so many threads. A graph runs more often
    // than it is made.
    bool is_needed(unsigned long long threads) {
        static detail::Lately lately;
        arena_.number_ = lately.next();
        arena_.told_ = lately.told(arena_.number_);
        cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
        const bool known = cudaStreamIsCapturing(stream_, &capturing) == cudaSuccess &&
                           capturing == cudaStreamCaptureStatusNone;
        if (known && !detail::Lately::is_soon(arena_.number_, arena_.told_)) return false;
        const Resident resident = this->resident();
        arena_.large_ = threads > 1ull * resident.blocks * resident.threads;
        return true;
    }

    // As many blocks as can be resident, whatever there will be to do: they loop. Where threads are
    // dealt out one by one, the child's blocks don't matter, and small ones would leave a
    // multiprocessor half empty; but the kernel may have launch bounds.
    struct Resident {
        unsigned blocks, threads;
    };
    Resident resident() const {
        constexpr int devices = 64;
        static std::atomic<unsigned> known[devices];   // both: a block has at most 1024 threads
        constexpr unsigned bits = 11, mask = (1u << bits) - 1;
        int device = devices;
        if (cudaGetDevice(&device) != cudaSuccess) device = devices;
        const unsigned there = device < devices ? known[device].load(std::memory_order_relaxed) : 0;
        if (there != 0) return {there >> bits, there & mask};
        unsigned threads = X;
        if constexpr (detail::kKnowsThreads<Args>) {
            cudaFuncAttributes attributes = {};
            const bool fits =
                cudaFuncGetAttributes(&attributes, Kernel) == cudaSuccess &&
                attributes.maxThreadsPerBlock >= static_cast<int>(detail::kFollowerThreads);
            if (X > detail::kFollowerThreads || fits) threads = detail::kFollowerThreads;
        }
        const unsigned blocks = chain_blocks<Kernel>(dim3(threads, Y, Z));
        if (device < devices)
            known[device].store(blocks << bits | threads, std::memory_order_relaxed);
        return {blocks, threads};
    }

    StreamArena arena_;
    detail::StreamMemory memory_;   // given back after the launch
    cudaStream_t stream_;
    std::tuple<Uniform...> uniform_;
};

/// Makes the arena for one launch of a parent kernel whose Aggregators are PerGridInStream; written
/// as the last argument of that launch:
///
///     parent<<<grid, block, 0, stream>>>(..., gridfuse::followed_by<child_aggregated>(grid,
///         block, stream, uniform...));
///
/// At the end of the statement the host launches `Kernel` into the stream, after the parent: with
/// the arguments that all launches share, and as many blocks as can be resident. They run what the
/// parent has collected until then. `grid`, `block` and `stream` are those of the parent's launch;
/// each of its threads has at most `Launches` launches, for which there is memory: for each 4
/// bytes, and its arguments with 8 more, rounded up to 16. Where that is kNotKnown, the parent says
/// what else to do with a launch. Neither side waits for the other, and a graph that the stream is
/// being captured into gets both kernels. No other thread of the host may launch into the stream
/// meanwhile what must not come between parent and children.
template <auto Kernel, unsigned Launches = 1>
using followed_by = Follower<Kernel, Launches>;

/// The same for a parent whose ThreadReuseInStream runs by itself what isn't written down: the grid
/// follows the first launches of the parent in a program, and those that come shortly after one
/// that had much to run.
template <auto Kernel, unsigned Launches = 1>
using followed_at_need = Follower<Kernel, Launches, true>;

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_STREAM_CUH
