// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Recursion. A kernel that launches itself is run by one grid that stays: Recursion writes down in
// a Worklist what is launched, and the grid's blocks take it from there. launch_recursion starts
// it.

#ifndef GRIDFUSE_RECURSION_CUH
#define GRIDFUSE_RECURSION_CUH

#include "arguments.cuh"
#include "direct_launches.cuh"
#include "grid.cuh"
#include "memory.cuh"
#include "memory_order.cuh"
#include "threads.cuh"

#include <cstddef>
#include <type_traits>

namespace gridfuse {
inline namespace v2 {

template <auto Kernel>
class Recursion;

template <class Args>
class Worklist;

namespace detail {

/// The counters of a worklist, each where nobody else disturbs it. All zero at first.
struct WorkCounters {
    // tickets: every block that asks for work gets the next one
    alignas(kSliceAlignment) unsigned long long taken;
    alignas(kSliceAlignment) unsigned long long added;   // records that have got a place
    // Records that are not done, and -1 when the entry grid is done, too: what is left is one more
    // than this.
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
    static_assert(sizeof(Function) == 0,
                  "a flattened kernel is a void (gridfuse::Worklist<Args>, ...)");
};
template <class T, class... Uniform>
struct Flattened<void (*)(Worklist<T>, Uniform...)> {
    using Args = T;
    using Common = Pack<Uniform...>;
    static constexpr unsigned kUniform = sizeof...(Uniform);
};

// a grid of more blocks is worth a launch of its own
constexpr unsigned kMostWorkAtOnce = 1u << 12;

}   // namespace detail

/// Blocks that wait to be run, with arguments of type `Args`: the first parameter of a flattened
/// kernel, made by launch_recursion. A view. A Worklist without memory stands for one grid that is
/// launched by itself.
template <class Args>
class Worklist {
    static_assert(std::is_trivially_copyable<Args>::value,
                  "the arguments of a launch are copied byte by byte");

public:
    Worklist() = default;

private:
    template <auto Kernel>
    friend class Recursion;
    template <auto Kernel, unsigned Bits>
    friend class WorklistOwner;

    using Work = detail::Work<Args>;

    __host__ __device__ __forceinline__ explicit Worklist(const detail::Bytes<Args>& first)
        : first_(first) {}

    // After the counters comes, for each place, twice how often it was emptied, plus one while it
    // holds something; then what it holds.
    __host__ __device__ __forceinline__ static unsigned* turns(detail::WorkCounters* counters) {
        return reinterpret_cast<unsigned*>(counters + 1);
    }
    __host__ __device__ __forceinline__ static Work* places(detail::WorkCounters* counters,
                                                            unsigned bits) {
        return reinterpret_cast<Work*>(reinterpret_cast<unsigned char*>(counters) +
                                       bytes_in_front(bits));
    }
    __host__ __device__ __forceinline__ static constexpr std::size_t bytes_in_front(unsigned bits) {
        return (sizeof(detail::WorkCounters) + (sizeof(unsigned) << bits) +
                detail::kSliceAlignment - 1) /
               detail::kSliceAlignment * detail::kSliceAlignment;
    }

    detail::WorkCounters* counters_ = nullptr;
    unsigned bits_ = 0;                   // there are 1 << bits_ places
    unsigned grid_x_ = 0, grid_yz_ = 0;   // of the entry grid
    detail::Bytes<Args> first_;           // its arguments
};

/// Runs a kernel that launches itself, in one grid that stays: its blocks take from a Worklist what
/// is to be run, and write down there what is launched. Declared at the top of a flattened kernel,
/// whose only further statement is for_each_block:
///
///     __global__ void walk_flattened(gridfuse::Worklist<walk_args> worklist, const Tree* tree) {
///         gridfuse::Recursion<walk_flattened> walks(worklist, tree);
///         walks.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim,
///                                  const walk_args& args) {
///             walk_body(walks, blockIdx, gridDim, blockDim, tree, args.node);   // calls
///             walks.launch(1, blockDim, {child})
///         });
///     }
///
/// A block that finds nothing to do waits until there is something, or until all is done. It has a
/// ticket for the place at which it waits, and whoever gets that place fills it at once; so what
/// waits is never waited for, and it is enough that the blocks that have begun go on.
template <auto Kernel>
class Recursion {
    using Args = typename detail::Flattened<decltype(Kernel)>::Args;
    using Common = typename detail::Flattened<decltype(Kernel)>::Common;
    using List = Worklist<Args>;
    using Work = detail::Work<Args>;

public:
    /// `worklist`: the kernel's first argument, or `{}`, with which each launch goes out by itself.
    /// `uniform`: its further arguments.
    template <class... Uniform>
    __device__ __forceinline__ explicit Recursion(const List& worklist, const Uniform&... uniform)
        : list_(worklist), uniform_(uniform...) {
        static_assert(sizeof...(Uniform) == detail::Flattened<decltype(Kernel)>::kUniform,
                      "an argument for each parameter after the worklist");
    }
    Recursion(const Recursion&) = delete;
    Recursion& operator=(const Recursion&) = delete;

    /// Launches the kernel again: its blocks are written down, and run by blocks that have nothing
    /// else to do. A grid with blocks of another size, with more shared memory, with very many
    /// blocks, or for which there is no room is launched by itself.
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, const Args& args) {
        launch(grid, block, 0, args);
    }
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, std::size_t shared_bytes,
                                           const Args& args) {
        if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
        const detail::Bytes<Args> bytes(args);
        if (list_.counters_ != nullptr &&
            write_down(list_.counters_, list_.bits_, grid, block, shared_bytes, bytes))
            return;
        launch_alone(Common(uniform_), grid, block, shared_bytes, bytes);
    }

    /// Runs `body(blockIdx, gridDim, blockDim, args)` for every block that there is to run. All
    /// threads call it, once. All threads of the block, or none, must come to each barrier in
    /// `body`.
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
                detail::store_relaxed(turns[place],
                                      2 * static_cast<unsigned>(current.ticket >> list_.bits_) + 2);
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
        for (unsigned pause = 32; detail::load_relaxed(mark) != turn;
             pause = pause < 256 ? 2 * pause : pause) {
            if (detail::load_relaxed(list_.counters_->done) != 0) {
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
        if (atomicAdd(&counters.left, ~0ull) == 0) detail::store_relaxed(counters.done, 1u);
    }

    // Two functions, so that neither needs many registers: the kernel has as many as it takes to
    // call them.
    static __device__ __noinline__ void launch_alone(const Common& uniform, dim3 grid, dim3 block,
                                                     std::size_t shared_bytes,
                                                     const detail::Bytes<Args>& args) {
        atomicAdd(&detail::direct_launches, 1ull);
        uniform.apply([&](const auto&... values) {
            Kernel<<<grid, block, shared_bytes, cudaStreamFireAndForget>>>(List(args), values...);
        });
    }
    static __device__ __noinline__ bool write_down(detail::WorkCounters* counters, unsigned bits,
                                                   dim3 grid, dim3 block, std::size_t shared_bytes,
                                                   const detail::Bytes<Args>& args) {
        const bool alike = block.x == blockDim.x && block.y == blockDim.y && block.z == blockDim.z;
        if (!alike || !detail::valid_grid(grid) || shared_bytes > detail::dynamic_shared_bytes())
            return false;
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
            if (atomicAdd(&counters->left, static_cast<unsigned long long>(more)) + more >=
                capacity) {
                atomicAdd(&counters->left, ~static_cast<unsigned long long>(more) + 1);
                if (kept != 0) atomicExch(&current.kept, 0u);
                return false;
            }
            const unsigned long long begin =
                atomicAdd(&counters->added, static_cast<unsigned long long>(more));
            if (begin + more > capacity) {
                // Whoever had the place before has a ticket for it and is about to read it, or has
                // done so.
#pragma unroll 1
                for (unsigned i = 0; i < more; ++i) {
                    const unsigned long long at = begin + i;
                    const unsigned turn = 2 * static_cast<unsigned>(at >> bits);
                    while (detail::load_relaxed(turns[at & (capacity - 1)]) != turn)
                        __nanosleep(32);
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
            // release: these, and what the launching thread has written or knows of
            detail::fence();
#pragma unroll 1
            for (unsigned i = 0; i < more; ++i) {
                const unsigned long long at = begin + i;
                detail::store_relaxed(turns[at & (capacity - 1)],
                                      2 * static_cast<unsigned>(at >> bits) + 1);
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
    WorklistOwner(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                  const Args& first)
        : list_(detail::Bytes<Args>(first)) {
        if (!detail::valid_grid(grid) || !detail::valid_block(block)) return;
        const cudaError_t before = cudaPeekAtLastError();
        if (!take(grid, block, shared_bytes, stream) && before == cudaSuccess)
            (void)cudaGetLastError();
    }
    WorklistOwner(const WorklistOwner&) = delete;
    WorklistOwner& operator=(const WorklistOwner&) = delete;

    const Worklist<Args>& list() const { return list_; }
    unsigned blocks() const { return blocks_; }

private:
    bool take(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream) {
        int device = 0, multiprocessors = 0, resident = 0;
        if (cudaGetDevice(&device) != cudaSuccess ||
            cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) !=
                cudaSuccess ||
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                &resident, Kernel, static_cast<int>(block.x * block.y * block.z), shared_bytes) !=
                cudaSuccess ||
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
    void operator()(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                    const T& first, Uniform... uniform) const {
        const WorklistOwner<Kernel, Bits> owner(grid, block, shared_bytes, stream, first);
        Kernel<<<owner.blocks() != 0 ? dim3(owner.blocks()) : grid, block, shared_bytes, stream>>>(
            owner.list(), uniform...);
    }
};

}   // namespace detail

/// Launches a kernel that launches itself, flattened, in place of `kernel<<<grid, block,
/// shared_bytes, stream>>>(...)`:
///
///     gridfuse::launch_recursion<walk_flattened>(1, 128, 0, stream, {root}, tree);
///
/// In braces stand the arguments that differ between its launches, after them the others. As many
/// blocks as the device can run at a time do the work of the grid and of all that it launches. 1 <<
/// `Bits` blocks may be waiting or running at a time, besides those of the grid. What is launched
/// beyond that goes out by itself, and so does every launch without memory for a worklist.
template <auto Kernel, unsigned Bits = 18>
inline constexpr detail::Launcher<Kernel, Bits> launch_recursion{};

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_RECURSION_CUH
