// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Which thread of its block, and which block of its grid, the calling thread is in.

#ifndef GRIDFUSE_THREADS_CUH
#define GRIDFUSE_THREADS_CUH

#include "version.cuh"

namespace gridfuse {
inline namespace v2 {

namespace detail {

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
    return blockIdx.x + static_cast<unsigned long long>(gridDim.x) *
                            (blockIdx.y + static_cast<unsigned long long>(gridDim.y) * blockIdx.z);
}

__device__ __forceinline__ unsigned lanes_below() {
    unsigned mask;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    return mask;
}

/// How many lanes a set of them has.
__device__ __forceinline__ unsigned count_of(unsigned lanes) {
    return static_cast<unsigned>(__popc(lanes));
}

/// The first lane of a set that isn't empty; as shuffles take it.
__device__ __forceinline__ int first_of(unsigned lanes) {
    return __ffs(static_cast<int>(lanes)) - 1;
}

/// The dynamic shared memory of a block.
__device__ __forceinline__ unsigned dynamic_shared_bytes() {
    unsigned bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_THREADS_CUH
