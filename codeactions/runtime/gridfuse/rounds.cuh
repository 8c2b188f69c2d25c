// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Rounds. The host launches kernels again and again and copies a flag to know whether to go on:
// here one grid does so by itself, and its blocks meet where one kernel ended and the next began.

#ifndef GRIDFUSE_ROUNDS_CUH
#define GRIDFUSE_ROUNDS_CUH

#include "grid.cuh"
#include "memory.cuh"
#include "memory_order.cuh"
#include "threads.cuh"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gridfuse {
inline namespace v2 {

template <class State>
class Rounds;

namespace detail {

/// What the host's loop keeps where that is nothing.
struct NoState {};

/// Where the blocks of a grid meet, each word where it disturbs no other. All zero at first.
struct Meeting {
    alignas(kSliceAlignment) unsigned arrived;       // blocks that are at this meeting
    alignas(kSliceAlignment) unsigned met;           // how often all of them have met
    // what the last of them to arrive has read for all
    alignas(kSliceAlignment) unsigned long long read;
};

template <class State>
struct RoundsLeft {
    State state;        // what the loop leaves
    unsigned refused;   // CUDA would have refused one of its launches
};

template <class State>
struct RoundsMemory {
    Meeting meeting;
    RoundsLeft<State> left;
};

template <auto Kernel>
struct RoundsOwner;

/// Whether a pointer, and a number of bytes, are those of whole words.
__device__ __forceinline__ bool are_words(const void* place, std::size_t bytes) {
    return ((reinterpret_cast<std::uintptr_t>(place) | bytes) & 3) == 0;
}

/// Copies a value of a few bytes from or to memory that other threads use before or after. `place`
/// is aligned as its type asks for.
template <class T>
__device__ __forceinline__ void copy_value(T* to, const volatile void* from, std::size_t bytes) {
    unsigned char* const target = reinterpret_cast<unsigned char*>(to);
    for (std::size_t i = 0; i < bytes && i < sizeof(T); ++i)
        target[i] = static_cast<const volatile unsigned char*>(from)[i];
}

}   // namespace detail

/// Rounds of kernels that one grid runs, in the place of a loop by the host: the first parameter of
/// a kernel that run_rounds launches. The kernel reads as the host's loop did. All threads of the
/// grid run it, with the same values in the same variables, and call the same functions in the same
/// order, as cudaMemset() and launches into one stream are called: each begins when those before
/// are done.
///
///     __global__ void relax_rounds(gridfuse::Rounds<relax_state> rounds, dim3 blocks, float* x,
///                                  int* changed) {
///         int again = rounds.state().again;
///         do {
///             rounds.fill(changed, 0, sizeof(int));
///             rounds.run(blocks, [&](uint3 blockIdx, dim3 gridDim) { relax_body(blockIdx,
///                 gridDim, blockDim, x, changed); });
///             rounds.load(&again, changed, sizeof(int));
///         } while (again);
///         rounds.finish({again});
///     }
///
/// The blocks wait for each other: all of them have to be resident, which run_rounds sees to.
template <class State = detail::NoState>
class Rounds {
    static_assert(std::is_trivially_copyable<State>::value,
                  "what the loop keeps is copied byte by byte");

public:
    Rounds() = default;

    /// What the host's variables hold when the loop begins.
    __device__ __forceinline__ const State& state() const { return state_; }

    /// What they hold when it ends. The last thing that the kernel does.
    __device__ __forceinline__ void finish(const State& state) const {
        if (is_first()) memory_->left.state = state;
    }

    /// Runs `body(blockIdx, gridDim)` for every block of a grid. All threads of a block, or none,
    /// must come to each barrier in `body`.
    template <class Body>
    __device__ __forceinline__ void run(dim3 grid, Body&& body) {
        run_blocks(grid, no_block_, true, static_cast<Body&&>(body));
    }

    /// The same for blocks of fewer threads than the loop's have, in one dimension, that don't meet
    /// at barriers.
    template <class Body>
    __device__ __forceinline__ void run(dim3 grid, unsigned threads, Body&& body) {
        run_blocks(grid, false, detail::linear_thread() < threads, static_cast<Body&&>(body));
    }

    /// As cudaMemset().
    __device__ __forceinline__ void fill(void* place, int value, std::size_t bytes) {
        const unsigned byte = static_cast<unsigned char>(value);
        if (bytes <= kFew) {
            change([&] { fill_from(place, byte, bytes, 0, 1); });
        } else {
            begin_change();
            fill_from(place, byte, bytes, thread(), threads());
        }
    }

    /// As cudaMemcpy() within the device.
    __device__ __forceinline__ void copy(void* to, const void* from, std::size_t bytes) {
        begin_change();
        if (detail::are_words(to, bytes) && detail::are_words(from, bytes)) {
            for (std::size_t i = thread(); i < bytes / 4; i += threads())
                static_cast<unsigned*>(to)[i] = static_cast<const unsigned*>(from)[i];
        } else {
            for (std::size_t i = thread(); i < bytes; i += threads())
                static_cast<unsigned char*>(to)[i] = static_cast<const unsigned char*>(from)[i];
        }
    }

    /// As cudaMemcpy() from a variable of the host's.
    template <class T>
    __device__ __forceinline__ void store(void* place, const T* from, std::size_t bytes) {
        change([&] {
            const unsigned char* const source = reinterpret_cast<const unsigned char*>(from);
            for (std::size_t i = 0; i < bytes && i < sizeof(T); ++i)
                static_cast<unsigned char*>(place)[i] = source[i];
        });
    }

    /// As an assignment by the host, to memory that it shares with the device.
    template <class T, class Value>
    __device__ __forceinline__ void store(T* place, Value value) {
        change([&] { *place = static_cast<T>(value); });
    }

    /// As cudaMemcpy() to a variable of the host's.
    template <class T>
    __device__ __forceinline__ void load(T* to, const void* place, std::size_t bytes) {
        static_assert(sizeof(T) <= sizeof(unsigned long long), "a variable of up to eight bytes");
        unsigned long long value = read([&] {
            unsigned long long bits = 0;
            detail::copy_value(&bits, place, bytes);
            return bits;
        });
        detail::copy_value(to, &value, bytes);
    }

    /// As the host reads memory that it shares with the device.
    template <class T>
    __device__ __forceinline__ T load(const T* place) {
        static_assert(sizeof(T) <= sizeof(unsigned long long), "a value of up to eight bytes");
        unsigned long long bits = read([&] {
            const T value = detail::load_relaxed(*place);
            unsigned long long wide = 0;
            detail::copy_value(&wide, &value, sizeof(T));
            return wide;
        });
        typename std::remove_cv<T>::type value{};
        detail::copy_value(&value, &bits, sizeof(T));
        return value;
    }

    /// As std::swap(), of variables that each thread has.
    template <class T>
    __device__ __forceinline__ void swap(T& a, T& b) const {
        const T kept = a;
        a = b;
        b = kept;
    }

private:
    template <auto Kernel>
    friend struct detail::RoundsOwner;

    // So many bytes one thread fills.
    static constexpr std::size_t kFew = 16;

    static __device__ __forceinline__ bool is_first() {
        return detail::linear_block() == 0 && detail::linear_thread() == 0;
    }
    static __device__ __forceinline__ std::size_t threads() {
        return static_cast<std::size_t>(gridDim.x) * detail::block_threads();
    }
    static __device__ __forceinline__ std::size_t thread() {
        return static_cast<std::size_t>(blockIdx.x) * detail::block_threads() +
               detail::linear_thread();
    }

    static __device__ __forceinline__ void fill_from(void* place, unsigned byte, std::size_t bytes,
                                                     std::size_t first, std::size_t step) {
        if (detail::are_words(place, bytes)) {
            for (std::size_t i = first; i < bytes / 4; i += step)
                static_cast<unsigned*>(place)[i] = byte * 0x01010101u;
        } else {
            for (std::size_t i = first; i < bytes; i += step)
                static_cast<unsigned char*>(place)[i] = static_cast<unsigned char>(byte);
        }
    }

    template <class Body>
    __device__ __forceinline__ void run_blocks(dim3 grid, bool refused, bool takes_part,
                                               Body&& body) {
        if (refused || !detail::valid_grid(grid)) {
            if (is_first()) memory_->left.refused = 1;   // the host's loop goes on as well
            return;
        }
        begin_change();
        const unsigned long long blocks = 1ull * grid.x * grid.y * grid.z;
        for (unsigned long long block = blockIdx.x; block < blocks; block += gridDim.x) {
            const unsigned long long row = grid.y == 1 && grid.z == 1 ? 0 : block / grid.x;
            uint3 index;
            index.x = static_cast<unsigned>(block - row * grid.x);
            index.y = static_cast<unsigned>(row % grid.y);
            index.z = static_cast<unsigned>(row / grid.y);
            if (takes_part) body(index, grid);
            __syncthreads();   // shared memory is free for the next block
        }
    }

    // All blocks meet. `alone` is what the last one to arrive does while the others wait: it sees
    // what all have written, and they see what it has.
    template <class Alone>
    __device__ __forceinline__ void meet(Alone&& alone) {
        __syncthreads();
        if (detail::linear_thread() == 0) {
            detail::Meeting& meeting = memory_->meeting;
            // release: what the threads of the block have written, which have met at a barrier
            detail::fence();
            if (atomicAdd(&meeting.arrived, 1u) == gridDim.x - 1) {
                detail::fence();   // acquire
                detail::store_relaxed(meeting.arrived, 0u);
                alone();
                detail::fence();   // release
                detail::store_relaxed(meeting.met, met_ + 1);
            } else {
                while (detail::load_relaxed(meeting.met) == met_) {
                }
                detail::fence();   // acquire
            }
        }
        __syncthreads();
        ++met_;
        used_ = Used::kNot;
    }

    // From here on threads write what others have read or written before.
    __device__ __forceinline__ void begin_change() {
        if (used_ != Used::kNot) meet([] {});
        used_ = Used::kWritten;
    }

    // One thread changes a few bytes.
    template <class Change>
    __device__ __forceinline__ void change(Change&& write) {
        if (used_ != Used::kNot) {
            meet(static_cast<Change&&>(write));
        } else {
            if (is_first()) write();
            used_ = Used::kWritten;
        }
    }

    // What `look` reads, for all threads: one of them looks, as the place may be memory of the
    // host, where each look takes a microsecond.
    template <class Look>
    __device__ __forceinline__ unsigned long long read(Look&& look) {
        meet([&] { memory_->meeting.read = look(); });
        return memory_->meeting.read;
    }

    // What threads may have done to memory since they last met.
    enum class Used : unsigned char { kNot, kWritten };

    detail::RoundsMemory<State>* memory_ = nullptr;
    State state_{};
    unsigned met_ = 0;
    Used used_ = Used::kNot;
    // CUDA refuses blocks of the loop's size: none of its kernels runs that has such blocks.
    bool no_block_ = false;
};

namespace detail {

/// Launches one kernel.
template <auto Kernel>
struct RoundsOwner {
    template <class State, class... Args>
    static cudaError_t run(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                           State& state, Args... args) {
        Rounds<State> rounds;
        void* pointers[] = {&rounds, &args...};
        rounds.no_block_ = !valid_block(block);
        // One thread runs a loop whose kernels CUDA refuses.
        const dim3 own = rounds.no_block_ ? dim3(1) : block;
        unsigned blocks = 0;
        if (const cudaError_t error = resident(grid, own, shared_bytes, blocks)) return error;
        StreamMemory memory;
        if (!memory.take(stream, sizeof(RoundsMemory<State>), sizeof(RoundsMemory<State>)))
            return cudaErrorMemoryAllocation;
        memory.spoil();
        RoundsMemory<State>* const place = reinterpret_cast<RoundsMemory<State>*>(memory.memory());
        rounds.memory_ = place;
        rounds.state_ = state;
        const cudaError_t launched =
            blocks == 1 ? cudaLaunchKernel(Kernel, dim3(1), own, pointers, shared_bytes, stream)
                        : cudaLaunchCooperativeKernel(Kernel, dim3(blocks), own, pointers,
                                                      shared_bytes, stream);
        if (launched != cudaSuccess) return launched;
        RoundsLeft<State> left{state, 0};
        const cudaError_t copied =
            cudaMemcpyAsync(&left, &place->left, sizeof left, cudaMemcpyDeviceToHost, stream);
        if (copied != cudaSuccess) return copied;
        const cudaError_t done = cudaStreamSynchronize(stream);
        if (done != cudaSuccess) return done;
        state = left.state;
        // That a launch was refused is what CUDA's last error says, and no error of a copy.
        if (left.refused != 0)
            (void)cudaLaunchKernel(Kernel, dim3(rounds.no_block_ ? 1 : 0), block, pointers,
                                   shared_bytes, stream);
        return cudaSuccess;
    }

private:
    /// How many blocks run at a time, and no more than the grid has, but one that runs the loop.
    /// One, which waits for nobody, where the device can't promise that.
    static cudaError_t resident(dim3 grid, dim3 block, std::size_t shared_bytes, unsigned& blocks) {
        int device = 0, cooperative = 0, processors = 0, each = 0;
        cudaError_t error = cudaGetDevice(&device);
        if (error == cudaSuccess)
            error = cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device);
        if (error == cudaSuccess)
            error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
        if (error == cudaSuccess) {
            const int threads = static_cast<int>(block.x * block.y * block.z);
            error =
                cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, Kernel, threads, shared_bytes);
        }
        if (error != cudaSuccess) return error;
        const unsigned long long wanted = 1ull * grid.x * grid.y * grid.z;
        const auto together = [](int a, int b) {
            return 1ull * static_cast<unsigned>(a) * static_cast<unsigned>(b);
        };
        const unsigned long long most = cooperative != 0 ? together(each, processors) : 1;
        blocks = static_cast<unsigned>(wanted < most ? (wanted == 0 ? 1 : wanted) : most);
        return blocks != 0 ? cudaSuccess : cudaErrorLaunchOutOfResources;
    }
};

template <auto Kernel, class Function = decltype(Kernel)>
struct RoundsLauncher {
    static_assert(sizeof(Function) == 0,
                  "a kernel of rounds is a void (gridfuse::Rounds<State>, ...)");
};
template <auto Kernel, class State, class... Args>
struct RoundsLauncher<Kernel, void (*)(Rounds<State>, Args...)> {
    cudaError_t operator()(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                           State& state, Args... args) const {
        return RoundsOwner<Kernel>::run(grid, block, shared_bytes, stream, state, args...);
    }
};
template <auto Kernel, class... Args>
struct RoundsLauncher<Kernel, void (*)(Rounds<NoState>, Args...)> {
    cudaError_t operator()(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                           Args... args) const {
        NoState none;
        return RoundsOwner<Kernel>::run(grid, block, shared_bytes, stream, none, args...);
    }
};

}   // namespace detail

/// Runs a kernel of Rounds and waits for it, in place of the host's loop:
///
///     relax_state state = {again};
///     gridfuse::run_rounds<relax_rounds>(blocks, 256, 0, stream, state, blocks, x, changed);
///
/// As many blocks as the device can run at a time, and no more than the largest of the grids has,
/// run all of them; one block where the device launches nothing cooperatively. `state` is what the
/// loop leaves, if there was no error. A grid that CUDA would refuse, for its size or that of its
/// blocks, runs nothing, and the loop goes on; cudaGetLastError() tells of it afterwards.
template <auto Kernel>
inline constexpr detail::RoundsLauncher<Kernel> run_rounds{};

/// A grid that is as large as any: the kernel gets all blocks that the device can run at a time.
inline const dim3 any_grid{detail::kMaxGridX};

/// The larger of two grids.
inline dim3 larger_grid(dim3 a, dim3 b) {
    return 1ull * a.x * a.y * a.z < 1ull * b.x * b.y * b.z ? b : a;
}

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_ROUNDS_CUH
