// SPDX-License-Identifier: MIT OR Apache-2.0
//
// How many launches were not collected.

#ifndef GRIDFUSE_DIRECT_LAUNCHES_CUH
#define GRIDFUSE_DIRECT_LAUNCHES_CUH

#include "version.cuh"

// Relocatable device code, as nvcc says it and as clang does.
#if defined(__CUDACC_RDC__) || defined(__CLANG_RDC__)
#define GRIDFUSE_LINKED_ON_DEVICE
#endif
#if defined(__CUDACC_DEBUG__) && !defined(GRIDFUSE_DEBUG)
#define GRIDFUSE_DEBUG
#endif
#ifdef GRIDFUSE_DEBUG
#include <cstdio>
#endif

namespace gridfuse {
inline namespace v2 {

namespace detail {

// Launches that got a grid of their own, or were run by the thread that would have launched. One
// for all translation units of a program that are linked on the device.
#ifdef GRIDFUSE_LINKED_ON_DEVICE
inline __device__ unsigned long long direct_launches = 0;
#else
static __device__ unsigned long long direct_launches = 0;
#endif

// With GRIDFUSE_DEBUG defined, what makes a program slow and not wrong is said. Nothing is printed
// otherwise.
#ifdef GRIDFUSE_DEBUG
__device__ __forceinline__ void say_aside(unsigned launches) {
    printf(
        "gridfuse: %u launches of a group didn't fit into the arena and were put aside (block %u "
        "of the parent): more bytes_per_thread "
        "or nested_bytes in arena_for may help\n",
        launches, blockIdx.x);
}
__device__ __forceinline__ void say_full() {
    printf(
        "gridfuse: launches that were to run after the parent find no room, and run in their "
        "threads (block %u of the parent): a number "
        "in place of kNotKnown in followed_by says how many launches of each thread there is room "
        "for\n",
        blockIdx.x);
}
__device__ __forceinline__ void say_no_heap() {
    printf(
        "gridfuse: a launch found neither room in the arena nor on the device's heap "
        "(cudaLimitMallocHeapSize) and went out at once\n");
}
__device__ __forceinline__ void say_not_left() {
    printf(
        "gridfuse: the device launched what was to be left to the host: the kernel isn't listed in "
        "launchpad_for, or the launchpad is full\n");
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

}   // namespace detail

// each translation unit has its own counter then, and reads that
#ifndef GRIDFUSE_LINKED_ON_DEVICE
static
#endif
/// How many launches by aggregators have got a grid of their own since the program began, or were
/// run by the thread that would have launched: the arena was full or there was none, or they
/// couldn't be launched together. Waits for the device. Other than 0, it says where the time goes.
inline unsigned long long direct_launches() {
    unsigned long long count = 0;
    return cudaMemcpyFromSymbol(&count, detail::direct_launches, sizeof count) == cudaSuccess
               ? count
               : 0;
}

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_DIRECT_LAUNCHES_CUH
