// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Running child grids in the thread that would have launched them.

#ifndef GRIDFUSE_SERIAL_CUH
#define GRIDFUSE_SERIAL_CUH

#include "version.cuh"

#include <type_traits>

namespace gridfuse {
inline namespace v2 {

/// Runs the threads of a child grid one at a time in the calling thread:
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

/// The same for a one-dimensional grid of which only the first `count` threads have something to
/// do. A body that ends in an atomic operation or a store has to wait for the one before anyhow; of
/// others, which only collect something (SumAt), `AtATime` may be under way.
template <unsigned AtATime = 1, class Count, class Body>
__device__ __forceinline__ void for_each_thread(dim3 grid, dim3 block, Count count, Body&& body) {
    static_assert(std::is_integral<Count>::value, "a number of threads");
    using Number = std::make_unsigned_t<Count>;
    const unsigned long long all = 1ull * grid.x * block.x;   // less than 2^63
    Number threads = count > 0 ? static_cast<Number>(count) : 0;
    if (all < threads) threads = static_cast<Number>(all);
    uint3 b = {0, 0, 0}, t = {0, 0, 0};
    // One loop, for blocks and threads: with a constant block size the compiler sees that
    // `blockIdx.x * blockDim.x + threadIdx.x` is the loop's variable again.
#pragma unroll AtATime
    for (Number number = 0; number < threads; ++number) {
        t.x = static_cast<unsigned>(number % block.x);
        b.x = static_cast<unsigned>(number / block.x);
#ifdef __CUDA_ARCH__
        // what the body is about to ask
        __builtin_assume(static_cast<Count>(b.x * block.x + t.x) < count);
#endif
        body(t, b, grid, block);
    }
}

/// Runs the blocks of a child grid one at a time in the calling thread:
/// `body(blockIdx, gridDim, blockDim)`.
template <class Body>
__device__ __forceinline__ void for_each_block(dim3 grid, dim3 block, Body&& body) {
    uint3 b;
    for (b.z = 0; b.z < grid.z; ++b.z)
        for (b.y = 0; b.y < grid.y; ++b.y)
            for (b.x = 0; b.x < grid.x; ++b.x) body(b, grid, block);
}

/// Runs the threads of a block one at a time in the calling thread, up to where they would wait
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

/// How many threads a block has, and a grid: what a cooperative group calls its size.
__device__ __forceinline__ unsigned thread_count(dim3 block) { return block.x * block.y * block.z; }
__device__ __forceinline__ unsigned long long thread_count(dim3 block, dim3 grid) {
    return 1ull * grid.x * grid.y * grid.z * thread_count(block);
}

/// The number of a thread in its block, and in its grid: what a cooperative group calls its rank.
__device__ __forceinline__ unsigned thread_rank(uint3 thread, dim3 block) {
    return thread.x + block.x * (thread.y + block.y * thread.z);
}
__device__ __forceinline__ unsigned long long thread_rank(uint3 thread, uint3 block_index, dim3 block,
                                                          dim3 grid) {
    const unsigned long long blocks_before =
        block_index.x + 1ull * grid.x * (block_index.y + 1ull * grid.y * block_index.z);
    return blocks_before * thread_count(block) + thread_rank(thread, block);
}

/// The threads of a block of at most `Count` that have not returned from the kernel; the calling
/// thread runs them one at a time.
template <unsigned Count>
class BlockThreads {
public:
    __device__ __forceinline__ explicit BlockThreads(dim3 block)
        : block_(block), left_(block.x * block.y * block.z) {}

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

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_SERIAL_CUH
