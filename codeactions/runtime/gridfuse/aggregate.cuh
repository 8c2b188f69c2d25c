// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Aggregation. A kernel whose threads each launch a small grid pays for every launch. With an
// Aggregator, the threads of a block only write down what they want to launch; the last of them to
// leave the kernel launches one grid that holds all the blocks asked for:
//
//     struct expand_args { int begin; int count; };   // the arguments that differ between launches
//
//     __global__ void expand_aggregated(gridfuse::Batch<expand_args> batch, const int* col,
//                                       int* dist) {
//         batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim,
//                                  const expand_args& args) {
//             expand_body(blockIdx, gridDim, blockDim, col, dist, args.begin, args.count);
//         });
//     }
//
//     __global__ void visit(const int* row, const int* col, int* dist, int n,
//                           gridfuse::Arena arena) {
//         gridfuse::Aggregator<gridfuse::PerBlock, expand_aggregated> expands(arena, col, dist);
//         int v = blockIdx.x * blockDim.x + threadIdx.x;
//         if (v >= n) return;
//         int begin = row[v], count = row[v + 1] - begin;
//         if (count > 0) expands.launch((count + 127) / 128, 128, {begin, count});
//     }
//
//     visit<<<blocks, threads, 0, stream>>>(row, col, dist, n, gridfuse::arena_for(blocks,
//         threads, stream));
//
// What holds for an aggregated launch:
//   * The child sees everything that the launching thread wrote before launch(), as with <<<>>>. It
//     may start later than it would have: when the last thread of the granularity (of the block,
//     with PerBlock) has left.
//   * The children of one batch are in no order among themselves, as in cudaStreamFireAndForget.
//   * No launch is lost. One that does not fit (the arena is full, more blocks than a grid can
//     have) or that is large by itself gets a grid of its own. So does one that CUDA might refuse
//     (a block of more than 1024 threads, say), so that it can fail only by itself.
//   * A grid of no blocks, which CUDA refuses to launch, is ignored.
//   * gridfuse::direct_launches() tells the host how many launches got a grid of their own, as the
//     arena was full or missing, say. In debug builds (nvcc -G, or -DGRIDFUSE_DEBUG) launches that
//     don't fit are printed as well, group by group.
//
// Nested launches. A kernel that an Aggregator launches may collect launches in its turn, and be
// its own child: its Aggregators take `batch.arena()`. They write down their launches in memory
// that the first parent's arena has for this (see arena_for), and give it back as soon as those
// launches have begun. With PerMultiBlock, too, all blocks of such a kernel launch together.

#ifndef GRIDFUSE_AGGREGATE_CUH
#define GRIDFUSE_AGGREGATE_CUH

#include "arena.cuh"
#include "arguments.cuh"
#include "batch.cuh"
#include "direct_launches.cuh"
#include "granularity.cuh"
#include "grid.cuh"
#include "launchpad.cuh"
#include "memory_order.cuh"
#include "pool.cuh"
#include "state.cuh"
#include "threads.cuh"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gridfuse {
inline namespace v2 {

template <class First, class Second>
class InOrder;

namespace detail {

/// What the type of an aggregated child kernel says.
template <class Function>
struct Child {
    static_assert(sizeof(Function) == 0,
                  "an aggregated kernel is a void (gridfuse::Batch<Args>, ...)");
};
template <class T, bool Nested, bool Shaped, class... Uniform>
struct Child<void (*)(Batch<T, Nested, Shaped>, Uniform...)> {
    static constexpr bool kNested = Nested;
    static constexpr bool kShaped = Shaped;
    using Args = T;
    using ChildBatch = Batch<T, Nested, Shaped>;
    using Common = Pack<Uniform...>;
    static constexpr unsigned kUniform = sizeof...(Uniform);
};

}   // namespace detail

namespace detail {

/// What an Aggregator could not launch together, which is seldom: by a kernel, to keep it out of
/// the parent's code.
template <class Aggregator>
__global__ void launch_rest(typename Aggregator::ChildBatch batch, unsigned long long aside,
                            typename Aggregator::Common uniform) {
    Aggregator::launch_each(uniform, batch, aside);
}

/// What an Aggregator has to do with another one; see InOrder.
enum class Turn : unsigned char {
    kNone,     // nothing
    kFirst,    // its launches come first
    kSecond,   // its launches come after those of the first
    kLast,     // the same, and some of those went out by themselves, in whatever block
    kDirect,   // each launch goes out by itself, into the NULL stream
};

/// Keeps an object in local memory instead of registers.
template <class T>
__device__ __forceinline__ void keep_in_memory(const T& object) {
#ifdef __CUDA_ARCH__
    asm volatile("" : : "l"(&object) : "memory");
#else
    (void)object;
#endif
}

/// What stands before launches that are put aside together.
struct AsideHead {
    unsigned long long next;   // another one, or 0
    void* memory;              // as malloc gave it
    unsigned capacity;         // launches
    unsigned used;             // also counts those that came too late
};

/// Gives the memory of such launches back.
__device__ __forceinline__ void free_aside(unsigned long long aside) {
    while (aside != 0) {
        const AsideHead* const head = reinterpret_cast<AsideHead*>(aside);
        aside = head->next;
        free(head->memory);
    }
}

/// The same by a kernel, when they are done.
template <class Aggregator>
__global__ void free_rest(unsigned long long aside) {
    free_aside(aside);
}

}   // namespace detail

/// Collects the launches of the threads of a parent kernel and launches them together.
///
/// `Granularity` says whose: PerWarp, PerBlock, PerMultiBlock<N> or PerGrid. `Kernel` is the
/// aggregated child, `void (Batch<Args>, uniform...)`. Several aggregators of one kernel that have
/// the same `Kernel` need different numbers for `Site`.
///
/// The object is declared at the top of the parent kernel, where every thread of the block passes.
/// Launches may then come from anywhere: divergent branches, loops, before early returns. A thread
/// leaves when the object's destructor runs, at whichever `return`; the last one launches.
template <class Granularity, auto Kernel, int Site>
class Aggregator {
    using Child = detail::Child<decltype(Kernel)>;
    using Record = detail::Record<typename Child::Args>;
    using State = detail::State;
    static constexpr bool kWarp = std::is_same<Granularity, PerWarp>::value;
    static constexpr bool kGroup = !kWarp && !std::is_same<Granularity, PerBlock>::value;
    static constexpr bool kNested = Child::kNested;
    template <class, class>
    friend class InOrder;
    using Whose = Granularity;
    static constexpr bool kFromHost = std::is_same<Granularity, PerGridFromHost>::value;
    using Pool = std::conditional_t<kNested, detail::PoolView, detail::NoPool>;

public:
    /// The arguments that differ between the launches.
    using Args = typename Child::Args;
    /// Those that don't.
    using Common = typename Child::Common;
    /// The first parameter of `Kernel`.
    using ChildBatch = typename Child::ChildBatch;

    /// Takes part of `arena`, and the child's arguments that are the same for all launches that are
    /// collected together. A barrier for the block.
    // Where that part is, is computed when it's needed: a kernel that launches nothing doesn't pay
    // for it, nor do registers hold it in the meantime.
    template <class... Uniform>
    __device__ __forceinline__ explicit Aggregator(Arena& arena, Uniform... uniform)
        : arena_(arena), uniform_(uniform...) {
        static_assert(sizeof...(Uniform) == Child::kUniform,
                      "an Aggregator takes the arguments of its kernel that follow the batch");
        if (!arena.is_nested() && arena.memory_ == nullptr) detail::say_no_arena();
        ++arena.taken_;
        if constexpr (kGroup) {
            if (detail::linear_thread() == 0) {
                left_in_block() = 0;
                // All blocks of a nested kernel are one group, in a chunk of their own.
                if constexpr (kNested) {
                    if (arena_.is_nested())
                        group_of_block() = join(arena_.pool_, arena_.front_, arena_.taken_);
                }
            }
            __syncthreads();
        } else if constexpr (kWarp) {
            if (detail::lane_of(detail::linear_thread()) == 0) state() = State{};
            __syncwarp();
        } else {
            if (detail::linear_thread() == 0) state() = State{};
            __syncthreads();
        }
    }

    Aggregator(const Aggregator&) = delete;
    Aggregator& operator=(const Aggregator&) = delete;

    /// In place of `child<<<grid, block>>>(args...)`.
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, const Args& args) {
        launch(grid, block, 0, args);
    }

    /// In place of `child<<<grid, block, shared_bytes>>>(args...)`.
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, std::size_t shared_bytes,
                                           const Args& args) {
        if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
        const detail::Bytes<Args> bytes(args);
        if (!no_arena()) {
            wrote_ = true;
            if (detail::valid_grid(grid) && detail::valid_block(block) &&
                shared_bytes <= detail::kMaxPlainShared &&
                1ull * grid.x * grid.y * grid.z <= detail::kMaxCollected) {
                const unsigned packed = detail::pack_block(block);
                Room room;
                // What runs them is as large as the largest, in one dimension.
                const unsigned size = Child::kShaped ? block.x * block.y * block.z : packed;
                const unsigned long long at = reserve(grid.x * grid.y * grid.z, size,
                                                      static_cast<unsigned>(shared_bytes), room);
                if (at != kNoRoom) {
                    Record record;
                    record.shape.grid_x = grid.x;
                    record.shape.grid_yz = (grid.y - 1) | (grid.z - 1) << 16;
                    record.shape.block = packed;
                    record.shape.shared_bytes = static_cast<unsigned>(shared_bytes);
                    record.args = bytes;
                    const unsigned slot = detail::launches_in(at);
                    room.records[slot] = record;
                    reinterpret_cast<unsigned*>(room.records + room.capacity)[slot] =
                        static_cast<unsigned>(detail::blocks_in(at));
                    return;
                }
            }
        }
        const Aside aside = {grid, block, shared_bytes, bytes};
        detail::keep_in_memory(aside);
        if (!no_arena()) {
            if (put_aside(state(), aside)) return;
            detail::say_no_heap();
            if (turn_ == detail::Turn::kFirst) detail::store_relaxed(state().went_alone, 1u);
        }
        launch_alone(uniform_, pool(), aside.grid, aside.block, aside.shared_bytes, aside.args,
                     stream_of_direct());
    }

    /// The thread leaves; the last one launches.
    __device__ __forceinline__ ~Aggregator() {
        // else InOrder's destructor has done so
        if (turn_ == detail::Turn::kNone) leave(wrote_, [] {});
    }

    /// Launches what is in a batch and what was put aside, each with a grid of its own.
    static __device__ __forceinline__ void launch_each(const Common& uniform,
                                                       const ChildBatch& batch,
                                                       unsigned long long aside = 0) {
        Pool pool;
        if constexpr (kNested) pool = batch.own.pool_;
        for (unsigned slot = 0; slot < batch.count_; ++slot) {
            const Record& record = batch.records_[slot];
            launch_alone(uniform, pool, record.shape.grid(),
                         detail::unpack_block(record.shape.block), record.shape.shared_bytes,
                         record.args, cudaStreamFireAndForget);
        }
        if constexpr (kNested) {
            if (batch.chunk && batch.count_ != 0) pool.release(batch.own.front_);
        }
        unsigned put_aside = 0;
        for (unsigned long long next = aside; next != 0;) {
            AsideChunk& chunk = *reinterpret_cast<AsideChunk*>(next);
            next = chunk.next;
            const unsigned count = chunk.used < chunk.capacity ? chunk.used : chunk.capacity;
            put_aside += count;
            for (unsigned slot = 0; slot < count;)
                slot = launch_alike(uniform, pool, chunk, slot, count);
        }
        if (put_aside == 0) return;
        detail::say_aside(put_aside);
        // Batches are read while they run. One more launch may be one too many where kernels nest:
        // there, each grid has its own arguments.
        if constexpr (kNested) detail::free_aside(aside);
        else detail::free_rest<Aggregator><<<1, 1, 0, cudaStreamTailLaunch>>>(aside);
    }

private:
    // A launch that can't be in the batch, on the device's heap. It is not launched on the spot:
    // threads of a warp that launch while others of it wait for them at a point of convergence can
    // wait for ever (seen with CUDA 13.0, driver 580, on an H200), and here nothing is known of the
    // others. The last thread to leave is alone.
    struct Aside {
        dim3 grid, block;
        std::size_t shared_bytes;
        detail::Bytes<Args> args;
    };
    static_assert(sizeof(Record) <= sizeof(Aside), "a record takes the place of what is put aside");
    static_assert(alignof(Record) <= alignof(Aside), "a record takes the place of what is put aside");

    // Many of them, twice as many as in the one before: the heap's allocator takes some 200 us for
    // each (H200). After them there is room for a number each.
    struct alignas(Aside) AsideChunk : detail::AsideHead {
        __device__ __forceinline__ Aside* launches() { return reinterpret_cast<Aside*>(this + 1); }
        // For a batch: the blocks of those before.
        __device__ __forceinline__ unsigned* first() {
            return reinterpret_cast<unsigned*>(launches() + this->capacity);
        }
    };
    static constexpr unsigned kAsideLeast = 32, kAsideMost = 1024;

    // Takes so many places of a chunk, if there is one: from `first` on, the first `room` of them.
    static __device__ __forceinline__ bool take_places(unsigned long long chunk, unsigned count,
                                                       unsigned& first, unsigned& room) {
        if (chunk == 0) return false;
        detail::fence();   // acquire: what its maker wrote
        AsideChunk& taken = *reinterpret_cast<AsideChunk*>(chunk);
        first = atomicAdd(&taken.used, count);
        room = taken.capacity - first;
        return first < taken.capacity;
    }

    // A chunk in front of another one. Out of memory: 0.
    static __device__ __forceinline__ unsigned long long make_chunk(unsigned long long next) {
        unsigned capacity = kAsideLeast;
        if (next != 0) {
            capacity = 2 * reinterpret_cast<AsideChunk*>(next)->capacity;
            if (capacity > kAsideMost) capacity = kAsideMost;
        }
        // malloc promises 16
        constexpr std::size_t alignment = alignof(AsideChunk) > 16 ? alignof(AsideChunk) : 16;
        void* memory = nullptr;
        for (;; capacity = kAsideLeast) {
            memory = malloc(sizeof(AsideChunk) + alignment - 16 +
                            capacity * (sizeof(Aside) + sizeof(unsigned)));
            if (memory != nullptr) break;
            if (capacity == kAsideLeast) return 0;
        }
        const std::uintptr_t address =
            (reinterpret_cast<std::uintptr_t>(memory) + alignment - 1) / alignment * alignment;
        AsideChunk& made = *reinterpret_cast<AsideChunk*>(address);
        made.next = next;
        made.memory = memory;
        made.capacity = capacity;
        made.used = 0;
        detail::fence();   // release
        return address;
    }

    // Whether it could be in a batch.
    static __device__ __forceinline__ bool can_be_collected(dim3 grid, dim3 block,
                                                            std::size_t shared_bytes) {
        return detail::valid_grid(grid) && detail::valid_block(block) &&
               shared_bytes <= detail::kMaxPlainShared &&
               1ull * grid.x * grid.y * grid.z <= detail::kMaxCollected;
    }

    // Launches what was put aside from `slot` on with the same block, as a batch. Returns the slot
    // after that.
    static __device__ __forceinline__ unsigned launch_alike(const Common& uniform, Pool pool,
                                                            AsideChunk& chunk, unsigned slot,
                                                            unsigned count) {
        Aside* const launches = chunk.launches();
        const Aside own = launches[slot];
        unsigned end = slot + 1;
        if (!kNested && can_be_collected(own.grid, own.block, own.shared_bytes)) {
            Record* const records = reinterpret_cast<Record*>(launches);
            const unsigned packed = detail::pack_block(own.block);
            unsigned long long blocks = 0;
            // Each record lies where launches were that have been read.
            for (end = slot; end < count; ++end) {
                const Aside next = launches[end];
                if (!can_be_collected(next.grid, next.block, next.shared_bytes) ||
                    detail::pack_block(next.block) != packed ||
                    next.shared_bytes != own.shared_bytes)
                    break;
                Record record;
                record.shape.grid_x = next.grid.x;
                record.shape.grid_yz = (next.grid.y - 1) | (next.grid.z - 1) << 16;
                record.shape.block = packed;
                record.shape.shared_bytes = static_cast<unsigned>(next.shared_bytes);
                record.args = next.args;
                records[end] = record;
                chunk.first()[end] = static_cast<unsigned>(blocks);
                blocks += 1ull * next.grid.x * next.grid.y * next.grid.z;
            }
            if (end - slot > 1) {
                atomicAdd(&detail::direct_launches, 1ull * (end - slot));
                detail::fence();   // the batch reads what is written here
                launch_kernel(uniform, dim3(static_cast<unsigned>(blocks)), own.block,
                              own.shared_bytes,
                              ChildBatch(records + slot, chunk.first() + slot, end - slot, pool,
                                         nullptr, false),
                              cudaStreamFireAndForget);
                return end;
            }
        }
        launch_alone(uniform, pool, own.grid, own.block, own.shared_bytes, own.args,
                     cudaStreamFireAndForget);
        return slot + 1;
    }

    // What happens seldom is inlined, too, or done by another kernel: the functions that a kernel
    // calls get registers above those that the kernel itself uses, as long as there are some, and
    // the kernel then takes as many as they do, in every thread. So are registers that hold a value
    // over a call of malloc: those of a launch would be 8 to 20.

    // Out of memory: false. Threads of a warp that come together take places together, and the first
    // of them makes the chunk: thousands of them at once would fill the heap.
    static __device__ __forceinline__ bool put_aside(State& state, const Aside& aside) {
        for (;;) {
            const unsigned together = __activemask();
            const unsigned below = together & detail::lanes_below();
            unsigned long long chunk = 0;
            unsigned slot = 0, room = 0;
            if (below == 0) {
                chunk = detail::load_relaxed(state.aside);
                while (!take_places(chunk, detail::count_of(together), slot, room)) {
                    const unsigned long long made = make_chunk(chunk);
                    if (made == 0) {
                        chunk = 0;
                        break;
                    }
                    const unsigned long long last = atomicCAS(&state.aside, chunk, made);
                    if (last != chunk) free(reinterpret_cast<AsideChunk*>(made)->memory);
                    chunk = last == chunk ? made : last;
                }
            }
            const int first = __ffs(static_cast<int>(together)) - 1;
            chunk = __shfl_sync(together, chunk, first);
            slot = __shfl_sync(together, slot, first) + detail::count_of(below);
            room = __shfl_sync(together, room, first);
            if (chunk == 0) return false;
            if (detail::count_of(below) < room) {
                reinterpret_cast<AsideChunk*>(chunk)->launches()[slot] = aside;
                return true;
            }
        }
    }

    // Of the calling thread's warp, block, or group of blocks.
    __device__ __forceinline__ State& state() const {
        if constexpr (kGroup) {
            if (of_pool()) return group_of_block()->state;
            return arena_.state<Granularity>(arena_.taken_);
        } else {
            __shared__ State instances[kWarp ? detail::kMaxBlockThreads / 32 : 1];
            return instances[kWarp ? detail::linear_thread() / 32 : 0];
        }
    }

    // That a thread had launched, above the number of threads that have left. Added by at most
    // 1,024 threads.
    static constexpr unsigned kSomeWrote = 1u << 16;
    // For a group of blocks: how many threads of the block have left.
    static __device__ __forceinline__ unsigned& left_in_block() {
        __shared__ unsigned left;
        return left;
    }
    static __device__ __forceinline__ detail::Front*& group_of_block() {
        __shared__ detail::Front* group;
        return group;
    }

    // The thread leaves, which may have launched something; the last one launches, after it has called
    // `before_launch`.
    template <class Before>
    __device__ __forceinline__ void leave(bool has_written, const Before& before_launch) const {
        if (no_arena()) return;
        // Threads of a warp that leave together count together. Release: what any of them wrote,
        // its records and everything before, comes before the count for whoever acquires it. That
        // is a thread of the same block, so the block's scope is enough; the one that launches
        // fences for the device.
        const unsigned together = __activemask();
        const bool wrote = __any_sync(together, has_written);
        __syncwarp(together);
        if ((together & detail::lanes_below()) != 0) return;
        if (wrote) __threadfence_block();
        const unsigned threads = detail::count_of(together);
        if constexpr (kGroup) {
            const unsigned before = atomicAdd(&left_in_block(), threads | (wrote ? kSomeWrote : 0));
            if ((before & (kSomeWrote - 1)) + threads == detail::block_threads())
                leave_group(wrote || before >= kSomeWrote, before_launch);
        } else {
            const unsigned all = kWarp ? detail::warp_threads() : detail::block_threads();
            unsigned before = 0;
            // warps mostly leave whole
            if (!kWarp || threads != all)
                before = atomicAdd(&state().left, threads | (wrote ? kSomeWrote : 0));
            if ((before & (kSomeWrote - 1)) + threads == all && (wrote || before >= kSomeWrote)) {
                before_launch();
                launch_all(state());
            }
        }
    }

    // The last thread of the block leaves; that of the last block launches, and leaves the state as
    // it was at first.
    template <class Before>
    __device__ __forceinline__ void leave_group(bool wrote, const Before& before_launch) const {
        constexpr unsigned count = detail::Blocks<Granularity>::kCount;
        const unsigned long long blocks = 1ull * gridDim.x * gridDim.y * gridDim.z;
        const bool nested = of_pool();
        const unsigned long long first = nested ? 0 : Arena::group<Granularity>() * count;
        const unsigned members =
            static_cast<unsigned>(!nested && count < blocks - first ? count : blocks - first);
        if (wrote) detail::fence();
        State& s = state();
        const unsigned long long before = atomicAdd(&s.blocks_left, wrote ? 1ull << 32 | 1 : 1ull);
        if (static_cast<unsigned>(before) + 1 != members) return;
        // nothing to launch, and all but this is as it was
        if (!nested && !wrote && before >> 32 == 0) {
            detail::store_relaxed(s.blocks_left, 0ull);
            return;
        }
        before_launch();
        launch_all(s);
    }

    // The group of all blocks of a nested kernel: the first block to come makes it. Null, for all
    // of them, if there is no memory.
    static __device__ __noinline__ detail::Front* join(Pool pool, detail::Front* parent,
                                                       unsigned index) {
        if (parent == nullptr || index >= detail::kNestedAggregators) return nullptr;
        unsigned long long& group = parent->groups[index];
        unsigned long long there = detail::load_relaxed(group);
        if (there == 0) {
            const unsigned long long threads =
                1ull * gridDim.x * gridDim.y * gridDim.z * detail::block_threads();
            const unsigned long long wanted =
                sizeof(detail::Front) + threads * (sizeof(Record) + sizeof(unsigned));
            detail::Front* const own = pool.allocate_at_most(detail::PoolView::class_of(wanted));
            if (own != nullptr) own->state.reset();
            detail::fence();
            const unsigned long long made =
                own == nullptr ? detail::kNoGroup : reinterpret_cast<unsigned long long>(own);
            there = atomicCAS(&group, 0ull, made);
            if (there == 0) {
                there = made;
            } else if (own != nullptr) {
                pool.release(own);
            }
        }
        detail::fence();
        return there == detail::kNoGroup ? nullptr : reinterpret_cast<detail::Front*>(there);
    }

    // Where the thread's group writes down its launches.
    struct Room {
        Record* records;
        // in front of the records, where the children may launch in their turn
        detail::Front* front;
        unsigned capacity;

        Room() = default;
        __device__ __forceinline__ Room(unsigned char* memory, unsigned long long bytes,
                                        bool has_front) {
            const unsigned long long used = has_front ? sizeof(detail::Front) : 0;
            const unsigned long long fit =
                bytes < used ? 0 : (bytes - used) / (sizeof(Record) + sizeof(unsigned));
            records = reinterpret_cast<Record*>(memory + used);
            front = has_front ? reinterpret_cast<detail::Front*>(memory) : nullptr;
            capacity = static_cast<unsigned>(fit < detail::kMaxRecords ? fit : detail::kMaxRecords);
        }
    };
    // `chunk`: of a group that takes one.
    __device__ __forceinline__ Room room(unsigned long long chunk) const {
        if constexpr (kNested) {
            if (takes_chunk())
                return Room(reinterpret_cast<unsigned char*>(chunk), detail::kUnit << size_class(),
                            true);
            if (of_pool()) {
                detail::Front* const front = group_of_block();
                return Room(reinterpret_cast<unsigned char*>(front),
                            detail::kUnit << front->size_class, true);
            }
        }
        const Arena::Slice slice = arena_.slice<Granularity>(arena_.taken_);
        return Room(slice.memory, slice.bytes, kNested && arena_.pool_);
    }

    // Where the last thread to leave launches: what keeps its order goes into the NULL stream of that
    // thread's block; or it comes after the parent, and all that the parent has launched.
    __device__ __forceinline__ cudaStream_t stream() const {
        if (turn_ == detail::Turn::kLast) return cudaStreamTailLaunch;
        return turn_ == detail::Turn::kNone ? cudaStreamFireAndForget : cudaStream_t{};
    }

    // Where a thread launches what can't even be put aside. What has to come after launches that are
    // collected comes after the parent.
    __device__ __forceinline__ cudaStream_t stream_of_direct() const {
        return turn_ == detail::Turn::kSecond ? cudaStreamTailLaunch : stream();
    }

    // There is no memory: each launch goes out by itself.
    __device__ __forceinline__ bool no_arena() const {
        if (turn_ == detail::Turn::kDirect) return true;
        if constexpr (kNested) {
            if (arena_.is_nested()) return kGroup && group_of_block() == nullptr;
        }
        return kGroup ? !arena_.has<Granularity>(arena_.taken_) : arena_.memory_ == nullptr;
    }
    // Of all blocks of a nested kernel, whose memory is a chunk.
    __device__ __forceinline__ bool of_pool() const {
        return kNested && kGroup && arena_.is_nested();
    }
    // Of a warp or a block of a nested kernel: its memory is a chunk that is taken when the first
    // launch comes.
    __device__ __forceinline__ bool takes_chunk() const {
        return kNested && !kGroup && arena_.is_nested();
    }
    // Of that chunk: it has room for one launch of each thread.
    __device__ __forceinline__ static unsigned size_class() {
        const unsigned threads = kWarp ? detail::warp_threads() : detail::block_threads();
        return detail::PoolView::class_of(sizeof(detail::Front) +
                                          1ull * threads * (sizeof(Record) + sizeof(unsigned)));
    }
    __device__ __forceinline__ Pool pool() const {
        if constexpr (kNested) {
            return arena_.pool_;
        } else {
            return {};
        }
    }

    // The chunk of the group, which the first thread to launch takes from the pool; 0 when there is
    // none left.
    static __device__ __noinline__ unsigned long long chunk_of_group(State& state, Pool pool,
                                                                     unsigned size_class) {
        unsigned long long there = detail::load_relaxed(state.chunk);
        if (there == 0) {
            detail::Front* const own = pool.allocate(size_class);
            if (own == nullptr) return 0;
            __threadfence_block();
            there = atomicCAS(&state.chunk, 0ull, reinterpret_cast<unsigned long long>(own));
            if (there == 0) return reinterpret_cast<unsigned long long>(own);
            pool.release(own);
        }
        __threadfence_block();
        return there;
    }

    static constexpr unsigned long long kNoRoom = ~0ull;

    // Moves the cursor by some launches and their blocks and returns where it was, or kNoRoom.
    __device__ __forceinline__ unsigned long long advance(unsigned launches, unsigned blocks,
                                                          unsigned capacity) {
        const unsigned long long step =
            static_cast<unsigned long long>(launches) << detail::kBlockBits | blocks;
        const unsigned long long before = atomicAdd(&state().cursor, step);
        if (fits(before + step, capacity)) return before;
        if (fits(before, capacity))
            detail::store_relaxed(state().full_at, before);
        else
            atomicAdd(&state().cursor, 0 - step);
        return kNoRoom;
    }

    static __device__ __forceinline__ bool fits(unsigned long long cursor, unsigned capacity) {
        return detail::launches_in(cursor) <= capacity &&
               detail::blocks_in(cursor) <= detail::kMaxGridX;
    }

    __device__ __forceinline__ void widen(unsigned block, unsigned shared_bytes) {
        State& s = state();
        atomicMax(&s.block_least, ~block);
        atomicMax(&s.block_most, block);
        if (shared_bytes != 0) atomicMax(&s.shared_most, shared_bytes);
    }

    // Slot and number of blocks before it, as in the cursor, or kNoRoom; `room_of_slot`: where the
    // slot is. The threads of a warp that happen to be here together move the cursor once.
    __device__ __forceinline__ unsigned long long reserve(unsigned blocks, unsigned block,
                                                          unsigned shared_bytes,
                                                          Room& room_of_slot) {
        const unsigned together = __activemask();
        const unsigned below = together & detail::lanes_below();
        int same = 0, same_blocks = 0, same_shared = 0;
        __match_all_sync(together, block, &same);
        __match_all_sync(together, shared_bytes, &same_shared);
        __match_all_sync(together, blocks, &same_blocks);
        const unsigned rank = detail::count_of(below);
        unsigned before = rank * blocks, sum = detail::count_of(together) * blocks;
        if (!same_blocks) {
            // A vote for each bit: most grids are small, and any set of threads may be together
            // here.
            before = sum = 0;
            for (unsigned bit = 0; __any_sync(together, blocks >> bit != 0); ++bit) {
                const unsigned holders = __ballot_sync(together, blocks >> bit & 1);
                sum += detail::count_of(holders) << bit;
                before += detail::count_of(holders & below) << bit;
            }
        }
        unsigned long long at = 0;
        [[maybe_unused]] unsigned long long chunk = 0;
        if (rank == 0) {
            if constexpr (kNested) {
                if (takes_chunk()) chunk = chunk_of_group(state(), pool(), size_class());
            }
            at = takes_chunk() && chunk == 0
                     ? kNoRoom
                     : advance(detail::count_of(together), sum, room(chunk).capacity);
            if (at != kNoRoom && same && same_shared) widen(block, shared_bytes);
        }
        at = __shfl_sync(together, at, detail::first_of(together));
        if (at == kNoRoom) return at;
        if constexpr (kNested) {
            if (takes_chunk()) {
                chunk = __shfl_sync(together, chunk, detail::first_of(together));
                // What others have done with the chunk comes before: the first thread knows of it.
                __syncwarp(together);
            }
        }
        room_of_slot = room(chunk);
        if (!same || !same_shared) widen(block, shared_bytes);
        return at + (static_cast<unsigned long long>(rank) << detail::kBlockBits | before);
    }

    static __device__ __forceinline__ void launch_kernel(const Common& uniform, dim3 grid,
                                                         dim3 block, std::size_t shared_bytes,
                                                         const ChildBatch& batch,
                                                         cudaStream_t stream) {
        uniform.apply([&](const auto&... values) {
            Kernel<<<grid, block, shared_bytes, stream>>>(batch, values...);
        });
    }

    static __device__ __forceinline__ void launch_alone(const Common& uniform, Pool pool, dim3 grid,
                                                        dim3 block, std::size_t shared_bytes,
                                                        const detail::Bytes<Args>& args,
                                                        cudaStream_t stream) {
        atomicAdd(&detail::direct_launches, 1ull);
        detail::Front* front = nullptr;
        if constexpr (kNested) {
            if (pool) front = pool.allocate(0);
            if (front != nullptr) front->begin();
        }
        launch_kernel(uniform, grid, block, shared_bytes, ChildBatch(args, pool, front), stream);
    }

    __device__ __forceinline__ void launch_all(State& s) const {
        detail::fence();   // acquire, see the destructor; and release, to the children
        unsigned long long cursor = detail::load_relaxed(s.cursor);
        const unsigned long long aside = detail::load_relaxed(s.aside);
        const Room room = this->room(takes_chunk() ? detail::load_relaxed(s.chunk) : 0);
        if (!fits(cursor, room.capacity)) cursor = detail::load_relaxed(s.full_at);
        const unsigned least = ~detail::load_relaxed(s.block_least),
                       most = detail::load_relaxed(s.block_most),
                       shared_bytes = detail::load_relaxed(s.shared_most);
        const unsigned count = detail::launches_in(cursor),
                       blocks = static_cast<unsigned>(detail::blocks_in(cursor));
        const bool chunk = room.front != nullptr && (takes_chunk() || of_pool());
        if (kGroup && !of_pool()) s.reset();   // nobody needs it any more
        if constexpr (kFromHost && kNested) {
            // for what is launched from here
            if (!of_pool() && arena_.pool_) arena_.pool_.use(arena_.launchpad_);
        }
        bool together = count != 0;
        if (together) {
            if constexpr (kNested) {
                if (room.front != nullptr) room.front->begin();
            }
        } else if constexpr (kNested) {
            if (chunk) pool().release(room.front);
        }
        ChildBatch batch(room.records,
                         reinterpret_cast<const unsigned*>(room.records + room.capacity), count,
                         pool(), room.front, chunk);
        // else the host launches it
        if (together && !order(batch, blocks, least, most, shared_bytes)) {
            const bool plain = least == most && shared_bytes == 0;
            // else blocks differ in more than one dimension
            together = least == most || detail::packed_is_linear(most);
            if (together) {
                // an error of the program's, which nothing can read any more
                if (!plain) (void)cudaGetLastError();
                launch_kernel(uniform_, dim3(blocks), detail::unpack_block(most), shared_bytes,
                              batch, stream());
                // The largest block and the most shared memory may be too much together though none
                // of them was by itself.
                if (!plain) together = cudaGetLastError() == cudaSuccess;
            }
        } else {
            together = true;
        }
        if (!together || aside != 0) {
            if (together) batch.count_ = 0;
            detail::launch_rest<Aggregator>
                <<<1, 1, 0, stream()>>>(batch, aside, uniform_);
        }
    }

    // Leaves a batch to the host; false if that can't launch it.
    __device__ __forceinline__ bool order(const ChildBatch& batch, unsigned blocks, unsigned least,
                                          unsigned most, unsigned shared_bytes) const {
        if constexpr (kFromHost) {
            detail::Launchpad* launchpad = arena_.launchpad_;
            if constexpr (kNested) {
                if (of_pool()) launchpad = arena_.pool_.launchpad();
            }
            const unsigned block = least == most || detail::packed_is_linear(most) ? most : 0;
            if (launchpad == nullptr) return false;
            const bool left = leave_order(launchpad, uniform_, batch, blocks, block, shared_bytes);
            if (!left) detail::say_not_left();
            return left;
        } else {
            return false;
        }
    }
    static __device__ __forceinline__ bool leave_order(detail::Launchpad* launchpad,
                                                       const Common& uniform,
                                                       const ChildBatch& batch, unsigned blocks,
                                                       unsigned block, unsigned shared_bytes) {
        using Order = detail::Order<ChildBatch, Common>;
        constexpr unsigned bytes = sizeof(Order) <= detail::Launchpad::kBytes
                                       ? sizeof(Order)
                                       : detail::Launchpad::kBytes + 1;
        const unsigned long long own = reinterpret_cast<unsigned long long>(Kernel);
        unsigned kernel = 0;
        for (; kernel < detail::Launchpad::kKernels; ++kernel) {
            const unsigned long long listed = detail::load_relaxed(launchpad->kernels[kernel]);
            if (listed == own) break;
            if (listed == 0) return false;
        }
        if (kernel == detail::Launchpad::kKernels) return false;
        unsigned used = detail::load_relaxed(launchpad->used);
        for (;;) {
            if (detail::Launchpad::kBytes - used < bytes) return false;
            const unsigned seen = atomicCAS(&launchpad->used, used, used + bytes);
            if (seen == used) break;
            used = seen;
        }
        Order* const order = reinterpret_cast<Order*>(
            launchpad->orders[detail::load_relaxed(launchpad->half)] + used);
        order->head = {bytes, kernel, blocks, block, shared_bytes};
        order->batch = detail::Bytes<ChildBatch>(batch);
        order->uniform = detail::Bytes<Common>(uniform);
        return true;
    }

    Arena arena_;           // as it was, so that `taken_` is the number of this Aggregator
    bool wrote_ = false;
    detail::Turn turn_ = detail::Turn::kNone;
    Common uniform_;
};

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_AGGREGATE_CUH
