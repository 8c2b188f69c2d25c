// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Loops. A kernel that ends by launching itself into cudaStreamTailLaunch is an iteration: the
// launches become one grid that stays. Loop runs the blocks of the iterations in their order,
// launch_loop starts it. BlockLoop does so within one block. An iteration may launch several grids,
// of which the last goes on: they are run in their order.

#ifndef GRIDFUSE_LOOP_CUH
#define GRIDFUSE_LOOP_CUH

#include "arguments.cuh"
#include "direct_launches.cuh"
#include "grid.cuh"
#include "memory.cuh"
#include "memory_order.cuh"
#include "threads.cuh"

#include <climits>
#include <cstddef>
#include <type_traits>

namespace gridfuse {
inline namespace v2 {

template <auto Kernel>
class Loop;

template <class Args, unsigned Children = 0, unsigned Tails = 1>
class Iterations;

namespace detail {

/// What the type of a looping kernel says.
template <class Function>
struct Looping {
    static_assert(sizeof(Function) == 0,
                  "a looping kernel is a void (gridfuse::Iterations<Args>, ...)");
};
template <class T, unsigned Children, unsigned Tails, class... Uniform>
struct Looping<void (*)(Iterations<T, Children, Tails>, Uniform...)> {
    using Args = T;
    using Rounds = Iterations<T, Children, Tails>;
    using Common = Pack<Uniform...>;
    static constexpr unsigned kUniform = sizeof...(Uniform);
};

/// How many tickets an iteration has for each block of the loop, at most, and more than half of
/// that where it has so many blocks. More of them spread blocks that take unequal time, fewer cost
/// less.
constexpr unsigned kTicketsEach = 8;

/// Places where blocks of a loop wait: where they all read one word, they are in each other's way.
constexpr unsigned kWaitingPlaces = 8;

/// The longest pause between two looks, in nanoseconds.
constexpr unsigned kLongestPause = 128;

/// Where the blocks of a loop meet, each word where it disturbs no other. All zero at first.
/// Numbers of tickets begin anew after the largest one; those that are compared are never as far
/// apart as that.
struct LoopCounters {
    /// What the blocks that wait look at: the tickets of the iterations that have begun, without
    /// those of the first one, and in the lowest bits where the last that has begun is written
    /// down; kOver when there are no more. It only grows: a block that has begun an iteration may
    /// still be at writing so when the next one has begun.
    struct alignas(kSliceAlignment) Place {
        static constexpr unsigned long long kOver = ULLONG_MAX;
        unsigned long long open;
    };

    // tickets: each block of the loop takes one at a time
    alignas(kSliceAlignment) unsigned taken;
    alignas(kSliceAlignment) unsigned done;    // tickets whose blocks have been run
    Place places[kWaitingPlaces];              // alike
};

/// An iteration.
template <class Args>
struct Round {
    unsigned grid_x;
    unsigned grid_yz;           // y - 1 in the lower half, z - 1 in the upper
    unsigned tickets;
    // a ticket stands for 2^shift neighbouring blocks, the last one for what is left
    unsigned shift;
    Bytes<Args> args;

    __host__ __device__ __forceinline__ dim3 grid() const {
        return dim3(grid_x, (grid_yz & 65535) + 1, (grid_yz >> 16) + 1);
    }
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

/// Where a loop writes down what the next iterations are: one where each launches one.
template <class Args, unsigned Children, unsigned Tails>
struct LoopMemory {
    /// What one iteration has launched.
    struct alignas(kSliceAlignment) Next {
        unsigned children, tails;               // how many
        unsigned tickets[Children + Tails];     // of the children, then of the others
        Round<Args> rounds[Children + Tails];
    };

    LoopCounters counters;
    // by turns: an iteration launches while its own round is read, which is the last of the others
    Next launched[2];
};
template <class Args>
struct LoopMemory<Args, 0, 1> {
    struct alignas(kSliceAlignment) Next {
        unsigned launched;   // its tickets, or 0 when nobody has launched it
        Round<Args> round;
    };

    LoopCounters counters;
    // the even and the odd ones, but for the first: an iteration launches while its own is read
    Next rounds[2];
};

}   // namespace detail

/// The iterations of a kernel that launches itself into cudaStreamTailLaunch, with arguments of
/// type `Args`: the first parameter of a looping kernel, made by launch_loop. A view. Without
/// memory it stands for one grid, whose launches go out by themselves.
///
/// An iteration launches up to `Children` grids into the NULL stream and `Tails` into
/// cudaStreamTailLaunch. Of these only the one that it launches last, into cudaStreamTailLaunch,
/// may launch again: when that begins, no other one is left to be run.
template <class Args, unsigned Children, unsigned Tails>
class Iterations {
    static_assert(std::is_trivially_copyable<Args>::value,
                  "the arguments of a launch are copied byte by byte");
    static_assert(Tails != 0, "an iteration launches the next one into cudaStreamTailLaunch");

public:
    Iterations() = default;

private:
    template <auto Kernel>
    friend class Loop;
    template <auto Kernel>
    friend class LoopOwner;

    using Memory = detail::LoopMemory<Args, Children, Tails>;

    // The places where iterations are written down: for those that one of them launches, and as
    // many for the next ones.
    static constexpr unsigned kChildren = Children, kEach = Children + Tails;
    static constexpr bool kOne = kEach == 1;
    static constexpr unsigned place_bits() {
        unsigned bits = 1;
        while (1u << bits < 2 * kEach) ++bits;
        return bits;
    }

    __host__ __device__ __forceinline__ explicit Iterations(const detail::Bytes<Args>& first)
        : first_{} {
        first_.args = first;
    }

    Memory* memory_ = nullptr;
    detail::Round<Args> first_;
};

/// Runs a kernel that ends by launching itself into cudaStreamTailLaunch as one grid that stays:
/// its blocks run the blocks of the iterations in their order. Declared at the top of a looping
/// kernel, whose only further statement is for_each_block:
///
///     __global__ void relax_loop(gridfuse::Iterations<relax_args> iterations, float* x, int n) {
///         gridfuse::Loop<relax_loop> relaxes(iterations, x, n);
///         relaxes.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim,
///                                    const relax_args& args) {
///             relax_body(relaxes, blockIdx, gridDim, blockDim, x, n, args.round);   // calls
///             relaxes.launch(gridDim, blockDim, {round + 1})
///         });
///     }
///
/// An iteration begins when all blocks of the one before are done, and sees what they have written.
/// A block waits for tickets that were taken before its own, so for blocks that run: it can't hang,
/// however few blocks are resident.
///
/// Where an iteration launches several grids (`gridfuse::Iterations<step_args, 1, 1>`), those of
/// launch_child come first, then those of launch, each in their order.
template <auto Kernel>
class Loop {
    using Args = typename detail::Looping<decltype(Kernel)>::Args;
    using Common = typename detail::Looping<decltype(Kernel)>::Common;
    using Rounds = typename detail::Looping<decltype(Kernel)>::Rounds;
    using Memory = typename Rounds::Memory;
    using Round = detail::Round<Args>;
    using Place = detail::LoopCounters::Place;

public:
    /// `iterations`: the kernel's first argument, or `{}`, with which a launch goes out by itself.
    /// `uniform`: its further arguments.
    template <class... Uniform>
    __device__ __forceinline__ explicit Loop(const Rounds& iterations, const Uniform&... uniform)
        : iterations_(iterations), uniform_(uniform...) {
        static_assert(sizeof...(Uniform) == detail::Looping<decltype(Kernel)>::kUniform,
                      "an argument for each parameter after the iterations");
    }
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    /// Launches the next iteration. One thread of the grid. With blocks of another size, or more
    /// shared memory than the first iteration has, it is launched by itself, and so are all those
    /// after it.
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, const Args& args) {
        launch(grid, block, 0, args);
    }
    __device__ __forceinline__ void launch(dim3 grid, dim3 block, std::size_t shared_bytes,
                                           const Args& args) {
        launch_one<false>(grid, block, shared_bytes, args);
    }

    /// Launches a child, which launches nothing itself: it comes before what `launch` launches. By
    /// the same thread. In a kernel with iterations that launch several grids, blocks are of the
    /// same size as those of the first iteration, with no dynamic shared memory.
    __device__ __forceinline__ void launch_child(dim3 grid, dim3 block, const Args& args) {
        launch_child(grid, block, 0, args);
    }
    __device__ __forceinline__ void launch_child(dim3 grid, dim3 block, std::size_t shared_bytes,
                                                 const Args& args) {
        static_assert(
            Rounds::kChildren != 0,
            "gridfuse::Iterations<Args, Children, Tails> says how many children there may be");
        launch_one<true>(grid, block, shared_bytes, args);
    }

    /// Runs `body(blockIdx, gridDim, blockDim, args)` for every block of every iteration. All
    /// threads call it, once. All threads of the block, or none, must come to each barrier in
    /// `body`.
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
                    // how long that takes is hidden by the block
                    else if (current.early) ticket = take();
                }
                body(index, current.round.grid(), blockDim, current.round.args.value());
                __syncthreads();   // shared memory is free for the next block
            }
            if (!first) continue;
            ++current.finished;
            const bool early = current.early;
            if (early && before(ticket, current.end)) continue;
            // release: what the threads of the block have written, which have met at a barrier
            detail::fence();
            if (!early) ticket = take();   // in front, and not waited for: others may be done soon
            finish(current);
        }
    }

private:
    static constexpr unsigned kPlaceBits = Rounds::place_bits();

    // A block of an iteration.
    struct Step {
        unsigned x, y, z;
        bool last;   // of the ticket
    };

    // What the block of the loop is at. In shared memory, as registers are what limits how many
    // blocks are resident. Written by the first thread: the steps in turn, one while all read the
    // other.
    struct Current {
        Step steps[2];
        Round round;
        unsigned long long left;     // blocks of the ticket, with the one that runs
        // tickets of the iterations up to this one, without those of the first one
        unsigned long long opened;
        unsigned end;                // the ticket after those of the iteration
        // where it is written down; 0 for the first one, which stands elsewhere
        unsigned place;
        unsigned finished;           // tickets that are done and not counted as such yet
        bool over;                   // whether there are no more iterations
        bool early;                  // whether to take the next ticket before this one is done
    };
    static __device__ __forceinline__ Current& shared() {
        __shared__ Current current;
        return current;
    }

    static __device__ __forceinline__ bool before(unsigned ticket, unsigned other) {
        return static_cast<int>(ticket - other) < 0;
    }

    __device__ __forceinline__ unsigned take() const {
        return atomicAdd(&iterations_.memory_->counters.taken, 1u);
    }

    // The iteration is the current one.
    __device__ __forceinline__ void begin(Current& current, const Round& round, unsigned place,
                                          unsigned long long opened) const {
        current.round = round;
        current.opened = opened;
        current.end = iterations_.first_.tickets + static_cast<unsigned>(opened);
        current.place = place;
    }

    // The ticket is the current one, when its iteration has begun.
    __device__ __forceinline__ void use(Current& current, unsigned ticket) const {
        current.over = !before(ticket, current.end) && !wait(current, ticket);
        if (current.over) return;
        const Round& round = current.round;
        const unsigned to_come = current.end - ticket;
        const unsigned long long block = static_cast<unsigned long long>(round.tickets - to_come)
                                         << round.shift;
        const unsigned long long each = 1ull << round.shift, behind = round.blocks() - block;
        current.left = behind < each ? behind : each;
        // While there is a ticket for each block of the loop, so that no block takes what another
        // one could run at once.
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

    // Waits until the ticket's iteration begins, which is not the first one; false if there is
    // none.
    __device__ __forceinline__ bool wait(Current& current, unsigned ticket) const {
        const unsigned long long& place =
            iterations_.memory_->counters.places[blockIdx.x % detail::kWaitingPlaces].open;
        const unsigned beyond_first = ticket - iterations_.first_.tickets;
        unsigned long long open = detail::load_relaxed(place);
        for (unsigned pause = 32;
             open == Place::kOver ||
             !before(beyond_first, static_cast<unsigned>(open >> kPlaceBits));) {
            if (open == Place::kOver) return false;
            __nanosleep(pause);
            if (pause < detail::kLongestPause) pause *= 2;
            open = detail::load_relaxed(place);
        }
        detail::fence();   // acquire: what all blocks of the iterations before have written
        const unsigned at = open & ((1u << kPlaceBits) - 1);
        begin(current, round_at(at), at, open >> kPlaceBits);
        return true;
    }

    __device__ __forceinline__ const Round& round_at(unsigned place) const {
        if constexpr (Rounds::kOne) return iterations_.memory_->rounds[place].round;
        else
            return iterations_.memory_->launched[place / Rounds::kEach]
                .rounds[place % Rounds::kEach];
    }

    // What comes after the current iteration.
    struct Next {
        unsigned tickets;   // 0 where nothing does
        unsigned place;
    };
    __device__ __forceinline__ Next next(const Current& current) const {
        if constexpr (Rounds::kOne) {
            const unsigned odd = current.place ^ 1;
            return {detail::load_relaxed(iterations_.memory_->rounds[odd].launched), odd};
        } else {
            const unsigned turn = current.place / Rounds::kEach, at = current.place % Rounds::kEach;
            const auto& others = iterations_.memory_->launched[turn];
            const auto& own = iterations_.memory_->launched[turn ^ 1];
            const unsigned children = detail::load_relaxed(own.children),
                           tails = detail::load_relaxed(own.tails);
            const unsigned other_children = detail::load_relaxed(others.children),
                           other_tails = detail::load_relaxed(others.tails);
            unsigned found = Rounds::kEach;
            unsigned where = turn ^ 1;
            if (children != 0) found = 0;
            else if (tails != 0) found = Rounds::kChildren;
            else {   // it has launched nothing: the next of those that were launched with it
                where = turn;
                if (at + 1 > Rounds::kChildren)
                    found = at + 1 - Rounds::kChildren < other_tails ? at + 1 : found;
                else
                    found = at + 1 < other_children ? at + 1
                            : other_tails != 0      ? Rounds::kChildren
                                                    : found;
            }
            if (found == Rounds::kEach) return {0, 0};
            const unsigned place = where * Rounds::kEach + found;
            return {detail::load_relaxed(iterations_.memory_->launched[where].tickets[found]),
                    place};
        }
    }

    // Counts what the block has done. The block that does the last ticket begins the next
    // iteration.
    __device__ __forceinline__ void finish(Current& current) const {
        detail::LoopCounters& counters = iterations_.memory_->counters;
        const unsigned finished = current.finished;
        current.finished = 0;
        // A look ahead, while the counter is on its way. What there is says enough; where there is
        // nothing yet, it may be too early. Of several grids others may come before it.
        Next after{};
        if constexpr (Rounds::kOne) after = next(current);
        if (atomicAdd(&counters.done, finished) + finished != current.end) return;
        // acquire: what the other blocks have written; release: for those that wait
        detail::fence();
        if (after.tickets == 0) after = next(current);
        const unsigned long long open =
            after.tickets == 0 ? Place::kOver
                               : (current.opened + after.tickets) << kPlaceBits | after.place;
        for (Place& place : counters.places) atomicMax(&place.open, open);
    }

    template <bool Child>
    __device__ __forceinline__ void launch_one(dim3 grid, dim3 block, std::size_t shared_bytes,
                                               const Args& args) {
        const bool empty = grid.x == 0 || grid.y == 0 || grid.z == 0;
        // CUDA refuses it, and a kernel with several launches may ask whether one was refused.
        if (Rounds::kOne && empty) return;
        const detail::Bytes<Args> bytes(args);
        if (hand_over<Child>(grid, block, shared_bytes, bytes)) return;
        launch_alone<Child>(Common(uniform_), grid, block, shared_bytes, bytes);
    }

    template <bool Child>
    __device__ __forceinline__ bool hand_over(dim3 grid, dim3 block, std::size_t shared_bytes,
                                              const detail::Bytes<Args>& args) const {
        Memory* const memory = iterations_.memory_;
        if (memory == nullptr) return false;
        const bool alike = block.x == blockDim.x && block.y == blockDim.y && block.z == blockDim.z;
        if (!alike || !detail::valid_grid(grid) || shared_bytes > detail::dynamic_shared_bytes())
            return false;
        Round round;
        round.set_grid(grid, gridDim.x);
        round.args = args;
        if constexpr (Rounds::kOne) {
            const unsigned odd = shared().place ^ 1;
            // A second launch, which there shouldn't be, is done when the grid is, as it would have
            // been.
            if (atomicCAS(&memory->rounds[odd].launched, 0u, round.tickets) != 0) return false;
            memory->rounds[odd].round = round;
            // The iteration that runs needs its own no more, and the one after the next will launch
            // there.
            detail::store_relaxed(memory->rounds[odd ^ 1].launched, 0u);
        } else {
            const unsigned turn = shared().place / Rounds::kEach;
            auto& own = memory->launched[turn ^ 1];
            unsigned& count = Child ? own.children : own.tails;
            const unsigned at = detail::load_relaxed(count), first = Child ? 0 : Rounds::kChildren;
            // More than there should be.
            if (first + at == (Child ? Rounds::kChildren : Rounds::kEach)) return false;
            own.rounds[first + at] = round;
            detail::store_relaxed(own.tickets[first + at], round.tickets);
            detail::store_relaxed(count, at + 1);
            // The iteration that runs is the last of those that were launched with it; the next one
            // that launches does so there.
            detail::store_relaxed(memory->launched[turn].children, 0u);
            detail::store_relaxed(memory->launched[turn].tails, 0u);
        }
        return true;
    }

    // A function, so that the kernel has no more registers than it takes to call it.
    template <bool Child>
    static __device__ __noinline__ void launch_alone(const Common& uniform, dim3 grid, dim3 block,
                                                     std::size_t shared_bytes,
                                                     const detail::Bytes<Args>& args) {
        if (Rounds::kOne || detail::valid_grid(grid)) atomicAdd(&detail::direct_launches, 1ull);
        uniform.apply([&](const auto&... values) {
            Kernel<<<grid, block, shared_bytes, Child ? cudaStream_t() : cudaStreamTailLaunch>>>(
                Rounds(args), values...);
        });
    }

    Rounds iterations_;
    Common uniform_;
};

/// The largest of some numbers: of the threads of blocks, which template parameters say.
template <class... Counts>
__host__ __device__ constexpr unsigned largest(unsigned first, Counts... others) {
    unsigned most = first;
    ((most = static_cast<unsigned>(others) > most ? static_cast<unsigned>(others) : most), ...);
    return most;
}

/// What `__syncthreads` is in a block that has `threads` threads, at most as many as a warp, and is
/// run by the first of a larger one; without a number, in a block that has all. The parameter of a
/// function by that name stands for the barrier in its body.
struct BlockBarrier {
    unsigned threads = 0;

    __device__ __forceinline__ void operator()() const {
        if (threads == 0) __syncthreads();
        else __syncwarp(~0u >> (32 - threads));
    }
};

/// Owns the memory of a loop for one launch in a stream.
template <auto Kernel>
class LoopOwner {
    using Args = typename detail::Looping<decltype(Kernel)>::Args;
    using Rounds = typename detail::Looping<decltype(Kernel)>::Rounds;
    using Memory = typename Rounds::Memory;

public:
    LoopOwner(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
              const Args& first, bool grows)
        : iterations_(detail::Bytes<Args>(first)) {
        if (!detail::valid_grid(grid) || !detail::valid_block(block)) return;
        const cudaError_t before = cudaPeekAtLastError();
        if (!take(grid, block, shared_bytes, stream, grows) && before == cudaSuccess)
            (void)cudaGetLastError();
    }
    LoopOwner(const LoopOwner&) = delete;
    LoopOwner& operator=(const LoopOwner&) = delete;

    const Rounds& iterations() const { return iterations_; }
    unsigned blocks() const { return blocks_; }

private:
    bool take(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream, bool grows) {
        int device = 0, multiprocessors = 0, resident = 0;
        if (cudaGetDevice(&device) != cudaSuccess ||
            cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) !=
                cudaSuccess ||
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                &resident, Kernel, static_cast<int>(block.x * block.y * block.z), shared_bytes) !=
                cudaSuccess ||
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

    Rounds iterations_;
    detail::StreamMemory memory_;
    unsigned blocks_ = 0;
};

namespace detail {

template <auto Kernel, bool Grows, class Function = decltype(Kernel)>
struct LoopLauncher;
template <auto Kernel, bool Grows, class T, unsigned Children, unsigned Tails, class... Uniform>
struct LoopLauncher<Kernel, Grows, void (*)(Iterations<T, Children, Tails>, Uniform...)> {
    void operator()(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                    const T& first, Uniform... uniform) const {
        const LoopOwner<Kernel> owner(grid, block, shared_bytes, stream, first, Grows);
        Kernel<<<owner.blocks() != 0 ? dim3(owner.blocks()) : grid, block, shared_bytes, stream>>>(
            owner.iterations(), uniform...);
    }
};

}   // namespace detail

/// Launches a kernel with a Loop, in place of `kernel<<<grid, block, shared_bytes, stream>>>(...)`:
///
///     gridfuse::launch_loop<relax_loop>(blocks, 256, 0, stream, {0}, x, n);
///
/// In braces stand the arguments that differ between the iterations, after them the others. As many
/// blocks as the device can run at a time, and no more than the grid has, run all iterations.
/// Without memory each iteration is launched by the one before.
template <auto Kernel>
inline constexpr detail::LoopLauncher<Kernel, false> launch_loop{};

/// The same where the grids of later iterations may have more blocks than the first one.
template <auto Kernel>
inline constexpr detail::LoopLauncher<Kernel, true> launch_growing_loop{};

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_LOOP_CUH
