// SPDX-License-Identifier: MIT OR Apache-2.0
//
// gridfuse.cuh: the runtime of code that gridfuse has rewritten.
//
// Header only, C++17, CUDA 12 or newer, compute capability 7.0 or newer, relocatable device code
// (-rdc=true), as for every program that launches kernels from kernels. It may be included by any
// number of translation units.
//
// Aggregation. A kernel whose threads each launch a small grid pays for every launch. With an
// Aggregator, the threads of a block only write down what they want to launch; the last of them to
// leave the kernel launches one grid that holds all the blocks asked for:
//
//     struct expand_args { int begin; int count; };   // the arguments that differ between launches
//
//     __global__ void expand_aggregated(gridfuse::Batch<expand_args> batch, const int* col, int* dist) {
//         batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const expand_args& args) {
//             expand_body(blockIdx, gridDim, blockDim, col, dist, args.begin, args.count);
//         });
//     }
//
//     __global__ void visit(const int* row, const int* col, int* dist, int n, gridfuse::Arena arena) {
//         gridfuse::Aggregator<gridfuse::PerBlock, expand_aggregated> expands(arena, col, dist);
//         int v = blockIdx.x * blockDim.x + threadIdx.x;
//         if (v >= n) return;
//         int begin = row[v], count = row[v + 1] - begin;
//         if (count > 0) expands.launch((count + 127) / 128, 128, {begin, count});
//     }
//
//     visit<<<blocks, threads, 0, stream>>>(row, col, dist, n, gridfuse::arena_for(blocks, threads, stream));
//
// What holds for an aggregated launch:
//   * The child sees everything that the launching thread wrote before launch(), as with <<<>>>. It
//     may start later than it would have: when the last thread of the granularity (of the block, with
//     PerBlock) has left.
//   * The children of one batch are in no order among themselves, as in cudaStreamFireAndForget.
//   * No launch is lost. One that does not fit (the arena is full, more blocks than a grid can have) or
//     that is large by itself gets a grid of its own. So does one that CUDA might refuse (a block of more
//     than 1024 threads, say), so that it can fail only by itself.
//   * A grid of no blocks, which CUDA refuses to launch, is ignored.
//   * gridfuse::direct_launches() tells the host how many launches got a grid of their own, as the arena was full or missing, say.
//     In debug builds (nvcc -G, or -DGRIDFUSE_DEBUG) launches that don't fit are printed as well, group by group.
//
// Nested launches. A kernel that an Aggregator launches may collect launches in its turn, and be its own child: its
// Aggregators take `batch.arena()`. They write down their launches in memory that the first parent's arena has for this
// (see arena_for), and give it back as soon as those launches have begun. With PerMultiBlock, too, all blocks of such a
// kernel launch together.
//
// From the host. With PerGridFromHost, and launchpad_for in place of arena_for, the host launches what a grid has collected:
//
//     visit<<<blocks, threads, 0, stream>>>(row, col, dist, n, gridfuse::launchpad_for<expand_aggregated>(blocks, threads, stream));
//
// At the end of this statement it waits until the parent is done, launches the children into the same stream, and waits again
// as long as these collect launches in their turn. While a stream is captured into a graph there is no host to do so: the
// children are launched by the device then, as with PerGrid, and so is whatever doesn't fit.
//
// Behind the parent. With PerGridInStream nothing is launched by the device, and the host waits for nothing: it launches a grid that
// runs what the parent is going to collect right behind the parent.
//
//     __global__ void expand_aggregated(gridfuse::StreamBatch<expand_args, 128> batch, const int* col, int* dist);
//
//     visit<<<blocks, threads, 0, stream>>>(row, col, dist, n, gridfuse::followed_by<expand_aggregated>(blocks, threads, stream, col, dist));
//
// The size of the child's blocks and the arguments that all launches share are known before, and so is how many launches a thread has
// at most; where it isn't (gridfuse::kNotKnown), launch() is also told how a thread runs by itself what finds no room. The children
// launch nothing through Aggregators of their own. Of a child whose threads have nothing to do with each other, and nothing to do at
// all from a number on that is among its arguments, that grid runs just the warps that have:
//
//     struct expand_args { int begin; int count; __device__ int threads() const { return count; } };
//
//     __global__ void expand_aggregated(gridfuse::StreamBatch<expand_args, 128> batch, const int* col, int* dist) {
//         batch.for_each_warp([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, const expand_args& args) {
//             expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, dist, args.begin, args.count);
//         });
//     }
//
// Thresholding. for_each_thread runs a small child grid in the launching thread instead;
// below_threshold says which grids are small, is_launchable which are launched at all. When the threads of a block wait for each other,
// for_each_block runs the blocks, and for_each_thread their threads between two barriers.
//
// Coarsening. coarsened and coarsened_to make the grid of a child smaller; its blocks loop over the
// blocks of the original grid.
//
// Recursion. A kernel that launches itself is run by one grid that stays: Recursion writes down in a Worklist what is launched,
// and the grid's blocks take it from there. launch_recursion starts it.
//
// Chains. A kernel of one block that launches itself again becomes one grid, whose blocks take the launches one
// after the other: Chain, and RunningChain where only a running value is passed on.
//
// Loops. A kernel that ends by launching itself into cudaStreamTailLaunch is an iteration: the launches become one grid that stays.
// Loop runs the blocks of one iteration after the other, launch_loop starts it. BlockLoop does so within one block.
//
// Atomic operations together. together::atomicAdd and the like are CUDA's without the old value: threads of a warp that are there at the
// same time, with the same place, combine their values and do one of them.
//
// Allocating together. malloc_together gives threads that allocate at the same time parts of one
// allocation; free_together frees that when the last part is given back.

#ifndef GRIDFUSE_CUH
#define GRIDFUSE_CUH

#include <cuda_runtime.h>

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#if defined(__CUDACC_DEBUG__) && !defined(GRIDFUSE_DEBUG)
#define GRIDFUSE_DEBUG
#endif
#ifdef GRIDFUSE_DEBUG
#include <cstdio>
#endif
#include <limits>
#include <memory>
#include <mutex>
#include <tuple>
#include <type_traits>

#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ < 12
#error "gridfuse.cuh needs CUDA 12 or newer"
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error "gridfuse.cuh needs compute capability 7.0 or newer"
#endif

namespace gridfuse {

template <class Args, bool Nested = false>
class Batch;

/// Granularity: the launches of one warp of the parent kernel become one launch.
struct PerWarp {};

/// Granularity: the launches of one block of the parent kernel become one launch.
struct PerBlock {};

/// Granularity: the launches of `Blocks` neighbouring blocks of the parent kernel become one launch.
template <unsigned Blocks>
struct PerMultiBlock {
    static_assert(Blocks > 0, "a group has at least one block");
};

/// Granularity: all launches of a grid of the parent kernel become one launch.
struct PerGrid {};

/// Granularity: all launches of a grid of the parent kernel become one launch, which the host does when the parent is done. The
/// parent's arena is made by launchpad_for; with another one, this is the same as PerGrid.
struct PerGridFromHost {};

/// Granularity: all launches of a grid of the parent kernel are run by one grid, which the host launches behind the parent without
/// knowing what it will have to run. Their kernel takes a StreamBatch; the parent a StreamArena, which is made by followed_by.
struct PerGridInStream {};

namespace detail {

/// How many blocks launch together. For a warp the number doesn't matter.
template <class Granularity>
struct Blocks;
template <> struct Blocks<PerWarp> { static constexpr unsigned kCount = 1; };
template <> struct Blocks<PerBlock> { static constexpr unsigned kCount = 1; };
template <unsigned Count> struct Blocks<PerMultiBlock<Count>> { static constexpr unsigned kCount = Count; };
// A grid has seldom more blocks than this.
template <> struct Blocks<PerGrid> { static constexpr unsigned kCount = 1u << 31; };
template <> struct Blocks<PerGridFromHost> { static constexpr unsigned kCount = 1u << 31; };

constexpr unsigned kMaxGridX = INT_MAX;           // also the most blocks that a batch can have
constexpr unsigned kMaxGridYZ = 65535;
constexpr unsigned kMaxBlockThreads = 1024;
constexpr unsigned kMaxBlockZ = 64;
constexpr unsigned kMaxPlainShared = 48 * 1024;   // more dynamic shared memory needs an opt-in
constexpr unsigned kMaxCollected = 1u << 15;      // a grid of more blocks is worth a launch of its own
constexpr unsigned kSliceAlignment = 128;         // slices of different blocks share no cache line

/// Whether CUDA accepts a grid of this many blocks (none is refused too).
__host__ __device__ constexpr bool valid_grid(dim3 grid) {
    return grid.x - 1u < kMaxGridX && grid.y - 1u < kMaxGridYZ && grid.z - 1u < kMaxGridYZ;
}

/// Whether CUDA accepts a block of this shape.
__host__ __device__ constexpr bool valid_block(dim3 block) {
    return block.x - 1u < kMaxBlockThreads && block.y - 1u < kMaxBlockThreads && block.z - 1u < kMaxBlockZ &&
           block.x * block.y * block.z <= kMaxBlockThreads;
}

// A valid block shape in 29 bits. Every one-dimensional shape is smaller than every other one, so
// that the greatest of several shapes tells whether all of them are one-dimensional.
__host__ __device__ constexpr unsigned pack_block(dim3 block) {
    return block.x | (block.y - 1) << 11 | (block.z - 1) << 22;
}
__host__ __device__ constexpr bool packed_is_linear(unsigned packed) { return packed >> 11 == 0; }
__host__ __device__ __forceinline__ dim3 unpack_block(unsigned packed) {
    return dim3(packed & 2047, (packed >> 11 & 2047) + 1, (packed >> 22) + 1);
}

/// The shape of one launch. 16 bytes.
struct Shape {
    unsigned grid_x;
    unsigned grid_yz;        // y - 1 in the lower half, z - 1 in the upper
    unsigned block;          // pack_block
    unsigned shared_bytes;   // dynamic shared memory

    __device__ __forceinline__ dim3 grid() const { return dim3(grid_x, (grid_yz & 65535) + 1, (grid_yz >> 16) + 1); }
};

/// The widest unsigned integer that divides an alignment.
template <std::size_t Alignment>
struct WordOf { using Type = unsigned long long; };
template <> struct WordOf<1> { using Type = unsigned char; };
template <> struct WordOf<2> { using Type = unsigned short; };
template <> struct WordOf<4> { using Type = unsigned; };

/// The bytes of a T, which need not be default constructible; copied word by word.
template <class T>
struct alignas(T) Bytes {
    using Word = typename WordOf<alignof(T)>::Type;
    Word words[sizeof(T) / sizeof(Word)];

    Bytes() = default;
    __host__ __device__ __forceinline__ explicit Bytes(const T& value) { memcpy(words, &value, sizeof(T)); }
    __device__ __forceinline__ const T& value() const { return *reinterpret_cast<const T*>(words); }
};

/// One launch as written down in the arena.
template <class Args>
struct Record {
    Shape shape;
    Bytes<Args> args;
};

template <class T>
__device__ __forceinline__ T strong_read(const T& place) {
    return *const_cast<const volatile T*>(&place);
}
template <class T>
__device__ __forceinline__ void strong_write(T& place, T value) {
    *const_cast<volatile T*>(&place) = value;
}

/// Orders acquire and release with the whole device, which costs less than __threadfence(): that one is sequentially consistent.
__device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

/// What the launches of a group of threads have come to. All zero at first. Read and written by atomic
/// and volatile accesses alone while several threads can.
struct State {
    // Launches written down (upper 28 bits) and the sum of their blocks (lower 36). Threads add what they
    // want. The first that is too much stays in, so that no later one fits; those take theirs back (at most
    // 2^14 warps are at it at a time, with 2^20 blocks each).
    unsigned long long cursor;
    unsigned long long full_at;  // the cursor before the first that was too much
    unsigned block_least;        // the least pack_block, inverted: so that it is a greatest, too
    unsigned block_most;         // the greatest pack_block
    unsigned shared_most;        // most dynamic shared memory
    unsigned left;               // threads of a warp or a block that have left, and whether any of them had launched
    unsigned long long blocks_left;   // of a larger group: its blocks that have left (lower half), and those of them in which a thread had launched
    unsigned long long aside;    // the last launch put aside, or 0
    unsigned long long chunk;    // memory taken from the pool (a Front), or 0

    /// As it was at first, for the next launch. Strong, as nothing orders the last accesses of other blocks before these.
    __device__ __forceinline__ void reset() {
        strong_write(cursor, 0ull);
        strong_write(block_least, 0u);
        strong_write(block_most, 0u);
        strong_write(shared_most, 0u);
        strong_write(blocks_left, 0ull);
        strong_write(aside, 0ull);
    }
};
constexpr unsigned kBlockBits = 36;
constexpr unsigned kStateStride = 64;   // in global memory: no two in a sector
constexpr unsigned long long kMaxRecords = 1u << 27;

__host__ __device__ constexpr unsigned launches_in(unsigned long long cursor) { return static_cast<unsigned>(cursor >> kBlockBits); }
__host__ __device__ constexpr unsigned long long blocks_in(unsigned long long cursor) { return cursor & ((1ull << kBlockBits) - 1); }

// Launches that got a grid of their own, or were run by the thread that would have launched. One for all translation units of a program that are linked on the device.
#ifdef __CUDACC_RDC__
inline __device__ unsigned long long direct_launches = 0;
#else
static __device__ unsigned long long direct_launches = 0;
#endif

// With GRIDFUSE_DEBUG defined, what makes a program slow and not wrong is said. Nothing is printed otherwise.
#ifdef GRIDFUSE_DEBUG
__device__ __forceinline__ void say_aside(unsigned launches) {
    printf("gridfuse: %u launches of a group didn't fit into the arena and got a grid each (block %u of the parent): more bytes_per_thread "
           "or nested_bytes in arena_for may help\n", launches, blockIdx.x);
}
__device__ __forceinline__ void say_full() {
    printf("gridfuse: launches that were to run behind the parent find no room, and run in their threads (block %u of the parent): a number "
           "in place of kNotKnown in followed_by says how many launches of each thread there is room for\n", blockIdx.x);
}
__device__ __forceinline__ void say_no_heap() {
    printf("gridfuse: a launch found neither room in the arena nor on the device's heap (cudaLimitMallocHeapSize) and went out at once\n");
}
__device__ __forceinline__ void say_not_left() {
    printf("gridfuse: the device launched what was to be left to the host: the kernel isn't listed in launchpad_for, or the launchpad is full\n");
}
__device__ __forceinline__ void say_no_arena() {
    if ((blockIdx.x | blockIdx.y | blockIdx.z | threadIdx.x | threadIdx.y | threadIdx.z) == 0)
        printf("gridfuse: a kernel has an empty arena: each of its launches goes out by itself\n");
}
#else
__device__ __forceinline__ void say_aside(unsigned) {}
__device__ __forceinline__ void say_full() {}
__device__ __forceinline__ void say_no_heap() {}
__device__ __forceinline__ void say_not_left() {}
__device__ __forceinline__ void say_no_arena() {}
#endif

/// Where grids leave orders for the host, to launch what they have collected. In pinned memory, so that both reach it: the
/// device while the parent or its children run, the host before and after.
struct Launchpad {
    static constexpr unsigned kKernels = 32;
    static constexpr unsigned kBytes = 64 * 1024;

    unsigned long long kernels[kKernels];   // that the host can launch: their addresses in device code, then 0
    unsigned used;                          // bytes of orders
    unsigned half;                          // of `orders`: the host reads one while its launches write to the other
    const void* list;                       // the host's: whose kernels these are,
    int device;                             // on which device,
    Launchpad* next;                        // and the next one that is free
    alignas(kSliceAlignment) unsigned char orders[2][kBytes];
};

/// What stands in front of every order.
struct OrderHead {
    unsigned bytes;          // with what stands behind
    unsigned kernel;         // which of the launchpad's
    unsigned blocks;
    unsigned block;          // pack_block, or 0: the launches don't fit into one
    unsigned shared_bytes;
};

/// A launch of a batch as the host is to do it.
template <class Batch, class Common>
struct alignas(kSliceAlignment) Order {
    OrderHead head;
    Bytes<Batch> batch;
    Bytes<Common> uniform;
};

constexpr unsigned kNestedAggregators = 8;   // of a kernel; a further one launches at once

/// What stands in front of a batch's records where the kernel that gets the batch may launch again, and in front of every
/// chunk of a pool.
struct alignas(kSliceAlignment) Front {
    State state;                                       // of a group of all blocks of a nested kernel
    unsigned long long groups[kNestedAggregators];     // for each Aggregator of the kernel: the Front of all its blocks' group
    unsigned blocks_done;                              // blocks of the kernel that need the batch no more
    unsigned size_class;                               // of a chunk

    /// Makes it ready for the kernel that is about to be launched.
    __device__ __forceinline__ void begin() {
        for (unsigned long long& group : groups) strong_write(group, 0ull);
        strong_write(blocks_done, 0u);
    }
};
constexpr unsigned long long kNoGroup = 1;   // in Front::groups: no memory, each launch goes out by itself

/// Memory for what kernels that are themselves launched by an Aggregator launch: chunks of a power of two of units. Part of
/// the parent's arena. All zero at first.
struct Pool {
    static constexpr unsigned kClasses = 20;
    // Free chunks of each size, as lists: the number of the first one's unit plus 1, or 0. The upper half changes whenever a
    // chunk is taken, so that a list that looks as before is as before.
    unsigned long long free[kClasses];
    unsigned used;   // units that have ever been handed out
    Launchpad* launchpad;   // of the parent, where the host launches
};
constexpr std::size_t kUnit = 4096;

/// In place of a pool where nothing is nested.
struct NoPool {};

template <bool Nested>
struct Nest;

/// A pool as seen from a kernel.
class PoolView {
public:
    PoolView() = default;
    __host__ __device__ PoolView(unsigned char* memory, unsigned units) : memory_(memory), units_(units) {}

    /// Of so many bytes of memory, how many become units.
    __host__ __device__ static constexpr unsigned units_in(std::size_t bytes) {
        const std::size_t units = bytes < sizeof(Pool) + kSliceAlignment ? 0 : (bytes - sizeof(Pool) - kSliceAlignment) / (kUnit + sizeof(unsigned));
        return units < 1u << (Pool::kClasses - 1) ? static_cast<unsigned>(units) : 1u << (Pool::kClasses - 1);
    }

    __device__ __forceinline__ explicit operator bool() const { return memory_ != nullptr; }

    /// Where nested kernels leave orders for the host, or null.
    __device__ __forceinline__ Launchpad* launchpad() const { return strong_read(pool().launchpad); }
    __device__ __forceinline__ void use(Launchpad* launchpad) const { strong_write(pool().launchpad, launchpad); }

    /// The smallest size of a chunk that holds so many bytes.
    __device__ __forceinline__ static unsigned class_of(unsigned long long bytes) {
        unsigned size_class = 0;
        while (size_class + 1 < Pool::kClasses && (static_cast<unsigned long long>(kUnit) << size_class) < bytes) ++size_class;
        return size_class;
    }

    /// A chunk of at least this size, or null. What it holds but for its size is left from earlier.
    __device__ __forceinline__ Front* allocate(unsigned size_class) const { return allocate_from(*this, size_class); }

    /// The same; a smaller one where there is none.
    __device__ __forceinline__ Front* allocate_at_most(unsigned size_class) const {
        for (;; --size_class) {
            if (Front* const front = allocate(size_class)) return front;
            if (size_class == 0) return nullptr;
        }
    }

    /// Gives a chunk back. Nobody may use it any more.
    __device__ __forceinline__ void release(Front* front) const { release_to(*this, front); }

private:
    // Not inlined, and by value: a reference to the view would keep the object that it is part of in memory.
    static __device__ __noinline__ Front* allocate_from(PoolView view, unsigned size_class) {
        if (Front* const front = view.from_list(size_class)) return front;
        unsigned used = strong_read(view.pool().used);
        while (view.units_ - used >= 1u << size_class) {
            const unsigned seen = atomicCAS(&view.pool().used, used, used + (1u << size_class));
            if (seen == used) {
                Front* const front = view.at(used);
                front->size_class = size_class;
                return front;
            }
            used = seen;
        }
        for (unsigned larger = size_class + 1; larger < Pool::kClasses; ++larger)
            if (Front* const front = view.from_list(larger)) return front;
        return nullptr;
    }
    static __device__ __noinline__ void release_to(PoolView view, Front* front) {
        const unsigned unit = static_cast<unsigned>((reinterpret_cast<unsigned char*>(front) - view.data()) / kUnit);
        unsigned long long& list = view.pool().free[front->size_class];
        unsigned long long head = strong_read(list);
        for (;;) {
            strong_write(view.links()[unit], static_cast<unsigned>(head));
            fence();   // release: all uses come before
            const unsigned long long seen = atomicCAS(&list, head, (head & ~0xffffffffull) | (unit + 1));
            if (seen == head) return;
            head = seen;
        }
    }

    __device__ __forceinline__ Pool& pool() const { return *reinterpret_cast<Pool*>(memory_); }
    __device__ __forceinline__ unsigned* links() const { return reinterpret_cast<unsigned*>(memory_ + sizeof(Pool)); }
    __device__ __forceinline__ unsigned char* data() const {
        const std::size_t front = sizeof(Pool) + units_ * sizeof(unsigned);
        return memory_ + (front + kSliceAlignment - 1) / kSliceAlignment * kSliceAlignment;
    }
    __device__ __forceinline__ Front* at(unsigned unit) const { return reinterpret_cast<Front*>(data() + unit * kUnit); }

    __device__ __forceinline__ Front* from_list(unsigned size_class) const {
        unsigned long long& list = pool().free[size_class];
        unsigned long long head = strong_read(list);
        while (static_cast<unsigned>(head) != 0) {
            fence();   // acquire: the link, and all uses before the release
            const unsigned unit = static_cast<unsigned>(head) - 1;
            const unsigned next = strong_read(links()[unit]);
            const unsigned long long seen = atomicCAS(&list, head, ((head >> 32) + 1) << 32 | next);
            if (seen == head) return at(unit);
            head = seen;
        }
        return nullptr;
    }

    unsigned char* memory_ = nullptr;
    unsigned units_ = 0;
};

/// The arguments that all launches have in common, as a plain list.
template <class... T>
struct Pack {
    template <class F, class... Before>
    __device__ __forceinline__ void apply(F&& f, const Before&... before) const {
        f(before...);
    }
};
template <class Head, class... Tail>
struct Pack<Head, Tail...> {
    Head head;
    Pack<Tail...> tail;

    // By value: a reference to a pointer can't be bound to one that is __restrict__.
    __device__ __forceinline__ explicit Pack(Head h, Tail... t) : head(h), tail(t...) {}
    template <class F, class... Before>
    __device__ __forceinline__ void apply(F&& f, const Before&... before) const {
        tail.apply(f, before..., head);
    }
};

/// What the type of an aggregated child kernel says.
template <class Function>
struct Child {
    static_assert(sizeof(Function) == 0, "an aggregated kernel is a void (gridfuse::Batch<Args>, ...)");
};
template <class T, bool Nested, class... Uniform>
struct Child<void (*)(Batch<T, Nested>, Uniform...)> {
    static constexpr bool kNested = Nested;
    using Args = T;
    using ChildBatch = Batch<T, Nested>;
    using Common = Pack<Uniform...>;
    static constexpr unsigned kUniform = sizeof...(Uniform);
};

__device__ __forceinline__ unsigned lane_of(unsigned linear_thread) { return linear_thread & 31; }

__device__ __forceinline__ unsigned block_threads() { return blockDim.x * blockDim.y * blockDim.z; }

__device__ __forceinline__ unsigned linear_thread() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

/// How many threads the calling thread's warp has: the last one of a block may be smaller.
__device__ __forceinline__ unsigned warp_threads() {
    const unsigned rest = block_threads() - linear_thread() / 32 * 32;
    return rest < 32 ? rest : 32;
}

__device__ __forceinline__ unsigned long long linear_block() {
    return blockIdx.x + static_cast<unsigned long long>(gridDim.x) * (blockIdx.y + static_cast<unsigned long long>(gridDim.y) * blockIdx.z);
}

/// What the states of an arena take, in front of the records.
__host__ __device__ constexpr unsigned long long states_bytes(unsigned long long blocks, unsigned long long parts) {
    return (blocks * parts * kStateStride + kSliceAlignment - 1) / kSliceAlignment * kSliceAlignment;
}

__device__ __forceinline__ unsigned lanes_below() {
    unsigned mask;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    return mask;
}

/// The dynamic shared memory of a block.
__device__ __forceinline__ unsigned dynamic_shared_bytes() {
    unsigned bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

// Where `block` lies: the last slot whose first block is not behind it. `first` holds `count`
// ascending numbers, the first of them 0. Every thread of the warp must take part.
struct Place {
    unsigned slot;
    unsigned first;
};
__device__ __forceinline__ Place find(const unsigned* first, unsigned count, unsigned block) {
    const unsigned thread = linear_thread(), lane = lane_of(thread);
    unsigned low = 0;
    if ((thread | 31) < block_threads()) {   // a full warp looks at 32 places at a time
        while (count > 32) {
            const unsigned step = (count + 31) / 32, at = lane * step;
            const bool reached = at < count && first[low + at] <= block;
            const unsigned last = __popc(__ballot_sync(~0u, reached)) - 1;
            low += last * step;
            count = min(step, count - last * step);
        }
        const unsigned value = lane < count ? first[low + lane] : ~0u;
        const unsigned last = __popc(__ballot_sync(~0u, value <= block)) - 1;
        return {low + last, __shfl_sync(~0u, value, last)};
    }
    while (count > 1) {
        const unsigned half = count / 2;
        if (first[low + half] <= block) {
            low += half;
            count -= half;
        } else {
            count = half;
        }
    }
    return {low, first[low]};
}

}   // namespace detail

template <class Granularity, auto Kernel, int Site>
class Aggregator;

namespace detail {

/// What an Aggregator could not launch together, which is seldom: by a kernel, to keep it out of the parent's code.
template <class Aggregator>
__global__ void launch_rest(typename Aggregator::ChildBatch batch, unsigned long long aside, typename Aggregator::Common uniform) {
    Aggregator::launch_each(uniform, batch, aside);
}

}   // namespace detail

/// Memory in which the threads of a parent kernel write down their launches: a kernel parameter, made
/// by arena_for. It is a view, copied freely; an Arena{} without memory is valid and means that every
/// launch goes out by itself. A kernel that an Aggregator has launched finds one in its Batch.
class Arena {
public:
    Arena() = default;

private:
    friend class ArenaOwner;
    template <auto... Kernel>
    friend class LaunchpadOwner;
    template <class Args, bool Nested>
    friend class Batch;
    template <bool Nested>
    friend struct detail::Nest;
    template <class Granularity, auto Kernel, int Site>
    friend class Aggregator;

    struct Slice {
        unsigned char* memory;
        unsigned long long bytes;
    };

    // Of a kernel that an Aggregator launches.
    __device__ __forceinline__ Arena(detail::PoolView pool, detail::Front* front) : pool_(pool), front_(front) {}

    // The memory of all Aggregators comes from the pool.
    __device__ __forceinline__ bool is_nested() const { return memory_ == nullptr && pool_; }

    // Which group of the grid's blocks the calling one belongs to.
    template <class Granularity>
    __device__ __forceinline__ static unsigned long long group() {
        return detail::linear_block() / detail::Blocks<Granularity>::kCount;
    }

    // Whether there is memory for the group of an Aggregator.
    template <class Granularity>
    __device__ __forceinline__ bool has(unsigned aggregator) const {
        return aggregator < parts_ && group<Granularity>() * detail::Blocks<Granularity>::kCount < blocks_;
    }

    // The state of the group, where it has memory.
    template <class Granularity>
    __device__ __forceinline__ detail::State& state(unsigned aggregator) const {
        return *reinterpret_cast<detail::State*>(memory_ + (aggregator * blocks_ + group<Granularity>()) * detail::kStateStride);
    }

    // What an Aggregator has for the records of the calling thread's group: for a warp a part of its block's memory, for several
    // blocks all of theirs.
    template <class Granularity>
    __device__ __forceinline__ Slice slice(unsigned aggregator) const {
        constexpr unsigned count = detail::Blocks<Granularity>::kCount;
        const unsigned long long first = group<Granularity>() * count;
        Slice slice;
        slice.memory = memory_ + records_ + (aggregator * blocks_ + first) * part_bytes_;
        slice.bytes = has<Granularity>(aggregator) ? (count < blocks_ - first ? count : blocks_ - first) * part_bytes_ : 0;
        if constexpr (std::is_same<Granularity, PerWarp>::value) {
            const unsigned warps = (detail::block_threads() + 31) / 32;
            slice.bytes = static_cast<unsigned>(slice.bytes) / warps / detail::kSliceAlignment * detail::kSliceAlignment;
            slice.memory += detail::linear_thread() / 32 * slice.bytes;
        }
        return slice;
    }

    unsigned char* memory_ = nullptr;
    unsigned long long records_ = 0;  // where in it the records begin, behind the states and the pool
    unsigned long long blocks_ = 0;   // of the parent's grid
    unsigned part_bytes_ = 0;         // for the records of a block and an Aggregator
    unsigned parts_ = 0;              // Aggregators
    unsigned taken_ = 0;
    detail::PoolView pool_;           // for nested launches
    detail::Front* front_ = nullptr;  // of the batch, in a kernel that an Aggregator has launched
    detail::Launchpad* launchpad_ = nullptr;   // where the host launches
};

namespace detail {

/// What a nested batch has besides; a base, so that it takes no room where nothing is nested.
template <bool Nested>
struct Nest {
    __device__ __forceinline__ Nest(NoPool, Front*, bool) {}
};
template <>
struct Nest<true> {
    __device__ __forceinline__ Nest(PoolView pool, Front* front, bool is_chunk) : own(pool, front), chunk(is_chunk) {}
    Arena own;    // for the kernel's Aggregators
    bool chunk;   // the Front is a chunk of the pool, which the kernel gives back
};

}   // namespace detail

/// What an aggregated child kernel runs: some launches with arguments of type `Args`, written down
/// by an Aggregator. The first parameter of such a kernel.
///
/// `Args` is any trivially copyable type: the arguments that differ between the launches. `Nested`: see NestedBatch.
template <class Args, bool Nested>
class Batch : detail::Nest<Nested> {
    static_assert(std::is_trivially_copyable<Args>::value, "the arguments of a launch are copied byte by byte");
    static_assert(alignof(Args) <= detail::kSliceAlignment, "over-aligned launch arguments");

    using Nest = detail::Nest<Nested>;
    using Pool = std::conditional_t<Nested, detail::PoolView, detail::NoPool>;

public:
    /// Runs the child's code for the block of the child grid that this block stands for. Called once,
    /// by every thread of the kernel: `body(blockIdx, gridDim, blockDim, args)` gets what the built-in
    /// variables would have been in a launch of its own, and that launch's arguments; `threadIdx` is
    /// the built-in. Threads that the launch did not ask for (when block sizes differ between the
    /// launches of a batch, the largest is launched) do not call `body`.
    template <class Body>
    __device__ __forceinline__ void for_each_block(Body&& body) const {
        uint3 block = blockIdx;
        dim3 grid = gridDim;
        dim3 threads = blockDim;
        detail::Bytes<Args> args;
        if (count_ == 0) {
            args = alone_;
        } else {
            // If there are as many blocks as launches, then each has one.
            const detail::Place place = count_ == gridDim.x ? detail::Place{blockIdx.x, blockIdx.x}
                                                            : detail::find(first_, count_, blockIdx.x);
            const detail::Record<Args>& record = records_[place.slot];
            const detail::Shape shape = record.shape;
            args = record.args;
            grid = shape.grid();
            threads = detail::unpack_block(shape.block);
            block.x = blockIdx.x - place.first;
            if (shape.grid_yz != 0) {
                const unsigned row = block.x / grid.x;
                block.x -= row * grid.x;
                block.z = row / grid.y;
                block.y = row - block.z * grid.y;
            }
        }
        if constexpr (Nested) {
            if (this->chunk) {
                __syncthreads();   // all threads have read their record
                if (detail::linear_thread() == 0) release(this->own.pool_, this->own.front_);
            }
        }
        // Block sizes differ in one-dimensional blocks only.
        if (count_ != 0 && threadIdx.x >= threads.x) return;
        body(block, grid, threads, args.value());
    }

    /// For the Aggregators of a kernel that launches in its turn. They are declared before for_each_block is called.
    __device__ __forceinline__ Arena& arena() {
        static_assert(Nested, "a kernel that launches in its turn takes a gridfuse::NestedBatch");
        return this->own;
    }

private:
    template <class Granularity, auto Kernel, int Site>
    friend class Aggregator;

    // A block needs the batch's chunk no more; the last one gives it back.
    static __device__ __noinline__ void release(Pool pool, detail::Front* front) {
        detail::fence();
        if (atomicAdd(&front->blocks_done, 1u) + 1 != gridDim.x * gridDim.y * gridDim.z) return;
        detail::fence();
        pool.release(front);
    }

    /// One launch with a grid of its own. `front`: a chunk of the pool, or null.
    __device__ __forceinline__ Batch(const detail::Bytes<Args>& args, Pool pool, detail::Front* front)
        : Nest(pool, front, front != nullptr), records_(nullptr), first_(nullptr), count_(0), alone_(args) {}

    /// The launches that stand behind `front`, or in memory without a Front. `release`: it is a chunk of the pool.
    __device__ __forceinline__ Batch(const detail::Record<Args>* records, const unsigned* first, unsigned count,
                                     Pool pool, detail::Front* front, bool release)
        : Nest(pool, front, release), records_(records), first_(first), count_(count) {}


    const detail::Record<Args>* records_;
    const unsigned* first_;   // for each record, the number of blocks before it
    unsigned count_;          // 0: one launch, with the arguments in alone_
    detail::Bytes<Args> alone_;
};

/// The same for a kernel that launches in its turn through Aggregators of its own, and for the kernels that such a
/// kernel launches. Only these pay for it.
template <class Args>
using NestedBatch = Batch<Args, true>;

namespace detail {

/// Arena memory between launches: what a launch in a stream has used, the next launch in the same stream
/// may use without asking CUDA for it, as it runs later. (Two calls of the pool cost about 2 us a launch.)
class KeptMemory {
public:
    /// Memory of at least `bytes` that was given back in this stream, or null. `bytes` becomes its size,
    /// `zeros` the number of bytes at its front that are zero when a launch in this stream begins; `turn` is as it was given.
    void* take(int device, unsigned long long stream, std::size_t& bytes, std::size_t& zeros, unsigned& turn) {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (Piece& piece : pieces_) {
            if (piece.memory != nullptr && piece.stream == stream && piece.device == device && piece.bytes >= bytes) {
                void* const memory = piece.memory;
                piece.memory = nullptr;
                bytes = piece.bytes;
                zeros = piece.zeros;
                turn = piece.turn;
                return memory;
            }
        }
        return nullptr;
    }

    /// Keeps memory for later launches in this stream; false if there is no place for more.
    bool give(int device, unsigned long long stream, void* memory, std::size_t bytes, std::size_t zeros, unsigned turn) {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (Piece& piece : pieces_) {
            if (piece.memory == nullptr) {
                piece = {memory, bytes, zeros, stream, device, turn};
                return true;
            }
        }
        return false;
    }

    static KeptMemory& instance() {
        static KeptMemory kept;
        return kept;
    }

    /// What launches leave that take turns with the front of their memory: see Follower.
    static KeptMemory& of_followers() {
        static KeptMemory kept;
        return kept;
    }

private:
    struct Piece {
        void* memory = nullptr;
        std::size_t bytes = 0;
        std::size_t zeros = 0;
        unsigned long long stream = 0;   // its id, which no later stream has again
        int device = 0;
        unsigned turn = 0;
    };
    std::mutex mutex_;
    Piece pieces_[16];
};

/// Memory for one launch in a stream, taken and given back in stream order.
class StreamMemory {
public:
    explicit StreamMemory(KeptMemory& kept = KeptMemory::instance()) : kept_(kept) {}
    ~StreamMemory() {
        if (memory_ == nullptr) return;
        if (keep_ && kept_.give(device_, stream_id_, memory_, bytes_, states_, turn_ ^ 1)) return;
        (void)cudaFreeAsync(memory_, stream_);
    }
    StreamMemory(const StreamMemory&) = delete;
    StreamMemory& operator=(const StreamMemory&) = delete;

    /// Takes `bytes` bytes, the first `states` of them zero: the kernel leaves them so. False if there are none.
    bool take(cudaStream_t stream, std::size_t states, std::size_t bytes) {
        stream_ = stream;
        if (cudaGetDevice(&device_) != cudaSuccess) return false;
        // The memory of a graph belongs to the graph, which runs when and where it likes.
        cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
        keep_ = cudaStreamIsCapturing(stream_, &capturing) == cudaSuccess && capturing == cudaStreamCaptureStatusNone &&
                cudaStreamGetId(stream_, &stream_id_) == cudaSuccess;
        bytes_ = bytes;
        states_ = states;
        std::size_t zeros = 0;
        void* memory = keep_ ? kept_.take(device_, stream_id_, bytes_, zeros, turn_) : nullptr;
        if (memory == nullptr) {
            const cudaMemPool_t pool = pool_of(device_);
            if (pool == nullptr || cudaMallocFromPoolAsync(&memory, bytes, pool, stream_) != cudaSuccess) return false;
        }
        if (zeros < states && cudaMemsetAsync(memory, 0, states, stream_) != cudaSuccess) {
            (void)cudaFreeAsync(memory, stream_);
            return false;
        }
        memory_ = static_cast<unsigned char*>(memory);
        return true;
    }

    /// The kernel doesn't leave the front as it was.
    void spoil() { states_ = 0; }

    unsigned char* memory() const { return memory_; }
    int device() const { return device_; }

    /// 0 and 1 by turns, from one launch with the same memory to the next.
    unsigned turn() const { return turn_; }

    /// Whether it outlives the launch: not in a graph.
    bool is_kept() const { return keep_; }

private:
    // A pool of our own for each device, which keeps the memory that is given back: the default pool
    // returns it to the system at every synchronisation, and has to ask for it again.
    static cudaMemPool_t pool_of(int device) {
        constexpr int kDevices = 64;
        static std::atomic<cudaMemPool_t> pools[kDevices];
        static std::mutex creating;
        if (device < 0 || device >= kDevices) return nullptr;
        if (const cudaMemPool_t pool = pools[device].load(std::memory_order_acquire)) return pool;
        const std::lock_guard<std::mutex> lock(creating);
        if (const cudaMemPool_t pool = pools[device].load(std::memory_order_relaxed)) return pool;
        // Making a pool is no part of a graph that some stream is capturing.
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
        if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess) return nullptr;
        cudaMemPoolProps properties = {};
        properties.allocType = cudaMemAllocationTypePinned;
        properties.handleTypes = cudaMemHandleTypeNone;
        properties.location.type = cudaMemLocationTypeDevice;
        properties.location.id = device;
        cudaMemPool_t pool = nullptr;
        if (cudaMemPoolCreate(&pool, &properties) == cudaSuccess) {
            std::uint64_t keep = UINT64_MAX;
            (void)cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
            pools[device].store(pool, std::memory_order_release);
        } else {
            pool = nullptr;
        }
        (void)cudaThreadExchangeStreamCaptureMode(&mode);
        return pool;
    }

    KeptMemory& kept_;
    unsigned char* memory_ = nullptr;
    cudaStream_t stream_ = nullptr;
    unsigned long long stream_id_ = 0;
    std::size_t bytes_ = 0;
    std::size_t states_ = 0;
    int device_ = 0;
    unsigned turn_ = 0;
    bool keep_ = false;
};

}   // namespace detail

/// Owns the memory of an Arena for one launch in a stream: taken when made, given back when destroyed,
/// both in stream order. What arena_for returns; converts to Arena.
class ArenaOwner {
public:
    ArenaOwner(dim3 grid, dim3 block, cudaStream_t stream, std::size_t bytes_per_thread, unsigned aggregators,
               std::size_t nested_bytes) {
        const unsigned long long blocks = 1ull * grid.x * grid.y * grid.z;
        const unsigned long long threads = 1ull * block.x * block.y * block.z;
        if (blocks == 0 || threads == 0 || threads > detail::kMaxBlockThreads || aggregators == 0) return;
        const cudaError_t before = cudaPeekAtLastError();
        // Too large a wish is cut down rather than refused: fewer launches fit in the batches.
        for (; bytes_per_thread >= 8; bytes_per_thread /= 2, nested_bytes /= 2) {
            if (bytes_per_thread > UINT_MAX / 2 / threads) continue;
            const unsigned units = detail::PoolView::units_in(nested_bytes);
            // With nested launches a batch has a Front: each warp's, if it comes to that.
            const unsigned long long fronts = units == 0 ? 0 : (threads + 31) / 32 * sizeof(detail::Front);
            const unsigned long long part =
                (threads * bytes_per_thread + detail::kSliceAlignment - 1) / detail::kSliceAlignment * detail::kSliceAlignment + fronts;
            if ((part + detail::kStateStride) * aggregators > ULLONG_MAX / 4 / blocks) continue;
            const unsigned long long states = detail::states_bytes(blocks, aggregators);
            const unsigned long long pool =
                units == 0 ? 0 : (nested_bytes + detail::kSliceAlignment - 1) / detail::kSliceAlignment * detail::kSliceAlignment;
            const std::size_t zeros = static_cast<std::size_t>(states + (units == 0 ? 0 : sizeof(detail::Pool)));
            if (!memory_.take(stream, zeros, static_cast<std::size_t>(states + pool + part * aggregators * blocks))) continue;
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
        if (before == cudaSuccess) (void)cudaGetLastError();   // the program has not failed, it only runs without an arena
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
/// thread of a block, see room_for. A kernel with several Aggregators says how many in `aggregators`; each gets
/// `bytes_per_thread`. Without memory (none is left, say) the result is an empty arena: the program is
/// then slow, not wrong.
///
/// Where the children launch in their turn, through Aggregators of their own, `nested_bytes` is the memory
/// in which they write down their launches: all of them that run or wait at a time, down to any depth.
/// A block that launches takes at least 4 KiB of it until its launches have begun.
inline ArenaOwner arena_for(dim3 grid, dim3 block, cudaStream_t stream = 0, std::size_t bytes_per_thread = 64,
                            unsigned aggregators = 1, std::size_t nested_bytes = 0) {
    return ArenaOwner(grid, block, stream, bytes_per_thread, aggregators, nested_bytes);
}

/// A value for `bytes_per_thread`: room for so many launches of each thread by each Aggregator, given the structs of the
/// arguments that they take. For a loop whose number of iterations isn't known, 4 is a start: what finds no room is launched
/// by itself, and is counted: see direct_launches.
template <class... Args>
constexpr std::size_t room_for(unsigned launches_per_thread = 1) {
    std::size_t largest = 0;
    ((largest = sizeof(detail::Record<Args>) > largest ? sizeof(detail::Record<Args>) : largest), ...);
    const std::size_t room = launches_per_thread * (largest + sizeof(unsigned));
    return room < 64 ? 64 : room;
}

/// How many launches by aggregators have got a grid of their own since the program began, or were run by the thread that would have
/// launched: the arena was full or there was none, or they couldn't be launched together. Waits for the device. Other than 0, it says where the time goes.
inline unsigned long long direct_launches() {
    unsigned long long count = 0;
    return cudaMemcpyFromSymbol(&count, detail::direct_launches, sizeof count) == cudaSuccess ? count : 0;
}

/// A good value for `nested_bytes`: all blocks that fit on a large GPU can write down launches at the same time.
constexpr std::size_t kNestedBytes = std::size_t{64} << 20;

/// Collects the launches of the threads of a parent kernel and launches them together.
///
/// `Granularity` says whose: PerWarp, PerBlock, PerMultiBlock<N> or PerGrid. `Kernel` is the aggregated
/// child, `void (Batch<Args>, uniform...)`. Several aggregators of one kernel that have the same `Kernel`
/// need different numbers for `Site`.
///
/// The object is declared at the top of the parent kernel, where every thread of the block passes.
/// Launches may then come from anywhere: divergent branches, loops, before early returns. A thread
/// leaves when the object's destructor runs, at whichever `return`; the last one launches.
template <class Granularity, auto Kernel, int Site = 0>
class Aggregator {
    using Child = detail::Child<decltype(Kernel)>;
    using Record = detail::Record<typename Child::Args>;
    using State = detail::State;
    static constexpr bool kWarp = std::is_same<Granularity, PerWarp>::value;
    static constexpr bool kGroup = !kWarp && !std::is_same<Granularity, PerBlock>::value;
    static constexpr bool kNested = Child::kNested;
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
    // Where that part is, is computed when it's needed: a kernel that launches nothing doesn't pay for it, nor do registers
    // hold it in the meantime.
    template <class... Uniform>
    __device__ __forceinline__ explicit Aggregator(Arena& arena, Uniform... uniform) : arena_(arena), uniform_(uniform...) {
        static_assert(sizeof...(Uniform) == Child::kUniform, "an Aggregator takes the arguments of its kernel that follow the batch");
        if (!arena.is_nested() && arena.memory_ == nullptr) detail::say_no_arena();
        ++arena.taken_;
        if constexpr (kGroup) {
            if (detail::linear_thread() == 0) {
                left_in_block() = 0;
                // All blocks of a nested kernel are one group, in a chunk of their own.
                if constexpr (kNested) {
                    if (arena_.is_nested()) group_of_block() = join(arena_.pool_, arena_.front_, arena_.taken_);
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
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, const Args& args) { launch(grid, block, 0, args); }

    /// In place of `child<<<grid, block, shared_bytes>>>(args...)`.
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, std::size_t shared_bytes, const Args& args) {
        if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
        const detail::Bytes<Args> bytes(args);
        if (!no_arena()) {
            wrote_ = true;
            if (detail::valid_grid(grid) && detail::valid_block(block) && shared_bytes <= detail::kMaxPlainShared &&
                1ull * grid.x * grid.y * grid.z <= detail::kMaxCollected) {
                const unsigned packed = detail::pack_block(block);
                Room room;
                const unsigned long long at = reserve(grid.x * grid.y * grid.z, packed, static_cast<unsigned>(shared_bytes), room);
                if (at != kNoRoom) {
                    Record record;
                    record.shape.grid_x = grid.x;
                    record.shape.grid_yz = (grid.y - 1) | (grid.z - 1) << 16;
                    record.shape.block = packed;
                    record.shape.shared_bytes = static_cast<unsigned>(shared_bytes);
                    record.args = bytes;
                    const unsigned slot = detail::launches_in(at);
                    room.records[slot] = record;
                    reinterpret_cast<unsigned*>(room.records + room.capacity)[slot] = static_cast<unsigned>(detail::blocks_in(at));
                    return;
                }
            }
            if (put_aside(state(), grid, block, shared_bytes, bytes)) return;
            detail::say_no_heap();
        }
        launch_alone(uniform_, pool(), grid, block, shared_bytes, bytes);
    }

    /// The thread leaves; the last one launches.
    __device__ __forceinline__ ~Aggregator() {
        if (no_arena()) return;
        // Threads of a warp that leave together count together. Release: what any of them wrote, its
        // records and everything before, comes before the count for whoever acquires it. That is a thread
        // of the same block, so the block's scope is enough; the one that launches fences for the device.
        const unsigned together = __activemask();
        const bool wrote = __any_sync(together, wrote_);
        __syncwarp(together);
        if ((together & detail::lanes_below()) != 0) return;
        if (wrote) __threadfence_block();
        const unsigned threads = __popc(together);
        if constexpr (kGroup) {
            const unsigned before = atomicAdd(&left_in_block(), threads | (wrote ? kSomeWrote : 0));
            if ((before & (kSomeWrote - 1)) + threads == detail::block_threads()) leave_group(wrote || before >= kSomeWrote);
        } else {
            const unsigned all = kWarp ? detail::warp_threads() : detail::block_threads();
            unsigned before = 0;
            if (!kWarp || threads != all) before = atomicAdd(&state().left, threads | (wrote ? kSomeWrote : 0));   // warps mostly leave whole
            if ((before & (kSomeWrote - 1)) + threads == all && (wrote || before >= kSomeWrote)) launch_all(state());
        }
    }

    /// Launches what is in a batch and what was put aside, each with a grid of its own.
    static __device__ __forceinline__ void launch_each(const Common& uniform, const ChildBatch& batch, unsigned long long aside = 0) {
        Pool pool;
        if constexpr (kNested) pool = batch.own.pool_;
        for (unsigned slot = 0; slot < batch.count_; ++slot) {
            const Record& record = batch.records_[slot];
            launch_alone(uniform, pool, record.shape.grid(), detail::unpack_block(record.shape.block), record.shape.shared_bytes, record.args);
        }
        if constexpr (kNested) {
            if (batch.chunk && batch.count_ != 0) pool.release(batch.own.front_);
        }
        unsigned put_aside = 0;
        for (; aside != 0; ++put_aside) {
            Aside* const next = reinterpret_cast<Aside*>(aside);
            aside = next->next;
            launch_alone(uniform, pool, next->grid, next->block, next->shared_bytes, next->args);
            free(next->memory);
        }
        if (put_aside != 0) detail::say_aside(put_aside);
    }

private:
    // A launch that can't be in the batch, on the device's heap. It is not launched on the spot: threads of a warp that
    // launch while others of it wait for them at a point of convergence can wait for ever (seen with CUDA 13.0, driver 580,
    // on an H200), and here nothing is known of the others. The last thread to leave is alone.
    struct Aside {
        unsigned long long next;   // an Aside, or 0
        void* memory;              // as malloc gave it
        dim3 grid, block;
        std::size_t shared_bytes;
        detail::Bytes<Args> args;
    };

    // What happens seldom is inlined, too, or done by another kernel: the functions that a kernel calls get registers above those that
    // the kernel itself uses, as long as there are some, and the kernel then takes as many as they do, in every thread.

    // Out of memory: false.
    static __device__ __forceinline__ bool put_aside(State& state, dim3 grid, dim3 block, std::size_t shared_bytes,
                                                     const detail::Bytes<Args>& args) {
        constexpr std::size_t alignment = alignof(Aside) > 16 ? alignof(Aside) : 16;   // malloc promises 16
        void* const memory = malloc(sizeof(Aside) + alignment - 16);
        if (memory == nullptr) return false;
        const std::uintptr_t address = (reinterpret_cast<std::uintptr_t>(memory) + alignment - 1) / alignment * alignment;
        Aside* const aside = reinterpret_cast<Aside*>(address);
        aside->memory = memory;
        aside->grid = grid;
        aside->block = block;
        aside->shared_bytes = shared_bytes;
        aside->args = args;
        aside->next = atomicExch(&state.aside, reinterpret_cast<unsigned long long>(aside));
        return true;
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

    // That a thread had launched, above the number of threads that have left. Added by at most 1,024 threads.
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

    // The last thread of the block leaves; that of the last block launches, and leaves the state as it was at first.
    __device__ __forceinline__ void leave_group(bool wrote) const {
        constexpr unsigned count = detail::Blocks<Granularity>::kCount;
        const unsigned long long blocks = 1ull * gridDim.x * gridDim.y * gridDim.z;
        const bool nested = of_pool();
        const unsigned long long first = nested ? 0 : Arena::group<Granularity>() * count;
        const unsigned members = static_cast<unsigned>(!nested && count < blocks - first ? count : blocks - first);
        if (wrote) detail::fence();
        State& s = state();
        const unsigned long long before = atomicAdd(&s.blocks_left, wrote ? 1ull << 32 | 1 : 1ull);
        if (static_cast<unsigned>(before) + 1 != members) return;
        if (!nested && !wrote && before >> 32 == 0) {   // nothing to launch, and all but this is as it was
            detail::strong_write(s.blocks_left, 0ull);
            return;
        }
        launch_all(s);
    }

    // The group of all blocks of a nested kernel: the first block to come makes it. Null, for all of them, if there is no memory.
    static __device__ __noinline__ detail::Front* join(Pool pool, detail::Front* parent, unsigned index) {
        if (parent == nullptr || index >= detail::kNestedAggregators) return nullptr;
        unsigned long long& group = parent->groups[index];
        unsigned long long there = detail::strong_read(group);
        if (there == 0) {
            const unsigned long long threads = 1ull * gridDim.x * gridDim.y * gridDim.z * detail::block_threads();
            const unsigned long long wanted = sizeof(detail::Front) + threads * (sizeof(Record) + sizeof(unsigned));
            detail::Front* const own = pool.allocate_at_most(detail::PoolView::class_of(wanted));
            if (own != nullptr) own->state.reset();
            detail::fence();
            const unsigned long long made = own == nullptr ? detail::kNoGroup : reinterpret_cast<unsigned long long>(own);
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
        detail::Front* front;   // in front of the records, where the children may launch in their turn
        unsigned capacity;

        Room() = default;
        __device__ __forceinline__ Room(unsigned char* memory, unsigned long long bytes, bool has_front) {
            const unsigned long long used = has_front ? sizeof(detail::Front) : 0;
            const unsigned long long fit = bytes < used ? 0 : (bytes - used) / (sizeof(Record) + sizeof(unsigned));
            records = reinterpret_cast<Record*>(memory + used);
            front = has_front ? reinterpret_cast<detail::Front*>(memory) : nullptr;
            capacity = static_cast<unsigned>(fit < detail::kMaxRecords ? fit : detail::kMaxRecords);
        }
    };
    // `chunk`: of a group that takes one.
    __device__ __forceinline__ Room room(unsigned long long chunk) const {
        if constexpr (kNested) {
            if (takes_chunk()) return Room(reinterpret_cast<unsigned char*>(chunk), detail::kUnit << size_class(), true);
            if (of_pool()) {
                detail::Front* const front = group_of_block();
                return Room(reinterpret_cast<unsigned char*>(front), detail::kUnit << front->size_class, true);
            }
        }
        const Arena::Slice slice = arena_.slice<Granularity>(arena_.taken_);
        return Room(slice.memory, slice.bytes, kNested && arena_.pool_);
    }

    // There is no memory: each launch goes out by itself.
    __device__ __forceinline__ bool no_arena() const {
        if constexpr (kNested) {
            if (arena_.is_nested()) return kGroup && group_of_block() == nullptr;
        }
        return kGroup ? !arena_.has<Granularity>(arena_.taken_) : arena_.memory_ == nullptr;
    }
    // Of all blocks of a nested kernel, whose memory is a chunk.
    __device__ __forceinline__ bool of_pool() const { return kNested && kGroup && arena_.is_nested(); }
    // Of a warp or a block of a nested kernel: its memory is a chunk that is taken when the first launch comes.
    __device__ __forceinline__ bool takes_chunk() const { return kNested && !kGroup && arena_.is_nested(); }
    // Of that chunk: it has room for one launch of each thread.
    __device__ __forceinline__ static unsigned size_class() {
        const unsigned threads = kWarp ? detail::warp_threads() : detail::block_threads();
        return detail::PoolView::class_of(sizeof(detail::Front) + 1ull * threads * (sizeof(Record) + sizeof(unsigned)));
    }
    __device__ __forceinline__ Pool pool() const {
        if constexpr (kNested) {
            return arena_.pool_;
        } else {
            return {};
        }
    }

    // The chunk of the group, which the first thread to launch takes from the pool; 0 when there is none left.
    static __device__ __noinline__ unsigned long long chunk_of_group(State& state, Pool pool, unsigned size_class) {
        unsigned long long there = detail::strong_read(state.chunk);
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
    __device__ __forceinline__ unsigned long long advance(unsigned launches, unsigned blocks, unsigned capacity) {
        const unsigned long long step = static_cast<unsigned long long>(launches) << detail::kBlockBits | blocks;
        const unsigned long long before = atomicAdd(&state().cursor, step);
        if (fits(before + step, capacity)) return before;
        if (fits(before, capacity))
            detail::strong_write(state().full_at, before);
        else
            atomicAdd(&state().cursor, 0 - step);
        return kNoRoom;
    }

    static __device__ __forceinline__ bool fits(unsigned long long cursor, unsigned capacity) {
        return detail::launches_in(cursor) <= capacity && detail::blocks_in(cursor) <= detail::kMaxGridX;
    }

    __device__ __forceinline__ void widen(unsigned block, unsigned shared_bytes) {
        State& s = state();
        atomicMax(&s.block_least, ~block);
        atomicMax(&s.block_most, block);
        if (shared_bytes != 0) atomicMax(&s.shared_most, shared_bytes);
    }

    // Slot and number of blocks before it, as in the cursor, or kNoRoom; `room_of_slot`: where the slot is. The threads of a warp that
    // happen to be here together move the cursor once.
    __device__ __forceinline__ unsigned long long reserve(unsigned blocks, unsigned block, unsigned shared_bytes, Room& room_of_slot) {
        const unsigned together = __activemask();
        const unsigned below = together & detail::lanes_below();
        int same = 0, same_blocks = 0, same_shared = 0;
        __match_all_sync(together, block, &same);
        __match_all_sync(together, shared_bytes, &same_shared);
        __match_all_sync(together, blocks, &same_blocks);
        const unsigned rank = __popc(below);
        unsigned before = rank * blocks, sum = __popc(together) * blocks;
        if (!same_blocks) {
            // A vote for each bit: most grids are small, and any set of threads may be together here.
            before = sum = 0;
            for (unsigned bit = 0; __any_sync(together, blocks >> bit != 0); ++bit) {
                const unsigned holders = __ballot_sync(together, blocks >> bit & 1);
                sum += __popc(holders) << bit;
                before += __popc(holders & below) << bit;
            }
        }
        unsigned long long at = 0;
        [[maybe_unused]] unsigned long long chunk = 0;
        if (rank == 0) {
            if constexpr (kNested) {
                if (takes_chunk()) chunk = chunk_of_group(state(), pool(), size_class());
            }
            at = takes_chunk() && chunk == 0 ? kNoRoom : advance(__popc(together), sum, room(chunk).capacity);
            if (at != kNoRoom && same && same_shared) widen(block, shared_bytes);
        }
        at = __shfl_sync(together, at, __ffs(together) - 1);
        if (at == kNoRoom) return at;
        if constexpr (kNested) {
            if (takes_chunk()) {
                chunk = __shfl_sync(together, chunk, __ffs(together) - 1);
                __syncwarp(together);   // what others have done with the chunk, of which the first thread knows, comes before
            }
        }
        room_of_slot = room(chunk);
        if (!same || !same_shared) widen(block, shared_bytes);
        return at + (static_cast<unsigned long long>(rank) << detail::kBlockBits | before);
    }

    static __device__ __forceinline__ void launch_kernel(const Common& uniform, dim3 grid, dim3 block, std::size_t shared_bytes,
                                                         const ChildBatch& batch) {
        uniform.apply([&](const auto&... values) {
            Kernel<<<grid, block, shared_bytes, cudaStreamFireAndForget>>>(batch, values...);
        });
    }

    static __device__ __forceinline__ void launch_alone(const Common& uniform, Pool pool, dim3 grid, dim3 block, std::size_t shared_bytes,
                                                     const detail::Bytes<Args>& args) {
        atomicAdd(&detail::direct_launches, 1ull);
        detail::Front* front = nullptr;
        if constexpr (kNested) {
            if (pool) front = pool.allocate(0);
            if (front != nullptr) front->begin();
        }
        launch_kernel(uniform, grid, block, shared_bytes, ChildBatch(args, pool, front));
    }

    __device__ __forceinline__ void launch_all(State& s) const {
        detail::fence();   // acquire, see the destructor; and release, to the children
        unsigned long long cursor = detail::strong_read(s.cursor);
        const unsigned long long aside = detail::strong_read(s.aside);
        const Room room = this->room(takes_chunk() ? detail::strong_read(s.chunk) : 0);
        if (!fits(cursor, room.capacity)) cursor = detail::strong_read(s.full_at);
        const unsigned least = ~detail::strong_read(s.block_least), most = detail::strong_read(s.block_most),
                       shared_bytes = detail::strong_read(s.shared_most);
        const unsigned count = detail::launches_in(cursor), blocks = static_cast<unsigned>(detail::blocks_in(cursor));
        const bool chunk = room.front != nullptr && (takes_chunk() || of_pool());
        if (kGroup && !of_pool()) s.reset();   // nobody needs it any more
        if constexpr (kFromHost && kNested) {
            if (!of_pool() && arena_.pool_) arena_.pool_.use(arena_.launchpad_);   // for what is launched from here
        }
        bool together = count != 0;
        if (together) {
            if constexpr (kNested) {
                if (room.front != nullptr) room.front->begin();
            }
        } else if constexpr (kNested) {
            if (chunk) pool().release(room.front);
        }
        ChildBatch batch(room.records, reinterpret_cast<const unsigned*>(room.records + room.capacity), count, pool(), room.front, chunk);
        if (together && !order(batch, blocks, least, most, shared_bytes)) {   // else the host launches it
            const bool plain = least == most && shared_bytes == 0;
            together = least == most || detail::packed_is_linear(most);   // else blocks differ in more than one dimension
            if (together) {
                if (!plain) (void)cudaGetLastError();   // an error of the program's, which nothing can read any more
                launch_kernel(uniform_, dim3(blocks), detail::unpack_block(most), shared_bytes, batch);
                // The largest block and the most shared memory may be too much together though none of them was by itself.
                if (!plain) together = cudaGetLastError() == cudaSuccess;
            }
        } else {
            together = true;
        }
        if (!together || aside != 0) {
            if (together) batch.count_ = 0;
            detail::launch_rest<Aggregator><<<1, 1, 0, cudaStreamFireAndForget>>>(batch, aside, uniform_);
        }
    }

    // Leaves a batch to the host; false if that can't launch it.
    __device__ __forceinline__ bool order(const ChildBatch& batch, unsigned blocks, unsigned least, unsigned most,
                                          unsigned shared_bytes) const {
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
    static __device__ __forceinline__ bool leave_order(detail::Launchpad* launchpad, const Common& uniform, const ChildBatch& batch,
                                                    unsigned blocks, unsigned block, unsigned shared_bytes) {
        using Order = detail::Order<ChildBatch, Common>;
        constexpr unsigned bytes = sizeof(Order) <= detail::Launchpad::kBytes ? sizeof(Order) : detail::Launchpad::kBytes + 1;
        const unsigned long long own = reinterpret_cast<unsigned long long>(Kernel);
        unsigned kernel = 0;
        for (; kernel < detail::Launchpad::kKernels; ++kernel) {
            const unsigned long long listed = detail::strong_read(launchpad->kernels[kernel]);
            if (listed == own) break;
            if (listed == 0) return false;
        }
        if (kernel == detail::Launchpad::kKernels) return false;
        unsigned used = detail::strong_read(launchpad->used);
        for (;;) {
            if (detail::Launchpad::kBytes - used < bytes) return false;
            const unsigned seen = atomicCAS(&launchpad->used, used, used + bytes);
            if (seen == used) break;
            used = seen;
        }
        Order* const order = reinterpret_cast<Order*>(launchpad->orders[detail::strong_read(launchpad->half)] + used);
        order->head = {bytes, kernel, blocks, block, shared_bytes};
        order->batch = detail::Bytes<ChildBatch>(batch);
        order->uniform = detail::Bytes<Common>(uniform);
        return true;
    }

    Arena arena_;           // as it was, so that `taken_` is the number of this Aggregator
    bool wrote_ = false;
    Common uniform_;
};

namespace detail {

/// The addresses of kernels in device code, which host code can't find out.
template <auto... Kernel>
__global__ void list_kernels(unsigned long long* list) {
    ((*list++ = reinterpret_cast<unsigned long long>(Kernel)), ...);
}

/// The launches of a batch that don't fit into one grid. (What nvcc makes of it for the host has another type of kernel: that can't
/// say what the parameters are.)
template <class Batch, class Common, auto Kernel>
__global__ void launch_each(Batch batch, Common uniform) {
    Aggregator<PerGridFromHost, Kernel, 0>::launch_each(uniform, batch);
}

/// Where the arguments that all launches have in common stand.
inline void place_arguments(Pack<>&, void**) {}
template <class Head, class... Tail>
void place_arguments(Pack<Head, Tail...>& pack, void** arguments) {
    *arguments = std::addressof(pack.head);
    place_arguments(pack.tail, arguments + 1);
}

/// Does by the host what an order says.
template <auto Kernel>
void launch_order(unsigned char* memory, cudaStream_t stream) {
    using Child = detail::Child<decltype(Kernel)>;
    using Batch = typename Child::ChildBatch;
    using Common = typename Child::Common;
    auto& order = *reinterpret_cast<Order<Batch, Common>*>(memory);
    const OrderHead head = order.head;
    if (head.block != 0) {
        void* arguments[1 + Child::kUniform] = {&order.batch};
        place_arguments(reinterpret_cast<Common&>(order.uniform), arguments + 1);
        const cudaError_t before = cudaPeekAtLastError();
        if (cudaLaunchKernel(Kernel, dim3(head.blocks), unpack_block(head.block), arguments, head.shared_bytes, stream) == cudaSuccess) return;
        // The largest block and the most shared memory may be too much together though none of them was by itself.
        if (before == cudaSuccess) (void)cudaGetLastError();
    }
    void* arguments[] = {&order.batch, &order.uniform};
    (void)cudaLaunchKernel(launch_each<Batch, Common, Kernel>, dim3(1), dim3(1), arguments, 0, stream);   // an error stays for the program to see
}

/// Launchpads that no launch uses, with the kernels that they list.
class Launchpads {
public:
    /// One that lists these kernels on this device, or null.
    Launchpad* take(int device, const void* list) {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (Launchpad** at = &free_; *at != nullptr; at = &(*at)->next) {
            Launchpad* const launchpad = *at;
            if (launchpad->device == device && launchpad->list == list) {
                *at = launchpad->next;
                return launchpad;
            }
        }
        return nullptr;
    }

    void give(Launchpad* launchpad) {
        const std::lock_guard<std::mutex> lock(mutex_);
        launchpad->next = free_;
        free_ = launchpad;
    }

    /// A new one, without kernels, or null.
    static Launchpad* make(int device, const void* list) {
        // Taking memory is no part of a graph that some stream is capturing.
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
        if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess) return nullptr;
        void* memory = nullptr;
        if (cudaHostAlloc(&memory, sizeof(Launchpad), cudaHostAllocPortable | cudaHostAllocMapped) != cudaSuccess) memory = nullptr;
        (void)cudaThreadExchangeStreamCaptureMode(&mode);
        Launchpad* const launchpad = static_cast<Launchpad*>(memory);
        if (launchpad == nullptr) return nullptr;
        for (unsigned long long& kernel : launchpad->kernels) kernel = 0;
        launchpad->used = 0;
        launchpad->half = 0;
        launchpad->list = list;
        launchpad->device = device;
        launchpad->next = nullptr;
        return launchpad;
    }

    static Launchpads& instance() {
        static Launchpads launchpads;
        return launchpads;
    }

private:
    std::mutex mutex_;
    Launchpad* free_ = nullptr;
};

}   // namespace detail

/// Owns the memory of an Arena for one launch in a stream, and launches what the parent and its children have collected: when
/// destroyed. What launchpad_for returns; converts to Arena.
template <auto... Kernel>
class LaunchpadOwner {
    static_assert(sizeof...(Kernel) <= detail::Launchpad::kKernels, "more kernels than a launchpad can list");

public:
    LaunchpadOwner(dim3 grid, dim3 block, cudaStream_t stream, std::size_t bytes_per_thread, unsigned aggregators,
                   std::size_t nested_bytes)
        : memory_(grid, block, stream, bytes_per_thread, aggregators, nested_bytes), stream_(stream) {
        // A graph runs without us: there the device launches.
        if (memory_.arena_.memory_ == nullptr || !memory_.memory_.is_kept()) return;
        const cudaError_t before = cudaPeekAtLastError();
        launchpad_ = detail::Launchpads::instance().take(memory_.memory_.device(), &list_);
        if (launchpad_ == nullptr) launchpad_ = make();
        if (before == cudaSuccess) (void)cudaGetLastError();   // the program has not failed, only the device launches
    }
    ~LaunchpadOwner() {
        if (launchpad_ == nullptr) return;
        // Only kernels that collect launches in their turn leave further orders.
        constexpr bool in_turn = (detail::Child<decltype(Kernel)>::kNested || ...);
        do {
            // On an error, which stays for the program to see, nothing is known of who still uses the launchpad.
            if (cudaStreamSynchronize(stream_) != cudaSuccess) return;
        } while (launch_orders() && in_turn);
        detail::Launchpads::instance().give(launchpad_);
    }
    LaunchpadOwner(const LaunchpadOwner&) = delete;
    LaunchpadOwner& operator=(const LaunchpadOwner&) = delete;

    operator Arena() const {
        Arena arena = memory_;
        arena.launchpad_ = launchpad_;
        return arena;
    }

private:
    detail::Launchpad* make() const {
        detail::Launchpad* const launchpad = detail::Launchpads::make(memory_.memory_.device(), &list_);
        if (launchpad == nullptr) return nullptr;
        unsigned long long* list = launchpad->kernels;
        void* arguments[] = {&list};
        if (cudaLaunchKernel(detail::list_kernels<Kernel...>, dim3(1), dim3(1), arguments, 0, stream_) == cudaSuccess) return launchpad;
        (void)cudaFreeHost(launchpad);
        return nullptr;
    }

    // The launches that were left to the host since the last time; false if there were none.
    bool launch_orders() const {
        constexpr void (*launch[])(unsigned char*, cudaStream_t) = {detail::launch_order<Kernel>...};
        unsigned char* order = launchpad_->orders[launchpad_->half];
        unsigned char* const end = order + launchpad_->used;
        if (order == end) return false;
        launchpad_->half ^= 1;
        launchpad_->used = 0;
        while (order != end) {
            const detail::OrderHead head = *reinterpret_cast<const detail::OrderHead*>(order);
            launch[head.kernel](order, stream_);
            order += head.bytes;
        }
        return true;
    }

    static inline const char list_ = 0;   // its address stands for these kernels

    ArenaOwner memory_;   // given back behind the launches
    cudaStream_t stream_;
    detail::Launchpad* launchpad_ = nullptr;
};

/// Makes the arena for one launch of a parent kernel whose Aggregators are PerGridFromHost; in place of arena_for:
///
///     parent<<<grid, block, 0, stream>>>(..., gridfuse::launchpad_for<child_aggregated>(grid, block, stream));
///
/// `Kernel`: the kernels that Aggregators launch, those of the children in their turn included. One that is left out is launched
/// by the device. The host waits at the end of the statement until the parent is done, and then launches the children into the
/// stream; if these collect launches in their turn, it waits until they are done, too. So nothing that comes before in the stream
/// may wait for what the host does later, and no other thread of the host may launch into the stream meanwhile what must
/// not come between parent and children.
template <auto... Kernel>
inline LaunchpadOwner<Kernel...> launchpad_for(dim3 grid, dim3 block, cudaStream_t stream = 0, std::size_t bytes_per_thread = 64,
                                               unsigned aggregators = 1, std::size_t nested_bytes = 0) {
    static_assert(sizeof...(Kernel) != 0, "a launchpad launches some kernel");
    return LaunchpadOwner<Kernel...>(grid, block, stream, bytes_per_thread, aggregators, nested_bytes);
}

/// Runs the threads of a child grid one after the other in the calling thread:
/// `body(threadIdx, blockIdx, gridDim, blockDim)`.
template <class Body>
__device__ __forceinline__ void for_each_thread(dim3 grid, dim3 block, Body&& body) {
    uint3 b, t;
    for (b.z = 0; b.z < grid.z; ++b.z)
        for (b.y = 0; b.y < grid.y; ++b.y)
            for (b.x = 0; b.x < grid.x; ++b.x)
                for (t.z = 0; t.z < block.z; ++t.z)
                    for (t.y = 0; t.y < block.y; ++t.y)
                        for (t.x = 0; t.x < block.x; ++t.x) body(t, b, grid, block);
}

/// The same for a one-dimensional grid of which only the first `count` threads have something to do. A body that ends in an atomic
/// operation or a store has to wait for the one before anyhow; of others, which only collect something (SumAt), `AtATime` may be under way.
template <unsigned AtATime = 1, class Count, class Body>
__device__ __forceinline__ void for_each_thread(dim3 grid, dim3 block, Count count, Body&& body) {
    static_assert(std::is_integral<Count>::value, "a number of threads");
    using Number = std::make_unsigned_t<Count>;
    const unsigned long long all = 1ull * grid.x * block.x;   // less than 2^63
    Number threads = count > 0 ? static_cast<Number>(count) : 0;
    if (all < threads) threads = static_cast<Number>(all);
    uint3 b = {0, 0, 0}, t = {0, 0, 0};
    // One loop, for blocks and threads: with a constant block size the compiler sees that `blockIdx.x * blockDim.x + threadIdx.x`
    // is the loop's variable again.
#pragma unroll AtATime
    for (Number number = 0; number < threads; ++number) {
        t.x = static_cast<unsigned>(number % block.x);
        b.x = static_cast<unsigned>(number / block.x);
#ifdef __CUDA_ARCH__
        __builtin_assume(static_cast<Count>(b.x * block.x + t.x) < count);   // what the body is about to ask
#endif
        body(t, b, grid, block);
    }
}

/// Runs the blocks of a child grid one after the other in the calling thread:
/// `body(blockIdx, gridDim, blockDim)`.
template <class Body>
__device__ __forceinline__ void for_each_block(dim3 grid, dim3 block, Body&& body) {
    uint3 b;
    for (b.z = 0; b.z < grid.z; ++b.z)
        for (b.y = 0; b.y < grid.y; ++b.y)
            for (b.x = 0; b.x < grid.x; ++b.x) body(b, grid, block);
}

/// Runs the threads of a block one after the other in the calling thread, up to where they would wait
/// for each other: `body(threadIdx)` or `body(threadIdx, number)`.
template <class Body>
__device__ __forceinline__ void for_each_thread(dim3 block, Body&& body) {
    uint3 t;
    unsigned number = 0;
    for (t.z = 0; t.z < block.z; ++t.z)
        for (t.y = 0; t.y < block.y; ++t.y)
            for (t.x = 0; t.x < block.x; ++t.x, ++number)
                if constexpr (std::is_invocable_v<Body&, uint3, unsigned>) body(t, number);
                else body(t);
}

/// The threads of a block of at most `Count` that have not returned from the kernel, run one after the
/// other by the calling thread.
template <unsigned Count>
class BlockThreads {
public:
    __device__ __forceinline__ explicit BlockThreads(dim3 block) : block_(block), left_(block.x * block.y * block.z) {}

    /// As the function of this name, for the threads that are left.
    template <class Body>
    __device__ __forceinline__ void for_each(Body&& body) {
        for_each_thread(block_, [&](uint3 t, unsigned number) {
            if (gone_[number]) return;
            if constexpr (std::is_invocable_v<Body&, uint3, unsigned>) body(t, number);
            else body(t);
        });
    }

    /// This thread returns.
    __device__ __forceinline__ void exit(unsigned number) {
        gone_[number] = true;
        --left_;
    }

    /// All have returned.
    __device__ __forceinline__ bool none() const { return left_ == 0; }

private:
    dim3 block_;
    unsigned left_;
    bool gone_[Count] = {};
};

/// Atomics on shared memory of a block that one thread runs: nothing can come between, and local memory,
/// where that memory lies, has no atomic operations.
namespace serial {

template <class T, class V>
__device__ __forceinline__ T atomicExch(T* place, V value) {
    const T old = *place;
    *place = static_cast<T>(value);
    return old;
}
template <class T, class V>
__device__ __forceinline__ T atomicAdd(T* place, V value) {
    return serial::atomicExch(place, *place + static_cast<T>(value));
}
template <class T, class V>
__device__ __forceinline__ T atomicSub(T* place, V value) {
    return serial::atomicExch(place, *place - static_cast<T>(value));
}
template <class T, class V>
__device__ __forceinline__ T atomicMin(T* place, V value) {
    return serial::atomicExch(place, static_cast<T>(value) < *place ? static_cast<T>(value) : *place);
}
template <class T, class V>
__device__ __forceinline__ T atomicMax(T* place, V value) {
    return serial::atomicExch(place, *place < static_cast<T>(value) ? static_cast<T>(value) : *place);
}
template <class T, class V>
__device__ __forceinline__ T atomicAnd(T* place, V value) {
    return serial::atomicExch(place, *place & static_cast<T>(value));
}
template <class T, class V>
__device__ __forceinline__ T atomicOr(T* place, V value) {
    return serial::atomicExch(place, *place | static_cast<T>(value));
}
template <class T, class V>
__device__ __forceinline__ T atomicXor(T* place, V value) {
    return serial::atomicExch(place, *place ^ static_cast<T>(value));
}
template <class T, class V>
__device__ __forceinline__ T atomicInc(T* place, V limit) {
    return serial::atomicExch(place, *place >= static_cast<T>(limit) ? T(0) : *place + 1);
}
template <class T, class V>
__device__ __forceinline__ T atomicDec(T* place, V limit) {
    const bool wraps = *place == 0 || *place > static_cast<T>(limit);
    return serial::atomicExch(place, wraps ? static_cast<T>(limit) : *place - 1);
}
template <class T, class E, class V>
__device__ __forceinline__ T atomicCAS(T* place, E expected, V value) {
    const T old = *place;
    if (old == static_cast<T>(expected)) *place = static_cast<T>(value);
    return old;
}

}   // namespace serial

/// Whether CUDA launches such a grid at all: not without threads, and not with a block of more than 1024.
__device__ __forceinline__ bool is_launchable(dim3 grid, dim3 block) { return detail::valid_grid(grid) && detail::valid_block(block); }

/// Whether a child grid has fewer than `threshold` threads. False for a grid that CUDA would refuse to
/// launch (no threads, a block of more than 1024), so that such a launch fails as it would have.
__device__ __forceinline__ bool below_threshold(dim3 grid, dim3 block, unsigned long long threshold) {
    if (!is_launchable(grid, block)) return false;
    const unsigned long long blocks = 1ull * grid.x * grid.y * grid.z;   // less than 2^63
    return blocks < threshold && blocks * (block.x * block.y * block.z) < threshold;
}

/// The grid for a kernel each of whose blocks does the work of up to `factor` blocks of `grid`, which follow each other in x
/// at a distance: block b does b, b + n, b + 2n … with n blocks in all. A grid that CUDA would refuse to launch stays as it is.
__device__ __forceinline__ dim3 coarsened(dim3 grid, unsigned factor) {
    if (detail::valid_grid(grid)) grid.x = (grid.x - 1) / factor + 1;
    return grid;
}

/// The same with at most `blocks` blocks in x, whatever the factor is.
__device__ __forceinline__ dim3 coarsened_to(dim3 grid, unsigned blocks) {
    if (detail::valid_grid(grid) && grid.x > blocks) grid.x = blocks;
    return grid;
}

// ------------------------------------------------------------------------------------- recursion

template <auto Kernel>
class Recursion;

template <class Args>
class Worklist;

namespace detail {

/// The counters of a worklist, each where nobody else disturbs it. All zero at first.
struct WorkCounters {
    alignas(kSliceAlignment) unsigned long long taken;   // tickets: every block that asks for work gets the next one
    alignas(kSliceAlignment) unsigned long long added;   // records that have got a place
    // Records that are not done, and -1 when the entry grid is done, too: what is left is one more than this.
    alignas(kSliceAlignment) unsigned long long left;
    unsigned long long entered;                          // blocks of the entry grid that are done
    alignas(kSliceAlignment) unsigned done;              // nothing is left
};

/// One block that waits to be run.
template <class Args>
struct Work {
    unsigned long long block;   // of its grid, counted in x first
    unsigned grid_x;
    unsigned grid_yz;           // y - 1 in the lower half, z - 1 in the upper
    Bytes<Args> args;
};

/// What the type of a flattened kernel says.
template <class Function>
struct Flattened {
    static_assert(sizeof(Function) == 0, "a flattened kernel is a void (gridfuse::Worklist<Args>, ...)");
};
template <class T, class... Uniform>
struct Flattened<void (*)(Worklist<T>, Uniform...)> {
    using Args = T;
    using Common = Pack<Uniform...>;
    static constexpr unsigned kUniform = sizeof...(Uniform);
};

constexpr unsigned kMostWorkAtOnce = 1u << 12;   // a grid of more blocks is worth a launch of its own

}   // namespace detail

/// Blocks that wait to be run, with arguments of type `Args`: the first parameter of a flattened kernel, made by
/// launch_recursion. A view. A Worklist without memory stands for one grid that is launched by itself.
template <class Args>
class Worklist {
    static_assert(std::is_trivially_copyable<Args>::value, "the arguments of a launch are copied byte by byte");

public:
    Worklist() = default;

private:
    template <auto Kernel>
    friend class Recursion;
    template <auto Kernel, unsigned Bits>
    friend class WorklistOwner;

    using Work = detail::Work<Args>;

    __host__ __device__ __forceinline__ explicit Worklist(const detail::Bytes<Args>& first) : first_(first) {}

    // Behind the counters stands, for each place, twice how often it was emptied, plus one while it holds something; then what it
    // holds.
    __host__ __device__ __forceinline__ static unsigned* turns(detail::WorkCounters* counters) {
        return reinterpret_cast<unsigned*>(counters + 1);
    }
    __host__ __device__ __forceinline__ static Work* places(detail::WorkCounters* counters, unsigned bits) {
        return reinterpret_cast<Work*>(reinterpret_cast<unsigned char*>(counters) + bytes_in_front(bits));
    }
    __host__ __device__ __forceinline__ static constexpr std::size_t bytes_in_front(unsigned bits) {
        return (sizeof(detail::WorkCounters) + (sizeof(unsigned) << bits) + detail::kSliceAlignment - 1) / detail::kSliceAlignment *
               detail::kSliceAlignment;
    }

    detail::WorkCounters* counters_ = nullptr;
    unsigned bits_ = 0;                   // there are 1 << bits_ places
    unsigned grid_x_ = 0, grid_yz_ = 0;   // of the entry grid
    detail::Bytes<Args> first_;           // its arguments
};

/// Runs a kernel that launches itself, in one grid that stays: its blocks take from a Worklist what is to be run, and write
/// down there what is launched. Declared at the top of a flattened kernel, whose only further statement is for_each_block:
///
///     __global__ void walk_flattened(gridfuse::Worklist<walk_args> worklist, const Tree* tree) {
///         gridfuse::Recursion<walk_flattened> walks(worklist, tree);
///         walks.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const walk_args& args) {
///             walk_body(walks, blockIdx, gridDim, blockDim, tree, args.node);   // calls walks.launch(1, blockDim, {child})
///         });
///     }
///
/// A block that finds nothing to do waits until there is something, or until all is done. It has a ticket for the place at which it
/// waits, and whoever gets that place fills it at once; so what waits is never waited for, and it is enough that the blocks that
/// have begun go on.
template <auto Kernel>
class Recursion {
    using Args = typename detail::Flattened<decltype(Kernel)>::Args;
    using Common = typename detail::Flattened<decltype(Kernel)>::Common;
    using List = Worklist<Args>;
    using Work = detail::Work<Args>;

public:
    /// `worklist`: the kernel's first argument, or `{}`, with which each launch goes out by itself. `uniform`: its further arguments.
    template <class... Uniform>
    __device__ __forceinline__ explicit Recursion(const List& worklist, const Uniform&... uniform)
        : list_(worklist), uniform_(uniform...) {
        static_assert(sizeof...(Uniform) == detail::Flattened<decltype(Kernel)>::kUniform, "an argument for each parameter behind the worklist");
    }
    Recursion(const Recursion&) = delete;
    Recursion& operator=(const Recursion&) = delete;

    /// Launches the kernel again: its blocks are written down, and run by blocks that have nothing else to do. A grid with blocks
    /// of another size, with more shared memory, with very many blocks, or for which there is no room is launched by itself.
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, const Args& args) { launch(grid, block, 0, args); }
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, std::size_t shared_bytes, const Args& args) {
        if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
        const detail::Bytes<Args> bytes(args);
        if (list_.counters_ != nullptr && write_down(list_.counters_, list_.bits_, grid, block, shared_bytes, bytes)) return;
        launch_alone(Common(uniform_), grid, block, shared_bytes, bytes);
    }

    /// Runs `body(blockIdx, gridDim, blockDim, args)` for every block that there is to run. All threads call it, once. All
    /// threads of the block, or none, must come to each barrier in `body`.
    template <class Body>
    __device__ __forceinline__ void for_each_block(Body&& body) const {
        if (list_.counters_ == nullptr) {
            body(blockIdx, gridDim, blockDim, list_.first_.value());
            return;
        }
        Current& current = shared();
        unsigned* const turns = List::turns(list_.counters_);
        const unsigned thread = detail::linear_thread();
        const bool first = thread == 0, last = thread == detail::block_threads() - 1;
        unsigned long long ticket = 0;
        if (first) {
            ticket = atomicAdd(&list_.counters_->taken, 1ull);
            current.kept = 0;
        }
        for (;;) {
            if (first) take(current, ticket);
            __syncthreads();
            const Source source = current.source;
            if (source == kNone) return;
            Work work;
            unsigned place = 0;
            if (source == kEntry) {
                work.block = current.ticket;
                work.grid_x = list_.grid_x_;
                work.grid_yz = list_.grid_yz_;
                work.args = list_.first_;
            } else if (source == kKept) {
                work = current.work;
            } else {
                place = static_cast<unsigned>(current.ticket) & ((1u << list_.bits_) - 1);
                work = List::places(list_.counters_, list_.bits_)[place];
            }
            __syncthreads();   // all have read it
            if (last && source == kQueue) {
                detail::fence();   // what was read there was read before
                detail::strong_write(turns[place], 2 * static_cast<unsigned>(current.ticket >> list_.bits_) + 2);
            }
            const dim3 grid(work.grid_x, (work.grid_yz & 65535) + 1, (work.grid_yz >> 16) + 1);
            uint3 block;
            block.x = static_cast<unsigned>(work.block);
            block.y = block.z = 0;
            if (work.grid_yz != 0) {
                const unsigned long long row = work.block / grid.x;
                block.x = static_cast<unsigned>(work.block - row * grid.x);
                block.y = static_cast<unsigned>(row % grid.y);
                block.z = static_cast<unsigned>(row / grid.y);
            }
            body(block, grid, blockDim, work.args.value());
            __syncthreads();   // shared memory is free for the next one
            if (first && current.kept == 0) {
                ticket = atomicAdd(&list_.counters_->taken, 1ull);
                finish(current);
            }
        }
    }

private:
    enum Source : unsigned { kNone, kEntry, kQueue, kKept };

    // What the block runs.
    struct Current {
        Source source;
        bool entered;                 // it goes back to a block of the entry grid
        unsigned kept;                // the block has kept one of its launches for itself
        unsigned long long ticket;    // the place, or the block of the entry grid
        Work work;                    // the one it has kept
    };
    static __device__ __forceinline__ Current& shared() {
        __shared__ Current current;
        return current;
    }

    __device__ __forceinline__ unsigned long long entry_blocks() const {
        return 1ull * list_.grid_x_ * ((list_.grid_yz_ & 65535) + 1) * ((list_.grid_yz_ >> 16) + 1);
    }

    // The next block to run.
    __device__ __forceinline__ void take(Current& current, unsigned long long ticket) const {
        if (current.kept != 0) {
            current.kept = 0;
            current.source = kKept;
            return;
        }
        const unsigned long long entries = entry_blocks();
        if (ticket < entries) {
            current.source = kEntry;
            current.entered = true;
            current.ticket = ticket;
            return;
        }
        ticket -= entries;
        const unsigned place = static_cast<unsigned>(ticket) & ((1u << list_.bits_) - 1);
        const unsigned turn = 2 * static_cast<unsigned>(ticket >> list_.bits_) + 1;
        const unsigned& mark = List::turns(list_.counters_)[place];
        current.source = kQueue;
        current.entered = false;
        current.ticket = ticket;
        for (unsigned pause = 32; detail::strong_read(mark) != turn; pause = pause < 256 ? 2 * pause : pause) {
            if (detail::strong_read(list_.counters_->done) != 0) {
                current.source = kNone;
                return;
            }
            __nanosleep(pause);
        }
        detail::fence();   // acquire: what the launching thread had written
    }

    // A block is done, and has launched nothing that it has kept.
    __device__ __forceinline__ void finish(const Current& current) const {
        detail::WorkCounters& counters = *list_.counters_;
        if (current.entered && atomicAdd(&counters.entered, 1ull) + 1 != entry_blocks()) return;
        if (atomicAdd(&counters.left, ~0ull) == 0) detail::strong_write(counters.done, 1u);
    }

    // Two functions, so that neither needs many registers: the kernel has as many as it takes to call them.
    static __device__ __noinline__ void launch_alone(const Common& uniform, dim3 grid, dim3 block, std::size_t shared_bytes,
                                                     const detail::Bytes<Args>& args) {
        atomicAdd(&detail::direct_launches, 1ull);
        uniform.apply([&](const auto&... values) {
            Kernel<<<grid, block, shared_bytes, cudaStreamFireAndForget>>>(List(args), values...);
        });
    }
    static __device__ __noinline__ bool write_down(detail::WorkCounters* counters, unsigned bits, dim3 grid, dim3 block,
                                                   std::size_t shared_bytes, const detail::Bytes<Args>& args) {
        const bool alike = block.x == blockDim.x && block.y == blockDim.y && block.z == blockDim.z;
        if (!alike || !detail::valid_grid(grid) || shared_bytes > detail::dynamic_shared_bytes()) return false;
        const unsigned long long all = 1ull * grid.x * grid.y * grid.z;   // less than 2^63
        if (all > detail::kMostWorkAtOnce) return false;
        const unsigned count = static_cast<unsigned>(all);
        const unsigned grid_yz = (grid.y - 1) | (grid.z - 1) << 16;
        const unsigned capacity = 1u << bits;
        unsigned* const turns = List::turns(counters);
        Work* const places = List::places(counters, bits);
        // The block runs one of them itself, the first time.
        Current& current = shared();
        const unsigned kept = atomicCAS(&current.kept, 0u, 1u) == 0 ? 1 : 0;
        if (count > kept) {
            const unsigned more = count - kept;
            // One place stays empty, as one record more than `left` says may not be done.
            if (atomicAdd(&counters->left, static_cast<unsigned long long>(more)) + more >= capacity) {
                atomicAdd(&counters->left, ~static_cast<unsigned long long>(more) + 1);
                if (kept != 0) atomicExch(&current.kept, 0u);
                return false;
            }
            const unsigned long long begin = atomicAdd(&counters->added, static_cast<unsigned long long>(more));
            if (begin + more > capacity) {
                // Whoever had the place before has a ticket for it and is about to read it, or has done so.
#pragma unroll 1
                for (unsigned i = 0; i < more; ++i) {
                    const unsigned long long at = begin + i;
                    const unsigned turn = 2 * static_cast<unsigned>(at >> bits);
                    while (detail::strong_read(turns[at & (capacity - 1)]) != turn) __nanosleep(32);
                }
                detail::fence();
            }
#pragma unroll 1
            for (unsigned i = 0; i < more; ++i) {
                Work& work = places[(begin + i) & (capacity - 1)];
                work.block = kept + i;
                work.grid_x = grid.x;
                work.grid_yz = grid_yz;
                work.args = args;
            }
            detail::fence();   // release: these, and what the launching thread has written or knows of
#pragma unroll 1
            for (unsigned i = 0; i < more; ++i) {
                const unsigned long long at = begin + i;
                detail::strong_write(turns[at & (capacity - 1)], 2 * static_cast<unsigned>(at >> bits) + 1);
            }
        }
        if (kept != 0) {
            current.work.block = 0;
            current.work.grid_x = grid.x;
            current.work.grid_yz = grid_yz;
            current.work.args = args;
        }
        return true;
    }

    List list_;
    Common uniform_;
};

/// Owns the memory of a worklist for one launch in a stream.
template <auto Kernel, unsigned Bits>
class WorklistOwner {

    using Args = typename detail::Flattened<decltype(Kernel)>::Args;
    using Work = detail::Work<Args>;

public:
    WorklistOwner(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream, const Args& first)
        : list_(detail::Bytes<Args>(first)) {
        if (!detail::valid_grid(grid) || !detail::valid_block(block)) return;
        const cudaError_t before = cudaPeekAtLastError();
        if (!take(grid, block, shared_bytes, stream) && before == cudaSuccess) (void)cudaGetLastError();
    }
    WorklistOwner(const WorklistOwner&) = delete;
    WorklistOwner& operator=(const WorklistOwner&) = delete;

    const Worklist<Args>& list() const { return list_; }
    unsigned blocks() const { return blocks_; }

private:
    bool take(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream) {
        int device = 0, multiprocessors = 0, resident = 0;
        if (cudaGetDevice(&device) != cudaSuccess ||
            cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess ||
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, Kernel, static_cast<int>(block.x * block.y * block.z),
                                                          shared_bytes) != cudaSuccess ||
            resident * multiprocessors <= 0)
            return false;
        constexpr std::size_t zeros = Worklist<Args>::bytes_in_front(Bits);
        if (!memory_.take(stream, zeros, zeros + (sizeof(Work) << Bits))) return false;
        memory_.spoil();
        list_.counters_ = reinterpret_cast<detail::WorkCounters*>(memory_.memory());
        list_.bits_ = Bits;
        list_.grid_x_ = grid.x;
        list_.grid_yz_ = (grid.y - 1) | (grid.z - 1) << 16;
        blocks_ = static_cast<unsigned>(resident * multiprocessors);
        return true;
    }

    Worklist<Args> list_;
    detail::StreamMemory memory_;
    unsigned blocks_ = 0;
};

namespace detail {

template <auto Kernel, unsigned Bits, class Function = decltype(Kernel)>
struct Launcher;
template <auto Kernel, unsigned Bits, class T, class... Uniform>
struct Launcher<Kernel, Bits, void (*)(Worklist<T>, Uniform...)> {
    void operator()(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream, const T& first, Uniform... uniform) const {
        const WorklistOwner<Kernel, Bits> owner(grid, block, shared_bytes, stream, first);
        Kernel<<<owner.blocks() != 0 ? dim3(owner.blocks()) : grid, block, shared_bytes, stream>>>(owner.list(), uniform...);
    }
};

}   // namespace detail

/// Launches a kernel that launches itself, flattened, in place of `kernel<<<grid, block, shared_bytes, stream>>>(...)`:
///
///     gridfuse::launch_recursion<walk_flattened>(1, 128, 0, stream, {root}, tree);
///
/// In braces stand the arguments that differ between its launches, behind them the others. As many blocks as the device can run
/// at a time do the work of the grid and of all that it launches. 1 << `Bits` blocks may be waiting or running at a time, besides those of the
/// grid. What is launched beyond that goes out by itself, and so does every launch without memory for a worklist.
template <auto Kernel, unsigned Bits = 18>
inline constexpr detail::Launcher<Kernel, Bits> launch_recursion{};

// ------------------------------------------------------------------------------------------ chains

namespace detail {

/// What the blocks of a chain share. All zero at first, and again when the last block has left.
struct ChainState {
    static constexpr unsigned kRing = 8192;   // words
    static constexpr unsigned kMostSlots = 32;
    static constexpr unsigned kReady = 8192;   // more than blocks can be resident

    alignas(kSliceAlignment) unsigned long long tickets;   // links that have been taken
    alignas(kSliceAlignment) unsigned left;                // blocks that have left
    alignas(kSliceAlignment) unsigned long long done[4];   // see RunningChain
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

/// Numbers for links: each block of the grid takes one after the other. The links before one that has a number have
/// blocks that run or have run, so that a link may wait for them whatever else is resident.
class Links {
public:
    /// The number of the block's link; the first is 0.
    __device__ __forceinline__ unsigned long long number() const { return number_; }

protected:
    __device__ __forceinline__ explicit Links(ChainMemory memory) : state_(memory.state()) {}

    /// Takes the next number, in one thread of the block.
    __device__ __forceinline__ unsigned long long take() {
        if (state_ != nullptr) return atomicAdd(&state_->tickets, 1ull);
        return blockIdx.x != 0 ? ULLONG_MAX : began_ ? number_ + 1 : 0;   // without memory one block does everything
    }

    /// The next link, if all before it go on. All threads of the block, which need nothing of the last link any more.
    template <class GoesOn>
    __device__ __forceinline__ bool advance(const GoesOn& goes_on) {
        __shared__ unsigned long long ticket;
        const unsigned thread = linear_thread();
        if (thread == 0) ticket = take();
        __syncthreads();
        const unsigned long long taken = ticket;
        bool all = taken != ULLONG_MAX;
        if (all)
            for (unsigned long long link = checked_ + thread; all && link < taken; link += block_threads()) all = goes_on(link);
        if (!__syncthreads_and(all)) return false;
        checked_ = number_ = taken;
        began_ = true;
        return true;
    }

    /// The block has no further link. The last one leaves the state as it was at first, of which so many words have been used, and so
    /// many numbers of links that are ready.
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
        for (unsigned word = linear_thread(); word < words; word += block_threads()) state_->words[word] = 0;
        for (unsigned link = linear_thread(); link < ready; link += block_threads()) state_->ready[link] = 0;
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

struct NoArguments {};

}   // namespace detail

/// A kernel of one block that launches itself again, as one grid: each launch is a link of the chain, each block runs a link
/// and then takes another one.
///
///     struct compact_args { int tile; int offset; };   // the arguments that differ between the links
///
///     __global__ void compact(const int* in, int* out, int n, int tile, int offset, gridfuse::ChainMemory memory) {
///         gridfuse::Chain<compact_args> chain(memory, {tile, offset});
///         while (chain.next())
///             compact_link(chain, in, out, n, chain.args().tile, chain.args().offset);   // calls chain.launch({...}) to go on
///     }
///
///     compact<<<gridfuse::chain_blocks<compact>(256), 256, 0, stream>>>(in, out, n, 0, 0, gridfuse::chain_for(stream));
///
/// A link begins when the one before launches it, and sees what the launching thread knew then. The rest of that one goes on
/// beside it. With chain.next(goes_on), where `goes_on(number)` says whether link `number` launches another one, a link begins
/// as soon as a block is there for it, and waits for being launched in chain.wait().
///
/// It can't hang, however few blocks are resident: a link waits only for the one before, whose number was taken
/// before, by a block that runs.
template <class Args = detail::NoArguments>
class Chain : public detail::Links {
    static_assert(std::is_trivially_copyable<Args>::value, "the arguments of a launch are copied byte by byte");

    // Each word of the arguments travels with the link's number: whoever sees that has the word, too.
    static constexpr unsigned kWords = (sizeof(Args) + 3) / 4;
    static constexpr unsigned kStride = (kWords + 15) / 16 * 16;   // slots share no cache line
    static constexpr unsigned kFit = detail::ChainState::kRing / kStride;
    static constexpr unsigned kSlots = kFit < detail::ChainState::kMostSlots ? kFit : detail::ChainState::kMostSlots;
    static constexpr unsigned kEnd = UINT_MAX;
    static_assert(kSlots > 0, "more arguments than a kernel can have");

    struct Local {
        detail::Bytes<Args> args;
        detail::Bytes<Args> launched;   // without memory
        bool end;
    };

public:
    __device__ __forceinline__ explicit Chain(ChainMemory memory, const Args& first = Args()) : Links(memory), first_(first) {}

    /// The next link for this block, when it has been launched; false when there is none. All threads of the block.
    __device__ __forceinline__ bool next() {
        if (began_ && !__syncthreads_or(launched_)) {
            end();
            return false;
        }
        if (!advance([](unsigned long long) { return true; })) return false;   // has no memory, nothing to leave
        launched_ = false;
        receive();
        if (!local().end) return true;
        leave(kSlots * kStride);
        return false;
    }

    /// The next link for this block, which has not been launched perhaps; false when there is none. All threads of the block.
    template <class GoesOn>
    __device__ __forceinline__ bool next(const GoesOn& goes_on) {
        if (began_) __syncthreads();
        if (advance(goes_on)) return true;
        if (state_ != nullptr) {
            constexpr unsigned most = detail::ChainState::kReady;
            const unsigned long long taken = detail::strong_read(state_->tickets);
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

    /// The same for a link that launches the next one by launch_at_once(). What the links before have done until they waited is seen
    /// by what comes behind: each of them has said that it is that far, so that no link has to put a fence between getting its
    /// arguments and passing others on. That fence would take as long as the rest of it (H200: 280 of 600 ns).
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

    /// The same for the first thread of the block, where no thread has touched memory that others see since wait_at_once().
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
        for (unsigned word = 0; word < kWords; ++word) detail::strong_write(slot[word], tag | words[word]);
    }

private:
    static __device__ __forceinline__ Local& local() {
        __shared__ Local local;
        return local;
    }
    __device__ __forceinline__ unsigned long long* slot_of(unsigned long long number) const {
        return state_->words + number % kSlots * kStride;
    }
    static __device__ __forceinline__ unsigned tag_of(unsigned long long number) { return static_cast<unsigned>(number % (kEnd - 1)) + 1; }

    // Says that this link has come to where it waits, and waits until all links before it have. That takes no part in the chain: a link
    // gets there without any other. The first warp of the block.
    //
    // Links that are kReady apart share a place. There are no more blocks than that, so when the later one has its number, one from the
    // earlier one on is done; with it the earlier one's waiting is, too, and the later one's number stands for both. It is exchanged, not
    // written, for who reads it to be behind the fences of both.
    __device__ __forceinline__ void get_ready() {
        constexpr unsigned long long kReady = detail::ChainState::kReady;
        const unsigned lane = detail::linear_thread();
        if (lane == 0) {
            detail::fence();   // release
            atomicExch(&state_->ready[number_ % kReady], number_ + 1);
        }
        const unsigned long long from = number_ - seen_ > kReady ? number_ - kReady : seen_;
        for (unsigned long long link = from + lane; link < number_; link += detail::warp_threads())
            while (detail::strong_read(state_->ready[link % kReady]) <= link) {}
        detail::fence();   // acquire; for the whole block at the barrier behind
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
                    seen = detail::strong_read(slot[word]);
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
        for (unsigned word = detail::linear_thread(); word < kSlots * kStride; word += detail::block_threads())
            detail::strong_write(state_->words[word], static_cast<unsigned long long>(kEnd) << 32);
        leave(kSlots * kStride);
    }

    Args first_;
    unsigned long long seen_ = 0;   // links before this one are known to have come to where they wait
    bool launched_ = false;
};

/// Operations of a RunningChain. In any order the result is the same, but for sums of floating-point numbers, whose rounding differs.
struct Sum {
    template <class T>
    __device__ __forceinline__ T operator()(T a, T b) const {
        if constexpr (std::is_floating_point<T>::value) {
            return a + b;
        } else {
            using Number = std::make_unsigned_t<T>;   // wraps around, as partial sums may where the whole doesn't
            return static_cast<T>(static_cast<Number>(a) + static_cast<Number>(b));
        }
    }
};
struct Greatest {
    template <class T>
    __device__ __forceinline__ T operator()(T a, T b) const {
        if constexpr (std::is_same<T, float>::value) return fmaxf(a, b);
        else if constexpr (std::is_same<T, double>::value) return fmax(a, b);
        else return a < b ? b : a;
    }
};
struct Least {
    template <class T>
    __device__ __forceinline__ T operator()(T a, T b) const {
        if constexpr (std::is_same<T, float>::value) return fminf(a, b);
        else if constexpr (std::is_same<T, double>::value) return fmin(a, b);
        else return b < a ? b : a;
    }
};

/// A chain in which a link gets nothing from the one before but a running value, to which each adds its own. No link waits for
/// the one before to be launched: it says what it adds, and looks back at what those before have said, until it comes to one
/// that knows its own value (Merrill and Garland: Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016).
///
///     gridfuse::RunningChain<int, gridfuse::Sum> chain(memory, offset);
///     while (chain.next([&](unsigned long long link) { return compact_goes_on(n, tile + link); }))
///         compact_link(chain, in, out, n, tile + chain.number());   // calls chain.before(total)
///
/// A link sees behind before() what all links before it did in front of before(). It can't hang, however few blocks are
/// resident: a link waits only for links before it, whose numbers were taken before, by blocks that run.
///
/// What links have said stands in a ring. A link of one quarter of it starts to look back when all links up to the quarter before the
/// last are done: so it looks at this quarter, the one before and the last link of that before, and nobody looks any more
/// at the quarter that it writes over.
///
/// Each half of a value of 64 bits has a word of its own, with the state: who sees it in both has a value that belongs together.
template <class T = unsigned, class Operation = Sum>
class RunningChain : public detail::Links {
    static_assert((sizeof(T) == 4 || sizeof(T) == 8) && std::is_trivially_copyable<T>::value,
                  "each 32 bits of a value travel with its state in a word of 64 bits");
    static constexpr unsigned kWords = sizeof(T) / 4;
    static constexpr unsigned kRing = detail::ChainState::kRing / kWords, kQuarter = kRing / 4;   // links
    enum : unsigned { kOwn = 1, kWhole = 2 };   // states: the link's own value; that of all up to it

    struct Local {
        T before;
        T running;   // without memory
    };

public:
    __device__ __forceinline__ explicit RunningChain(ChainMemory memory, T first = T()) : Links(memory), first_(first) {}

    /// The next link for this block; false when there is none. All threads of the block.
    template <class GoesOn>
    __device__ __forceinline__ bool next(const GoesOn& goes_on) {
        if (began_) __syncthreads();
        if (advance(goes_on)) return true;
        if (state_ != nullptr) {
            const unsigned long long taken = detail::strong_read(state_->tickets);
            leave((taken < kRing ? static_cast<unsigned>(taken) : kRing) * kWords);
        }
        return false;
    }

    /// The running value in front of this link, to which it adds `own` (of the first thread). All threads of the block.
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
        const unsigned long long tag = static_cast<unsigned long long>(round_of(number_) | state) << 32;
        const Parts parts = parts_of(value);
#pragma unroll
        for (unsigned word = 0; word < kWords; ++word) detail::strong_write(words[word], tag | parts.part[word]);
    }
    // What a link has said: its state, and the value that belongs to it.
    __device__ __forceinline__ unsigned look_at(unsigned long long number, Parts& parts) const {
        const unsigned long long* const words = words_of(number);
        unsigned state = 0;
#pragma unroll
        for (unsigned word = 0; word < kWords; ++word) {
            const unsigned long long said = detail::strong_read(words[word]);
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
        for (unsigned word = 0; word < kWords; ++word) parts.part[word] = __shfl_down_sync(everyone, parts.part[word], distance);
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
                while (detail::strong_read(state_->done[(quarter - 2) % 4]) < ((quarter - 2) / 4 + 1) * kQuarter) {}
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
                const unsigned limited = end - limit < lanes ? static_cast<unsigned>(end - limit) : lanes;
                Parts said;
                unsigned last;   // the lane of the last link that is needed
                bool whole;
                for (;;) {
                    const unsigned state = look_at(at, said);
                    const unsigned wholes = __ballot_sync(everyone, looks && state == kWhole);
                    const unsigned known = __ballot_sync(everyone, looks && (state == kWhole || state == kOwn));
                    whole = wholes != 0;
                    last = whole ? __ffs(wholes) - 1 : limited - 1;
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

/// Owns the memory of a chain for one launch in a stream. What chain_for returns; converts to ChainMemory.
class ChainOwner {
public:
    explicit ChainOwner(cudaStream_t stream) {
        const cudaError_t before = cudaPeekAtLastError();
        if (memory_.take(stream, sizeof(detail::ChainState), sizeof(detail::ChainState)))
            chain_ = ChainMemory(reinterpret_cast<detail::ChainState*>(memory_.memory()));
        if (before == cudaSuccess) (void)cudaGetLastError();   // the program has not failed, only one block does everything
    }
    ChainOwner(const ChainOwner&) = delete;
    ChainOwner& operator=(const ChainOwner&) = delete;

    operator ChainMemory() const { return chain_; }

private:
    ChainMemory chain_;
    detail::StreamMemory memory_;
};

/// Makes the memory for one launch of a kernel with a Chain; written as the last argument of that launch. It is taken and given
/// back in the order of the stream. Without memory the chain's links run one after the other.
inline ChainOwner chain_for(cudaStream_t stream = 0) { return ChainOwner(stream); }

/// How many blocks of a kernel with a Chain to launch: as many as can be resident, but no more than `most` per multiprocessor. Right
/// with any number.
template <auto Kernel>
inline unsigned chain_blocks(dim3 block, std::size_t shared_bytes = 0, unsigned most = UINT_MAX) {
    int device = 0, processors = 0, resident = 0;
    const cudaError_t before = cudaPeekAtLastError();
    const bool known = cudaGetDevice(&device) == cudaSuccess &&
                       cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) == cudaSuccess &&
                       cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, Kernel, static_cast<int>(block.x * block.y * block.z),
                                                                     shared_bytes) == cudaSuccess;
    if (before == cudaSuccess) (void)cudaGetLastError();   // the launch will say what is wrong
    if (!known || processors < 1 || resident < 1) return 1;
    const unsigned each = static_cast<unsigned>(resident) < most ? static_cast<unsigned>(resident) : most;
    return each * static_cast<unsigned>(processors);
}

// ------------------------------------------------------------------------------------------ loops

/// A kernel of one block that ends by launching itself into cudaStreamTailLaunch, as a loop in that block:
///
///     struct relax_args { int round; };   // the arguments that differ between the iterations
///
///     __global__ void relax(float* x, int n, int round) {
///         gridfuse::BlockLoop<relax_args> relaxes({round});
///         while (relaxes.next())
///             relax_body(relaxes, x, n, relaxes.args().round);   // calls relaxes.launch({round + 1}) to go on
///     }
///
/// An iteration begins when all threads of the block are done with the one before, and sees what they have written.
template <class Args = detail::NoArguments>
class BlockLoop {
    static_assert(std::is_trivially_copyable<Args>::value, "the arguments of a launch are copied byte by byte");

public:
    __device__ __forceinline__ explicit BlockLoop(const Args& first = Args()) : args_(first) {}
    BlockLoop(const BlockLoop&) = delete;
    BlockLoop& operator=(const BlockLoop&) = delete;

    /// Whether there is another iteration. All threads of the block.
    __device__ __forceinline__ bool next() {
        if (!began_) return began_ = true;
        if (!__syncthreads_or(launched_)) return false;
        args_ = handed_over()[odd_];
        launched_ = false;
        odd_ = !odd_;
        return true;
    }

    /// The arguments of the iteration.
    __device__ __forceinline__ Args args() const { return args_.value(); }

    /// Launches the next iteration. One thread of the block.
    __device__ __forceinline__ void launch(const Args& args = Args()) {
        handed_over()[odd_] = detail::Bytes<Args>(args);
        launched_ = true;
    }

private:
    // Two of them: a thread may read the one when another thread writes the other already, and is behind a barrier before the
    // one is written again.
    static __device__ __forceinline__ detail::Bytes<Args>* handed_over() {
        __shared__ detail::Bytes<Args> both[2];
        return both;
    }

    detail::Bytes<Args> args_;
    bool began_ = false;
    bool launched_ = false;
    bool odd_ = false;
};

template <auto Kernel>
class Loop;

template <class Args>
class Iterations;

namespace detail {

/// What the type of a looping kernel says.
template <class Function>
struct Looping {
    static_assert(sizeof(Function) == 0, "a looping kernel is a void (gridfuse::Iterations<Args>, ...)");
};
template <class T, class... Uniform>
struct Looping<void (*)(Iterations<T>, Uniform...)> {
    using Args = T;
    using Common = Pack<Uniform...>;
    static constexpr unsigned kUniform = sizeof...(Uniform);
};

/// How many tickets an iteration has for each block of the loop, at most, and more than half of that where it has so many blocks. More
/// of them spread blocks that take unequal time, fewer cost less.
constexpr unsigned kTicketsEach = 8;

/// Places where blocks of a loop wait: where they all read one word, they are in each other's way.
constexpr unsigned kWaitingPlaces = 8;

/// The longest pause between two looks, in nanoseconds.
constexpr unsigned kLongestPause = 128;

/// Where the blocks of a loop meet, each word where it disturbs no other. All zero at first. Numbers of tickets begin anew after the
/// largest one; those that are compared are never as far apart as that.
struct LoopCounters {
    /// What the blocks that wait look at: twice the tickets of the iterations that have begun, without those of the first one, and 1
    /// more where the last that has begun is an odd one; kOver when there are no more. It only grows: a block that has begun an
    /// iteration may still be at writing so when the next one has begun.
    struct alignas(kSliceAlignment) Place {
        static constexpr unsigned long long kOver = ULLONG_MAX;
        unsigned long long open;
    };

    alignas(kSliceAlignment) unsigned taken;   // tickets: each block of the loop takes one after the other
    alignas(kSliceAlignment) unsigned done;    // tickets whose blocks have been run
    Place places[kWaitingPlaces];              // alike
};

/// An iteration.
template <class Args>
struct Round {
    unsigned grid_x;
    unsigned grid_yz;           // y - 1 in the lower half, z - 1 in the upper
    unsigned tickets;
    unsigned shift;             // a ticket stands for 2^shift neighbouring blocks, the last one for what is left
    Bytes<Args> args;

    __host__ __device__ __forceinline__ dim3 grid() const { return dim3(grid_x, (grid_yz & 65535) + 1, (grid_yz >> 16) + 1); }
    __host__ __device__ __forceinline__ unsigned long long blocks() const {
        const dim3 all = grid();
        return 1ull * all.x * all.y * all.z;
    }

    /// For a grid that so many blocks of a loop run.
    __host__ __device__ __forceinline__ void set_grid(dim3 all, unsigned loop_blocks) {
        grid_x = all.x;
        grid_yz = (all.y - 1) | (all.z - 1) << 16;
        const unsigned long long most = 1ull * kTicketsEach * loop_blocks, last = blocks() - 1;
        for (shift = 0; last >> shift >= most;) ++shift;
        tickets = static_cast<unsigned>(last >> shift) + 1;
    }
};

}   // namespace detail

/// The iterations of a kernel that launches itself into cudaStreamTailLaunch, with arguments of type `Args`: the first parameter of
/// a looping kernel, made by launch_loop. A view. Without memory it stands for one grid, whose launch goes out by itself.
template <class Args>
class Iterations {
    static_assert(std::is_trivially_copyable<Args>::value, "the arguments of a launch are copied byte by byte");

public:
    Iterations() = default;

private:
    template <auto Kernel>
    friend class Loop;
    template <auto Kernel>
    friend class LoopOwner;

    struct alignas(detail::kSliceAlignment) Memory {
        struct alignas(detail::kSliceAlignment) Next {
            unsigned launched;   // its tickets, or 0 when nobody has launched it
            detail::Round<Args> round;
        };

        detail::LoopCounters counters;
        Next rounds[2];   // the even and the odd ones, the first one excepted: an iteration launches while its own is read
    };

    __host__ __device__ __forceinline__ explicit Iterations(const detail::Bytes<Args>& first) : first_{} { first_.args = first; }

    Memory* memory_ = nullptr;
    detail::Round<Args> first_;
};

/// Runs a kernel that ends by launching itself into cudaStreamTailLaunch as one grid that stays: its blocks run the blocks of one
/// iteration after the other. Declared at the top of a looping kernel, whose only further statement is for_each_block:
///
///     __global__ void relax_loop(gridfuse::Iterations<relax_args> iterations, float* x, int n) {
///         gridfuse::Loop<relax_loop> relaxes(iterations, x, n);
///         relaxes.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const relax_args& args) {
///             relax_body(relaxes, blockIdx, gridDim, blockDim, x, n, args.round);   // calls relaxes.launch(gridDim, blockDim, {round + 1})
///         });
///     }
///
/// An iteration begins when all blocks of the one before are done, and sees what they have written. A block waits for tickets that
/// were taken before its own, so for blocks that run: it can't hang, however few blocks are resident.
template <auto Kernel>
class Loop {
    using Args = typename detail::Looping<decltype(Kernel)>::Args;
    using Common = typename detail::Looping<decltype(Kernel)>::Common;
    using Rounds = Iterations<Args>;
    using Memory = typename Rounds::Memory;
    using Round = detail::Round<Args>;
    using Place = detail::LoopCounters::Place;

public:
    /// `iterations`: the kernel's first argument, or `{}`, with which a launch goes out by itself. `uniform`: its further arguments.
    template <class... Uniform>
    __device__ __forceinline__ explicit Loop(const Rounds& iterations, const Uniform&... uniform)
        : iterations_(iterations), uniform_(uniform...) {
        static_assert(sizeof...(Uniform) == detail::Looping<decltype(Kernel)>::kUniform, "an argument for each parameter behind the iterations");
    }
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    /// Launches the next iteration. One thread of the grid. With blocks of another size, or more shared memory than the first
    /// iteration has, it is launched by itself, and so are all those behind it.
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, const Args& args) { launch(grid, block, 0, args); }
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, std::size_t shared_bytes, const Args& args) {
        if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
        const detail::Bytes<Args> bytes(args);
        if (!hand_over(grid, block, shared_bytes, bytes)) launch_alone(Common(uniform_), grid, block, shared_bytes, bytes);
    }

    /// Runs `body(blockIdx, gridDim, blockDim, args)` for every block of every iteration. All threads call it, once. All threads of
    /// the block, or none, must come to each barrier in `body`.
    template <class Body>
    __device__ __forceinline__ void for_each_block(Body&& body) const {
        if (iterations_.memory_ == nullptr) {
            body(blockIdx, gridDim, blockDim, iterations_.first_.args.value());
            return;
        }
        Current& current = shared();
        const bool first = detail::linear_thread() == 0;
        unsigned ticket = 0;   // known to the first thread
        if (first) {
            ticket = take();
            begin(current, iterations_.first_, 0, 0);
            current.finished = 0;
        }
        for (;;) {
            if (first) use(current, ticket);
            __syncthreads();
            if (current.over) return;
            bool last = false;
#pragma unroll 1
            for (unsigned step = 0; !last; step ^= 1) {
                const Step& at = current.steps[step];
                uint3 index;
                index.x = at.x;
                index.y = at.y;
                index.z = at.z;
                last = at.last;
                if (first) {
                    if (!last) follow(current, at, current.steps[step ^ 1]);
                    else if (current.early) ticket = take();   // how long that takes is hidden by the block
                }
                body(index, current.round.grid(), blockDim, current.round.args.value());
                __syncthreads();   // shared memory is free for the next block
            }
            if (!first) continue;
            ++current.finished;
            const bool early = current.early;
            if (early && before(ticket, current.end)) continue;
            detail::fence();   // release: what the threads of the block have written, which have met at a barrier
            if (!early) ticket = take();   // in front, and not waited for: others may be done soon
            finish(current);
        }
    }

private:
    // A block of an iteration.
    struct Step {
        unsigned x, y, z;
        bool last;   // of the ticket
    };

    // What the block of the loop is at. In shared memory, as registers are what limits how many blocks are resident. Written by the
    // first thread: the steps in turn, one while all read the other.
    struct Current {
        Step steps[2];
        Round round;
        unsigned long long left;     // blocks of the ticket, with the one that runs
        unsigned long long opened;   // tickets of the iterations up to this one, without those of the first one
        unsigned end;                // the ticket behind those of the iteration
        unsigned number;             // 0 the first iteration, 1 an odd one, 2 another even one
        unsigned finished;           // tickets that are done and not counted as such yet
        bool over;                   // whether there are no more iterations
        bool early;                  // whether to take the next ticket before this one is done
    };
    static __device__ __forceinline__ Current& shared() {
        __shared__ Current current;
        return current;
    }

    static __device__ __forceinline__ bool before(unsigned ticket, unsigned other) { return static_cast<int>(ticket - other) < 0; }

    __device__ __forceinline__ unsigned take() const { return atomicAdd(&iterations_.memory_->counters.taken, 1u); }

    // The iteration is the current one.
    __device__ __forceinline__ void begin(Current& current, const Round& round, unsigned number, unsigned long long opened) const {
        current.round = round;
        current.opened = opened;
        current.end = iterations_.first_.tickets + static_cast<unsigned>(opened);
        current.number = number;
    }

    // The ticket is the current one, when its iteration has begun.
    __device__ __forceinline__ void use(Current& current, unsigned ticket) const {
        current.over = !before(ticket, current.end) && !wait(current, ticket);
        if (current.over) return;
        const Round& round = current.round;
        const unsigned to_come = current.end - ticket;
        const unsigned long long block = static_cast<unsigned long long>(round.tickets - to_come) << round.shift;
        const unsigned long long each = 1ull << round.shift, behind = round.blocks() - block;
        current.left = behind < each ? behind : each;
        // While there is a ticket for each block of the loop, so that no block takes what another one could run at once.
        current.early = to_come > gridDim.x;
        Step& step = current.steps[0];
        step.last = current.left == 1;
        step.x = static_cast<unsigned>(block);
        step.y = step.z = 0;
        if (block < round.grid_x) return;
        const dim3 grid = round.grid();
        const unsigned long long row = block / grid.x;
        step.x = static_cast<unsigned>(block - row * grid.x);
        step.y = static_cast<unsigned>(row % grid.y);
        step.z = static_cast<unsigned>(row / grid.y);
    }

    static __device__ __forceinline__ void follow(Current& current, const Step& step, Step& next) {
        const dim3 grid = current.round.grid();
        const bool new_row = step.x + 1 == grid.x, new_layer = new_row && step.y + 1 == grid.y;
        next.x = new_row ? 0 : step.x + 1;
        next.y = new_layer ? 0 : step.y + new_row;
        next.z = step.z + new_layer;
        next.last = --current.left == 1;
    }

    // Waits until the ticket's iteration begins, which is not the first one; false if there is none.
    __device__ __forceinline__ bool wait(Current& current, unsigned ticket) const {
        const unsigned long long& place = iterations_.memory_->counters.places[blockIdx.x % detail::kWaitingPlaces].open;
        const unsigned beyond_first = ticket - iterations_.first_.tickets;
        unsigned long long open = detail::strong_read(place);
        for (unsigned pause = 32; open == Place::kOver || !before(beyond_first, static_cast<unsigned>(open >> 1));) {
            if (open == Place::kOver) return false;
            __nanosleep(pause);
            if (pause < detail::kLongestPause) pause *= 2;
            open = detail::strong_read(place);
        }
        detail::fence();   // acquire: what all blocks of the iterations before have written
        const unsigned odd = open & 1;
        begin(current, iterations_.memory_->rounds[odd].round, odd != 0 ? 1 : 2, open >> 1);
        return true;
    }

    // Counts what the block has done. The block that does the last ticket begins the next iteration.
    __device__ __forceinline__ void finish(Current& current) const {
        detail::LoopCounters& counters = iterations_.memory_->counters;
        const unsigned odd = (current.number + 1) & 1, finished = current.finished;
        current.finished = 0;
        // A look ahead, while the counter is on its way. What there is says enough; where there is nothing yet, it may be too early.
        const unsigned& launched = iterations_.memory_->rounds[odd].launched;
        unsigned more = detail::strong_read(launched);
        if (atomicAdd(&counters.done, finished) + finished != current.end) return;
        detail::fence();   // acquire: what the other blocks have written; release: for those that wait
        if (more == 0) more = detail::strong_read(launched);
        const unsigned long long open = more == 0 ? Place::kOver : (current.opened + more) * 2 + odd;
        for (Place& place : counters.places) atomicMax(&place.open, open);
    }

    __device__ __forceinline__ bool hand_over(dim3 grid, dim3 block, std::size_t shared_bytes, const detail::Bytes<Args>& args) const {
        Memory* const memory = iterations_.memory_;
        if (memory == nullptr) return false;
        const bool alike = block.x == blockDim.x && block.y == blockDim.y && block.z == blockDim.z;
        if (!alike || !detail::valid_grid(grid) || shared_bytes > detail::dynamic_shared_bytes()) return false;
        const unsigned odd = (shared().number + 1) & 1;
        Round round;
        round.set_grid(grid, gridDim.x);
        round.args = args;
        // A second launch, which there shouldn't be, is done when the grid is, as it would have been.
        if (atomicCAS(&memory->rounds[odd].launched, 0u, round.tickets) != 0) return false;
        memory->rounds[odd].round = round;
        // The iteration that runs needs its own no more, and the one behind the next will launch there.
        detail::strong_write(memory->rounds[odd ^ 1].launched, 0u);
        return true;
    }

    // A function, so that the kernel has no more registers than it takes to call it.
    static __device__ __noinline__ void launch_alone(const Common& uniform, dim3 grid, dim3 block, std::size_t shared_bytes,
                                                     const detail::Bytes<Args>& args) {
        atomicAdd(&detail::direct_launches, 1ull);
        uniform.apply([&](const auto&... values) {
            Kernel<<<grid, block, shared_bytes, cudaStreamTailLaunch>>>(Rounds(args), values...);
        });
    }

    Rounds iterations_;
    Common uniform_;
};

/// Owns the memory of a loop for one launch in a stream.
template <auto Kernel>
class LoopOwner {
    using Args = typename detail::Looping<decltype(Kernel)>::Args;
    using Memory = typename Iterations<Args>::Memory;

public:
    LoopOwner(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream, const Args& first, bool grows)
        : iterations_(detail::Bytes<Args>(first)) {
        if (!detail::valid_grid(grid) || !detail::valid_block(block)) return;
        const cudaError_t before = cudaPeekAtLastError();
        if (!take(grid, block, shared_bytes, stream, grows) && before == cudaSuccess) (void)cudaGetLastError();
    }
    LoopOwner(const LoopOwner&) = delete;
    LoopOwner& operator=(const LoopOwner&) = delete;

    const Iterations<Args>& iterations() const { return iterations_; }
    unsigned blocks() const { return blocks_; }

private:
    bool take(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream, bool grows) {
        int device = 0, multiprocessors = 0, resident = 0;
        if (cudaGetDevice(&device) != cudaSuccess ||
            cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess ||
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, Kernel, static_cast<int>(block.x * block.y * block.z),
                                                          shared_bytes) != cudaSuccess ||
            resident * multiprocessors <= 0)
            return false;
        if (!memory_.take(stream, sizeof(Memory), sizeof(Memory))) return false;
        memory_.spoil();
        iterations_.memory_ = reinterpret_cast<Memory*>(memory_.memory());
        blocks_ = static_cast<unsigned>(resident * multiprocessors);
        const unsigned long long wanted = 1ull * grid.x * grid.y * grid.z;
        if (!grows && wanted < blocks_) blocks_ = static_cast<unsigned>(wanted);
        iterations_.first_.set_grid(grid, blocks_);
        return true;
    }

    Iterations<Args> iterations_;
    detail::StreamMemory memory_;
    unsigned blocks_ = 0;
};

namespace detail {

template <auto Kernel, bool Grows, class Function = decltype(Kernel)>
struct LoopLauncher;
template <auto Kernel, bool Grows, class T, class... Uniform>
struct LoopLauncher<Kernel, Grows, void (*)(Iterations<T>, Uniform...)> {
    void operator()(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream, const T& first, Uniform... uniform) const {
        const LoopOwner<Kernel> owner(grid, block, shared_bytes, stream, first, Grows);
        Kernel<<<owner.blocks() != 0 ? dim3(owner.blocks()) : grid, block, shared_bytes, stream>>>(owner.iterations(), uniform...);
    }
};

}   // namespace detail

/// Launches a kernel with a Loop, in place of `kernel<<<grid, block, shared_bytes, stream>>>(...)`:
///
///     gridfuse::launch_loop<relax_loop>(blocks, 256, 0, stream, {0}, x, n);
///
/// In braces stand the arguments that differ between the iterations, behind them the others. As many blocks as the device can run at a
/// time, and no more than the grid has, run all iterations. Without memory each iteration is launched by the one before.
template <auto Kernel>
inline constexpr detail::LoopLauncher<Kernel, false> launch_loop{};

/// The same where the grids of later iterations may have more blocks than the first one.
template <auto Kernel>
inline constexpr detail::LoopLauncher<Kernel, true> launch_growing_loop{};

// -------------------------------------------------------------------------------- behind the parent

/// For followed_by: how often a thread launches isn't known. There is room for some launches, and what finds none runs in the thread that
/// would have launched it.
constexpr unsigned kNotKnown = 0;

namespace detail {

// That room: so many launches for each thread of the parent, and so many in all, whichever is more.
constexpr unsigned kRoomEach = 8;
constexpr unsigned long long kRoomLeast = 1u << 16;

/// A launch has found no room behind the parent.
__device__ __forceinline__ void count_full(bool is_first) {
    atomicAdd(&direct_launches, 1ull);
    if (is_first) say_full();
}

/// What the launches of a parent grid have come to: as State::cursor.
struct alignas(kStateStride) StreamState {
    unsigned long long cursor;
};

/// Whether the arguments of a launch say how many of its threads do something.
template <class Args, class = void>
inline constexpr bool kKnowsThreads = false;
template <class Args>
inline constexpr bool kKnowsThreads<Args, std::void_t<decltype(std::declval<const Args&>().threads())>> = true;

/// One launch as written down. All of them have the same block.
template <class Args>
struct StreamRecord {
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

}   // namespace detail

/// Memory in which the threads of a parent kernel write down launches that a grid behind it in the stream runs: a kernel parameter,
/// made by followed_by. It is a view, copied freely.
class StreamArena {
public:
    StreamArena() = default;

private:
    template <class Args, unsigned X, unsigned Y, unsigned Z>
    friend class StreamBatch;
    template <class Granularity, auto Kernel, int Site>
    friend class Aggregator;
    template <auto Kernel, unsigned Launches, class Function>
    friend class Follower;

    __device__ __forceinline__ detail::StreamState& state(unsigned turn) const {
        return reinterpret_cast<detail::StreamState*>(memory_)[turn];
    }
    template <class Args>
    __device__ __forceinline__ detail::StreamRecord<Args>* records() const {
        return reinterpret_cast<detail::StreamRecord<Args>*>(memory_ + kStates);
    }
    // For each record, how many blocks (or warps, see for_each_warp) there are before its own.
    template <class Args>
    __device__ __forceinline__ unsigned* first() const {
        return reinterpret_cast<unsigned*>(records<Args>() + capacity_);
    }

    // Two states, one for this launch of the parent, the other for the next one with the same memory.
    static constexpr std::size_t kStates = 2 * sizeof(detail::StreamState);
    static_assert(kStates % detail::kSliceAlignment == 0, "the records are aligned");

    unsigned char* memory_ = nullptr;
    unsigned capacity_ = 0;   // launches; first() has one more place
    unsigned turn_ = 0;       // which state is this launch's
};

/// What an aggregated child kernel runs that the host launches behind the parent: launches with arguments of type `Args` and blocks
/// of X by Y by Z threads. The first parameter of such a kernel.
template <class Args, unsigned X, unsigned Y = 1, unsigned Z = 1>
class StreamBatch {
    static_assert(std::is_trivially_copyable<Args>::value, "the arguments of a launch are copied byte by byte");
    static_assert(alignof(Args) <= detail::kSliceAlignment, "over-aligned launch arguments");
    static_assert(detail::valid_block(dim3(X, Y, Z)), "no block can have this size");

public:
    /// Runs the child's code, for one block of a child grid after the other. Called once, by every thread of the kernel:
    /// `body(blockIdx, gridDim, blockDim, args)` gets what the built-in variables would have been in a launch of its own, and that
    /// launch's arguments; `threadIdx` is the built-in. Nothing keeps the threads of this block together between two blocks of
    /// children: a body that uses shared memory ends with a barrier.
    template <class Body>
    __device__ __forceinline__ void for_each_block(Body&& body) const {
        static_assert(!detail::kKnowsThreads<Args>, "for_each_warp runs a child of which it is known how many threads do something");
        // Not neighbouring ones: these belong to the same launch, mostly, and one whose blocks take long would keep the others waiting.
        for_each_part(blockIdx.x, gridDim.x, [&](const detail::StreamRecord<Args>& record, unsigned block) {
            const detail::Bytes<Args> args = record.args;
            body(record.block(block), record.grid(), dim3(X, Y, Z), args.value());
        });
    }

    /// The same, for one warp of a child grid after the other, and only for those that have something to do: `Args` has a member function
    /// `threads()`, which says that in a grid with these arguments no thread does anything but the first so many.
    /// `body(threadIdx, blockIdx, gridDim, blockDim, args)` runs as one of the threads of its warp, and meets no others of its block.
    template <class Body>
    __device__ __forceinline__ void for_each_warp(Body&& body) const {
        static_assert(detail::kKnowsThreads<Args>, "the struct of the arguments has a member function threads()");
        static_assert(X % 32 == 0 && Y == 1 && Z == 1, "a block of whole warps, of one dimension");
        constexpr unsigned warps = X / 32;
        const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        // A few warps go to as many multiprocessors.
        for_each_part(blockIdx.x + warp * gridDim.x, gridDim.x * warps, [&](const detail::StreamRecord<Args>& record, unsigned part) {
            const detail::Bytes<Args> args = record.args;
            const uint3 thread = {part % warps * 32 + lane, 0, 0};
            body(thread, record.block(part / warps), record.grid(), dim3(X), args.value());
            __syncwarp();   // so that the threads begin the next one together
        });
    }

private:
    template <auto Kernel, unsigned Launches, class Function>
    friend class Follower;

    explicit StreamBatch(const StreamArena& arena) : arena_(arena) {}

    // `body(record, number)` for each `step`th part of all child grids together, from `part` on: the launch that it belongs to, and its
    // number there. The parts are blocks, or warps.
    template <class Body>
    __device__ __forceinline__ void for_each_part(unsigned part, unsigned step, Body&& body) const {
        const detail::StreamRecord<Args>* const records = arena_.records<Args>();
        const unsigned* const first = arena_.first<Args>();
        const unsigned long long cursor = arena_.state(arena_.turn_).cursor;
        // The launch before this one is long done with its state, the next one hasn't begun.
        if (blockIdx.x == 0 && detail::linear_thread() == 0) arena_.state(arena_.turn_ ^ 1).cursor = 0;
        unsigned count = detail::launches_in(cursor), parts = static_cast<unsigned>(detail::blocks_in(cursor));
        if (count > arena_.capacity_) {   // the others have run already
            count = arena_.capacity_;
            parts = first[count];
        }
        for (; part < parts; part += step) {
            // If there are as many parts as launches, then each has one.
            const detail::Place place = count == parts ? detail::Place{part, part} : detail::find(first, count, part);
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
    static_assert(sizeof(Function) == 0, "what runs behind the parent is a void (gridfuse::StreamBatch<Args, X>, ...)");
};
template <class T, unsigned BlockX, unsigned BlockY, unsigned BlockZ, class... Uniform>
struct StreamChild<void (*)(StreamBatch<T, BlockX, BlockY, BlockZ>, Uniform...)> {
    using Args = T;
    static constexpr unsigned kX = BlockX, kY = BlockY, kZ = BlockZ;
};

}   // namespace detail

/// Collects launches for the grid behind the parent. Declared, and used, as the others; nothing happens when a thread leaves, and a
/// kernel that launches nothing pays nothing.
template <auto Kernel, int Site>
class Aggregator<PerGridInStream, Kernel, Site> {
    using Child = detail::StreamChild<decltype(Kernel)>;

public:
    /// The arguments that differ between the launches.
    using Args = typename Child::Args;

    __device__ __forceinline__ explicit Aggregator(const StreamArena& arena) : arena_(arena) {}
    Aggregator(const Aggregator&) = delete;
    Aggregator& operator=(const Aggregator&) = delete;

    /// In place of `child<<<grid, block>>>(args...)`. The kernel is stopped (cudaErrorLaunchFailure) by what can't be run: another
    /// block than that of the StreamBatch, more launches than followed_by was told, more than 2^32 blocks (or warps) in all.
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, const Args& args) {
        write_down<false>(grid, block, args, [](dim3, dim3, const Args&) { __trap(); });
    }

    /// The same where nobody knows how often a thread launches (kNotKnown in followed_by): the calling thread runs what finds no room,
    /// by `serial(grid, block, args)`, and counts it in direct_launches.
    template <class Serial>
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, const Args& args, Serial&& serial) {
        write_down<true>(grid, block, args, static_cast<Serial&&>(serial));
    }

private:
    template <bool MayBeFull, class Full>
    __device__ __forceinline__ void write_down(dim3 grid, dim3 block, const Args& args, Full&& full) {
        // CUDA refuses a grid of no blocks and one that is too large.
        if (!detail::valid_grid(grid)) return;
        const unsigned long long parts = this->parts(grid, args);
        if (block.x != Child::kX || block.y != Child::kY || block.z != Child::kZ || parts > UINT_MAX) __trap();
        if (detail::kKnowsThreads<Args> && parts == 0) return;
        const detail::Bytes<Args> bytes(args);
        const unsigned long long at = reserve<MayBeFull>(static_cast<unsigned>(parts));
        const unsigned slot = detail::launches_in(at);
        // The first one that finds no room says what those in front of it come to.
        if (slot < arena_.capacity_ || (MayBeFull && slot == arena_.capacity_ && arena_.memory_ != nullptr))
            arena_.template first<Args>()[slot] = static_cast<unsigned>(detail::blocks_in(at));
        if (slot >= arena_.capacity_) {
            if constexpr (MayBeFull) detail::count_full(slot == arena_.capacity_);
            full(grid, block, args);
            return;
        }
        detail::StreamRecord<Args> record;
        record.grid_x = grid.x;
        record.grid_yz = (grid.y - 1) | (grid.z - 1) << 16;
        record.args = bytes;
        arena_.template records<Args>()[slot] = record;
    }

    // How many blocks, or warps, of a grid there are to run.
    __device__ __forceinline__ static unsigned long long parts(dim3 grid, const Args& args) {
        const unsigned long long blocks = 1ull * grid.x * grid.y * grid.z;
        if constexpr (detail::kKnowsThreads<Args>) {
            const auto threads = args.threads();
            // Of more threads than that some may have a number that is a negative int.
            const bool is_known = blocks == grid.x && blocks <= INT_MAX / Child::kX;
            const unsigned long long wanted = threads > 0 ? (static_cast<unsigned long long>(threads) + 31) / 32 : 0;
            const unsigned long long all = blocks * (Child::kX / 32);
            return is_known && wanted < all ? wanted : all;
        } else {
            (void)args;
            return blocks;
        }
    }

    // Slot and number of blocks before it, as in the cursor. The threads of a warp that happen to be here together move the cursor once.
    template <bool MayBeFull>
    __device__ __forceinline__ unsigned long long reserve(unsigned blocks) const {
        const unsigned together = __activemask();
        if (__any_sync(together, blocks > detail::kMaxCollected)) return advance<MayBeFull>(1, blocks);
        const unsigned below = together & detail::lanes_below();
        const unsigned rank = __popc(below);
        unsigned before = 0, sum = 0;
        // A vote for each bit: most grids are small, and any set of threads may be together here.
        for (unsigned bit = 0; __any_sync(together, blocks >> bit != 0); ++bit) {
            const unsigned holders = __ballot_sync(together, blocks >> bit & 1);
            sum += __popc(holders) << bit;
            before += __popc(holders & below) << bit;
        }
        unsigned long long at = 0;
        if (rank == 0) at = advance<MayBeFull>(__popc(together), sum);
        at = __shfl_sync(together, at, __ffs(together) - 1);
        return at + (static_cast<unsigned long long>(rank) << detail::kBlockBits) + before;
    }

    template <bool MayBeFull>
    __device__ __forceinline__ unsigned long long advance(unsigned launches, unsigned blocks) const {
        if constexpr (MayBeFull) {
            // However often they come, the threads that are there at a time are all that count any further.
            if (arena_.memory_ == nullptr ||
                detail::launches_in(detail::strong_read(arena_.state(arena_.turn_).cursor)) > arena_.capacity_)
                return (arena_.capacity_ + 1ull) << detail::kBlockBits;
        } else {
            if (arena_.memory_ == nullptr) __trap();
        }
        const unsigned long long step = static_cast<unsigned long long>(launches) << detail::kBlockBits | blocks;
        const unsigned long long before = atomicAdd(&arena_.state(arena_.turn_).cursor, step);
        if (detail::blocks_in(before) + blocks > UINT_MAX) __trap();
        return before;
    }

    StreamArena arena_;
};

/// Owns the memory of a StreamArena for one launch of a parent in a stream, and launches the grid behind it: when destroyed. See
/// followed_by.
template <auto Kernel, unsigned Launches, class Function = decltype(Kernel)>
class Follower;
template <auto Kernel, unsigned Launches, class Args, unsigned X, unsigned Y, unsigned Z, class... Uniform>
class Follower<Kernel, Launches, void (*)(StreamBatch<Args, X, Y, Z>, Uniform...)> {
    using Batch = StreamBatch<Args, X, Y, Z>;

public:
    /// `grid`, `block` and `stream` are those of the parent's launch, `uniform` the arguments that all launches share.
    Follower(dim3 grid, dim3 block, cudaStream_t stream, Uniform... uniform)
        : memory_(detail::KeptMemory::of_followers()), stream_(stream), uniform_(uniform...) {
        if (!detail::valid_grid(grid) || !detail::valid_block(block)) return;   // CUDA refuses the parent
        constexpr unsigned long long most = detail::kMaxRecords;
        const unsigned long long blocks = 1ull * grid.x * grid.y * grid.z;   // less than 2^63
        const unsigned each = block.x * block.y * block.z * (Launches != kNotKnown ? Launches : detail::kRoomEach);
        unsigned long long launches = blocks < most / each ? blocks * each : most;
        if (Launches == kNotKnown && launches < detail::kRoomLeast) launches = detail::kRoomLeast;
        const cudaError_t before = cudaPeekAtLastError();
        // With less memory than all of them could need it depends on how many there are: too many stop the parent.
        for (; launches != 0; launches /= 2) {
            const std::size_t each_launch = sizeof(detail::StreamRecord<Args>) + sizeof(unsigned);
            const std::size_t records = static_cast<std::size_t>(launches) * each_launch + sizeof(unsigned);
            if (!memory_.take(stream, StreamArena::kStates, StreamArena::kStates + records)) continue;
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
        const auto launch = [&](auto&... uniform) {
            void* arguments[] = {&batch, std::addressof(uniform)...};
            return cudaLaunchKernel(Kernel, dim3(resident_blocks()), dim3(X, Y, Z), arguments, 0, stream_);
        };
        if (std::apply(launch, uniform_) != cudaSuccess) memory_.spoil();   // the error stays for the program to see
    }
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;

    operator StreamArena() const { return arena_; }

private:
    // As many as can be resident, whatever there will be to do: they loop.
    unsigned resident_blocks() const {
        constexpr int devices = 64;
        static std::atomic<unsigned> known[devices];
        const int device = memory_.device();
        const unsigned there = device < devices ? known[device].load(std::memory_order_relaxed) : 0;
        if (there != 0) return there;
        const unsigned blocks = chain_blocks<Kernel>(dim3(X, Y, Z));
        if (device < devices) known[device].store(blocks, std::memory_order_relaxed);
        return blocks;
    }

    StreamArena arena_;
    detail::StreamMemory memory_;   // given back behind the launch
    cudaStream_t stream_;
    std::tuple<Uniform...> uniform_;
};

/// Makes the arena for one launch of a parent kernel whose Aggregators are PerGridInStream; written as the last argument of that
/// launch:
///
///     parent<<<grid, block, 0, stream>>>(..., gridfuse::followed_by<child_aggregated>(grid, block, stream, uniform...));
///
/// At the end of the statement the host launches `Kernel` into the stream, behind the parent: with the arguments that all launches
/// share, and as many blocks as can be resident. They run what the parent has collected until then. `grid`, `block` and `stream` are
/// those of the parent's launch; each of its threads has at most `Launches` launches, for which there is memory: 12 bytes and the
/// arguments for each. Where that is kNotKnown, the parent says what else to do with a launch. Neither side waits for the other, and a
/// graph that the stream is being captured into gets both kernels. No other thread of the host may launch into the stream meanwhile what
/// must not come between parent and children.
template <auto Kernel, unsigned Launches = 1>
using followed_by = Follower<Kernel, Launches>;

// ------------------------------------------------------------------------ atomic operations together

namespace detail {

/// What an atomic operation does.
enum class Operation { Add, Sub, Min, Max, And, Or, Xor };

/// CUDA's.
template <Operation Which, class T, class V>
__device__ __forceinline__ void operate(T* place, V value) {
    if constexpr (Which == Operation::Add) atomicAdd(place, value);
    else if constexpr (Which == Operation::Sub) atomicSub(place, value);
    else if constexpr (Which == Operation::Min) atomicMin(place, value);
    else if constexpr (Which == Operation::Max) atomicMax(place, value);
    else if constexpr (Which == Operation::And) atomicAnd(place, value);
    else if constexpr (Which == Operation::Or) atomicOr(place, value);
    else atomicXor(place, value);
}

/// The values of the threads in `together`, combined. Every one of them is here.
template <Operation Which>
__device__ __forceinline__ unsigned combined(unsigned together, unsigned value) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    if constexpr (Which == Operation::Add || Which == Operation::Sub) return __reduce_add_sync(together, value);
    if constexpr (Which == Operation::Min) return __reduce_min_sync(together, value);
    if constexpr (Which == Operation::Max) return __reduce_max_sync(together, value);
    if constexpr (Which == Operation::And) return __reduce_and_sync(together, value);
    if constexpr (Which == Operation::Or) return __reduce_or_sync(together, value);
    return __reduce_xor_sync(together, value);
#else
    (void)together;   // not called
    return value;
#endif
}
template <Operation Which>
__device__ __forceinline__ unsigned long long combined(unsigned together, unsigned long long value) {
    const unsigned low = static_cast<unsigned>(value), high = static_cast<unsigned>(value >> 32);
    if constexpr (Which == Operation::Add || Which == Operation::Sub) {
        // Parts of 27 bits: the sum of 32 of them has 32.
        constexpr unsigned kPart = (1u << 27) - 1;
        const unsigned long long first = combined<Which>(together, low & kPart);
        const unsigned long long second = combined<Which>(together, static_cast<unsigned>(value >> 27) & kPart);
        const unsigned long long third = combined<Which>(together, static_cast<unsigned>(value >> 54));
        return first + (second << 27) + (third << 54);
    } else if constexpr (Which == Operation::Min || Which == Operation::Max) {
        const unsigned best = combined<Which>(together, high);
        const unsigned rest = high == best ? low : Which == Operation::Min ? ~0u : 0u;
        return static_cast<unsigned long long>(best) << 32 | combined<Which>(together, rest);
    } else {
        return static_cast<unsigned long long>(combined<Which>(together, high)) << 32 | combined<Which>(together, low);
    }
}

/// The operation of all threads of a warp that are here together with the same `place`, done by one of them; by each of them where places
/// differ, or numbers of this type can't be combined.
template <Operation Which, class T, class V>
__device__ __forceinline__ void operate_together(T* place, V value) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    if constexpr (std::is_integral<T>::value && (sizeof(T) == 4 || sizeof(T) == 8)) {
        using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
        const unsigned together = __activemask();
        int is_same = 0;
        __match_all_sync(together, reinterpret_cast<unsigned long long>(place), &is_same);
        if (is_same) {
            // With the sign's bit the other way round signed numbers have the order of unsigned ones.
            constexpr bool ordered = Which == Operation::Min || Which == Operation::Max;
            constexpr Bits flip = ordered && std::is_signed<T>::value ? Bits{1} << (8 * sizeof(T) - 1) : 0;
            const Bits all = combined<Which>(together, static_cast<Bits>(static_cast<T>(value)) ^ flip) ^ flip;
            if ((together & lanes_below()) == 0) operate<Which>(place, static_cast<T>(all));
            __syncwarp(together);   // as if each of them had done it
            return;
        }
    }
#endif
    operate<Which>(place, value);
}

}   // namespace detail

/// Atomic operations whose old value nobody asks for, by the names of CUDA's: of the threads of a warp that happen to be here together
/// with the same place one does it for all. The same to the last bit: floating-point numbers are added one by one.
namespace together {

template <class T, class V>
__device__ __forceinline__ void atomicAdd(T* place, V value) {
    detail::operate_together<detail::Operation::Add>(place, value);
}
template <class T, class V>
__device__ __forceinline__ void atomicSub(T* place, V value) {
    detail::operate_together<detail::Operation::Sub>(place, value);
}
template <class T, class V>
__device__ __forceinline__ void atomicMin(T* place, V value) {
    detail::operate_together<detail::Operation::Min>(place, value);
}
template <class T, class V>
__device__ __forceinline__ void atomicMax(T* place, V value) {
    detail::operate_together<detail::Operation::Max>(place, value);
}
template <class T, class V>
__device__ __forceinline__ void atomicAnd(T* place, V value) {
    detail::operate_together<detail::Operation::And>(place, value);
}
template <class T, class V>
__device__ __forceinline__ void atomicOr(T* place, V value) {
    detail::operate_together<detail::Operation::Or>(place, value);
}
template <class T, class V>
__device__ __forceinline__ void atomicXor(T* place, V value) {
    detail::operate_together<detail::Operation::Xor>(place, value);
}

}   // namespace together

namespace detail {

/// What a thread collects for one place, as long as it runs the threads of a child grid: at the end it is done there by one atomic
/// operation.
template <class T, Operation Which, bool = std::is_integral<T>::value>
class Collected {
    // Changes nothing. No flag says whether there is anything: without a branch several threads' loads go out together.
    static constexpr T kNothing = Which == Operation::Add   ? T{0}
                                  : Which == Operation::Min ? std::numeric_limits<T>::max()
                                                            : std::numeric_limits<T>::lowest();

public:
    __device__ __forceinline__ explicit Collected(T* place) : place_(place), all_(kNothing) {}
    Collected(const Collected&) = delete;
    Collected& operator=(const Collected&) = delete;
    __device__ __forceinline__ ~Collected() {
        if (all_ != kNothing) operate<Which>(place_, all_);
    }

    /// In place of the atomic operation with this value.
    __device__ __forceinline__ void take(T value) {
        if constexpr (Which == Operation::Add) all_ = static_cast<T>(static_cast<Bits>(all_) + static_cast<Bits>(value));
        else if constexpr (Which == Operation::Min) all_ = value < all_ ? value : all_;
        else all_ = all_ < value ? value : all_;
    }

private:
    using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;   // a sum of these wraps around

    T* place_;
    T all_;
};

/// Floating-point numbers, whose sum depends on the order, are not collected.
template <class T, Operation Which>
class Collected<T, Which, false> {
public:
    __device__ __forceinline__ explicit Collected(T* place) : place_(place) {}

    /// The atomic operation with this value.
    __device__ __forceinline__ void take(T value) { operate<Which>(place_, value); }

private:
    T* place_;
};

}   // namespace detail

/// In a function that runs a child grid in one thread: the sum of what its threads add to a place by atomicAdd.
template <class T>
struct SumAt : detail::Collected<T, detail::Operation::Add> {
    using detail::Collected<T, detail::Operation::Add>::Collected;
};
template <class T>
SumAt(T*) -> SumAt<T>;

/// The same for atomicMin.
template <class T>
struct MinimumAt : detail::Collected<T, detail::Operation::Min> {
    using detail::Collected<T, detail::Operation::Min>::Collected;
};
template <class T>
MinimumAt(T*) -> MinimumAt<T>;

/// The same for atomicMax.
template <class T>
struct MaximumAt : detail::Collected<T, detail::Operation::Max> {
    using detail::Collected<T, detail::Operation::Max>::Collected;
};
template <class T>
MaximumAt(T*) -> MaximumAt<T>;

// ---------------------------------------------------------------------------- allocating together

namespace detail {

/// In front of the memory that several threads have allocated together.
struct alignas(16) Together {
    unsigned parts;   // that are not given back yet
};

/// In front of each part: where the whole begins.
struct alignas(16) Part {
    Together* whole;
};

constexpr std::size_t kMostTogether = std::size_t(1) << 40;   // no heap is that large
constexpr std::size_t kNoPart = ~std::size_t(0);              // by a thread that comes along and wants nothing

/// What a part of this size takes, with what stands in front of it.
__device__ __forceinline__ unsigned long long part_bytes(std::size_t bytes) { return sizeof(Part) + (bytes + 15) / 16 * 16; }

/// The part that begins behind `offset` bytes of other parts.
__device__ __forceinline__ void* part_at(Together* whole, unsigned long long offset) {
    Part* const part = reinterpret_cast<Part*>(reinterpret_cast<char*>(whole + 1) + offset);
    part->whole = whole;
    return part + 1;
}

/// Memory for `parts` parts, or nullptr.
__device__ __forceinline__ Together* allocate_together(unsigned long long bytes, unsigned parts) {
    Together* const whole = static_cast<Together*>(malloc(sizeof(Together) + bytes));
    if (whole != nullptr) whole->parts = parts;
    return whole;
}

/// A part that is all there is.
__device__ __forceinline__ void* allocate_alone(std::size_t bytes) {
    Together* const whole = allocate_together(part_bytes(bytes), 1);
    return whole != nullptr ? part_at(whole, 0) : nullptr;
}

}   // namespace detail

/// malloc() for device code. The threads of a warp that happen to be here together allocate once. The
/// memory is aligned to 16 bytes and must be given back with free_together(), by any thread of any kernel.
/// nullptr if there is no memory for it. For 0 bytes it is a place of its own, as malloc() gives one on a GPU.
__device__ inline void* malloc_together(std::size_t bytes) {
    const unsigned together = __activemask();
    const unsigned leader = __ffs(together) - 1, lane = detail::lane_of(detail::linear_thread());
    const bool takes_part = bytes <= detail::kMostTogether;
    const unsigned long long own = takes_part ? detail::part_bytes(bytes) : 0;
    unsigned long long before = 0, all = 0;
    for (unsigned rest = together; rest != 0; rest &= rest - 1) {
        const unsigned from = __ffs(rest) - 1;
        const unsigned long long size = __shfl_sync(together, own, from);
        if (from < lane) before += size;
        all += size;
    }
    const unsigned parts = __popc(__ballot_sync(together, takes_part));
    unsigned long long whole = 0;
    if (lane == leader && parts != 0) whole = reinterpret_cast<unsigned long long>(detail::allocate_together(all, parts));
    __syncwarp(together);   // the others may count parts that the leader has written
    whole = __shfl_sync(together, whole, leader);
    if (!takes_part) return nullptr;
    if (whole == 0) return parts > 1 ? detail::allocate_alone(bytes) : nullptr;
    return detail::part_at(reinterpret_cast<detail::Together*>(whole), before);
}

/// The same for a whole block: all its threads that have not returned must be here, as at a barrier.
__device__ inline void* malloc_together_in_block(std::size_t bytes) {
    constexpr unsigned kSizeBits = 53;   // for the bytes of all parts; 11 for the number of up to 1024 parts
    __shared__ unsigned long long cursor;   // number of parts, and their bytes
    __shared__ detail::Together* whole;
    const bool takes_part = bytes <= detail::kMostTogether;
    const unsigned long long own = takes_part ? (1ull << kSizeBits) + detail::part_bytes(bytes) : 0;
    cursor = 0;   // by all of them: no thread is known to be left
    __syncthreads();
    unsigned long long before = 0;
    if (takes_part) before = atomicAdd(&cursor, own);
    __syncthreads();
    const unsigned long long size_mask = (1ull << kSizeBits) - 1;
    if (takes_part && before == 0) {
        const unsigned long long all = cursor;
        const unsigned parts = static_cast<unsigned>(all >> kSizeBits);
        whole = detail::allocate_together(all & size_mask, parts);
    }
    __syncthreads();
    if (!takes_part) return nullptr;
    if (whole == nullptr) return detail::allocate_alone(bytes);
    return detail::part_at(whole, before & size_mask);
}

/// free() for memory that malloc_together() gave. The last part to come back frees the whole.
__device__ inline void free_together(const void* memory) {
    if (memory == nullptr) return;
    detail::Together* const whole = (static_cast<const detail::Part*>(memory) - 1)->whole;
    const unsigned together = __activemask();
    const unsigned same = __match_any_sync(together, reinterpret_cast<unsigned long long>(whole));
    __syncwarp(same);
    if ((same & detail::lanes_below()) != 0) return;
    // What these threads did with their parts comes before the memory is given to others.
    detail::fence();
    const unsigned back = __popc(same);
    if (atomicSub(&whole->parts, back) == back) {
        detail::fence();
        free(whole);
    }
}

namespace detail {

/// What a cudaMalloc() of a device fails with: it leaves the place as it is, and cudaGetLastError() tells of it. Who asks for nothing,
/// or has no place, is told so.
template <class T>
__device__ __forceinline__ cudaError_t given(T** place, void* memory, bool asks) {
    if (!asks) return cudaMalloc(place, std::size_t(0));
    if (memory == nullptr) return cudaMalloc(place, kMostTogether);
    *place = static_cast<T*>(memory);
    return cudaSuccess;
}

}   // namespace detail

/// cudaMalloc() for device code, to be given back with cuda_free_together().
template <class T>
__device__ __forceinline__ cudaError_t cuda_malloc_together(T** place, std::size_t bytes) {
    const bool asks = place != nullptr && bytes != 0;
    return detail::given(place, malloc_together(asks ? bytes : detail::kNoPart), asks);
}

/// The same for a whole block.
template <class T>
__device__ __forceinline__ cudaError_t cuda_malloc_together_in_block(T** place, std::size_t bytes) {
    const bool asks = place != nullptr && bytes != 0;
    return detail::given(place, malloc_together_in_block(asks ? bytes : detail::kNoPart), asks);
}

/// cudaFree() for memory that cuda_malloc_together() gave.
__device__ __forceinline__ cudaError_t cuda_free_together(const void* memory) {
    free_together(memory);
    return cudaSuccess;
}

/// `new T[count]`, for types that need no construction and no destruction. To be given back with
/// free_together().
template <class T>
__device__ __forceinline__ T* new_together(std::size_t count) {
    static_assert(std::is_trivially_default_constructible<T>::value && std::is_trivially_destructible<T>::value,
                  "new_together constructs nothing");
    static_assert(alignof(T) <= 16, "over-aligned type");
    if (count > detail::kMostTogether / sizeof(T)) return nullptr;
    return static_cast<T*>(malloc_together(count * sizeof(T)));
}

/// The same for a whole block.
template <class T>
__device__ __forceinline__ T* new_together_in_block(std::size_t count) {
    static_assert(std::is_trivially_default_constructible<T>::value && std::is_trivially_destructible<T>::value,
                  "new_together_in_block constructs nothing");
    static_assert(alignof(T) <= 16, "over-aligned type");
    const bool possible = count <= detail::kMostTogether / sizeof(T);   // all threads must come to the barriers
    return static_cast<T*>(malloc_together_in_block(possible ? count * sizeof(T) : detail::kNoPart));
}

}   // namespace gridfuse

#endif   // GRIDFUSE_CUH
