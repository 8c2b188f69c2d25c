// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Loops in a block. BlockLoop runs the iterations of a kernel of one block that launches itself
// into cudaStreamTailLaunch.

#ifndef GRIDFUSE_BLOCK_LOOP_CUH
#define GRIDFUSE_BLOCK_LOOP_CUH

#include "arguments.cuh"

#include <type_traits>

namespace gridfuse {
inline namespace v2 {

/// A kernel of one block that ends by launching itself into cudaStreamTailLaunch, as a loop in that
/// block:
///
///     struct relax_args { int round; };   // the arguments that differ between the iterations
///
///     __global__ void relax(float* x, int n, int round) {
///         gridfuse::BlockLoop<relax_args> relaxes({round});
///         while (relaxes.next())
///             relax_body(relaxes, x, n, relaxes.args().round);   // calls relaxes.launch({round +
///             1}) to go on
///     }
///
/// An iteration begins when all threads of the block are done with the one before, and sees what
/// they have written.
template <class Args = detail::NoArguments>
class BlockLoop {
    static_assert(std::is_trivially_copyable<Args>::value,
                  "the arguments of a launch are copied byte by byte");

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
    // Two of them: a thread may read the one when another thread writes the other already, and is
    // past a barrier before the one is written again.
    static __device__ __forceinline__ detail::Bytes<Args>* handed_over() {
        __shared__ detail::Bytes<Args> both[2];
        return both;
    }

    detail::Bytes<Args> args_;
    bool began_ = false;
    bool launched_ = false;
    bool odd_ = false;
};

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_BLOCK_LOOP_CUH
