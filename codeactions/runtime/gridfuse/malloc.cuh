// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Allocating together. malloc_together gives threads that allocate at the same time parts of one
// allocation; free_together frees that when the last part is given back.

#ifndef GRIDFUSE_MALLOC_CUH
#define GRIDFUSE_MALLOC_CUH

#include "memory_order.cuh"
#include "threads.cuh"

#include <cstddef>
#include <type_traits>

namespace gridfuse {
inline namespace v2 {

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
// by a thread that comes along and wants nothing
constexpr std::size_t kNoPart = ~std::size_t(0);

/// What a part of this size takes, with what stands in front of it.
__device__ __forceinline__ unsigned long long part_bytes(std::size_t bytes) {
    return sizeof(Part) + (bytes + 15) / 16 * 16;
}

/// The part that begins after `offset` bytes of other parts.
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

/// malloc() for device code. The threads of a warp that happen to be here together allocate once.
/// The memory is aligned to 16 bytes and must be given back with free_together(), by any thread of
/// any kernel. nullptr if there is no memory for it. For 0 bytes it is a place of its own, as
/// malloc() gives one on a GPU.
__device__ inline void* malloc_together(std::size_t bytes) {
    const unsigned together = __activemask();
    const int leader = detail::first_of(together),
              lane = static_cast<int>(detail::lane_of(detail::linear_thread()));
    const bool takes_part = bytes <= detail::kMostTogether;
    const unsigned long long own = takes_part ? detail::part_bytes(bytes) : 0;
    unsigned long long before = 0, all = 0;
    for (unsigned rest = together; rest != 0; rest &= rest - 1) {
        const int from = detail::first_of(rest);
        const unsigned long long size = __shfl_sync(together, own, from);
        if (from < lane) before += size;
        all += size;
    }
    const unsigned parts = detail::count_of(__ballot_sync(together, takes_part));
    unsigned long long whole = 0;
    if (lane == leader && parts != 0)
        whole = reinterpret_cast<unsigned long long>(detail::allocate_together(all, parts));
    __syncwarp(together);   // the others may count parts that the leader has written
    whole = __shfl_sync(together, whole, leader);
    if (!takes_part) return nullptr;
    if (whole == 0) return parts > 1 ? detail::allocate_alone(bytes) : nullptr;
    return detail::part_at(reinterpret_cast<detail::Together*>(whole), before);
}

/// The same for a whole block: all its threads that have not returned must be here, as at a
/// barrier.
__device__ inline void* malloc_together_in_block(std::size_t bytes) {
    // for the bytes of all parts; 11 for the number of up to 1024 parts
    constexpr unsigned kSizeBits = 53;
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
__device__ inline void free_together(const volatile void* memory) {
    if (memory == nullptr) return;
    detail::Together* const whole =
        (static_cast<const detail::Part*>(const_cast<const void*>(memory)) - 1)->whole;
    const unsigned together = __activemask();
    const unsigned same = __match_any_sync(together, reinterpret_cast<unsigned long long>(whole));
    __syncwarp(same);
    if ((same & detail::lanes_below()) != 0) return;
    // What these threads did with their parts comes before the memory is given to others.
    detail::fence();
    const unsigned back = detail::count_of(same);
    if (atomicSub(&whole->parts, back) == back) {
        detail::fence();
        free(whole);
    }
}

namespace detail {

/// What a cudaMalloc() of a device fails with: it leaves the place as it is, and cudaGetLastError()
/// tells of it. Who asks for nothing, or has no place, is told so.
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
    static_assert(std::is_trivially_default_constructible<T>::value &&
                      std::is_trivially_destructible<T>::value,
                  "new_together constructs nothing");
    static_assert(alignof(T) <= 16, "over-aligned type");
    if (count > detail::kMostTogether / sizeof(T)) return nullptr;
    return static_cast<T*>(malloc_together(count * sizeof(T)));
}

/// The same for a whole block.
template <class T>
__device__ __forceinline__ T* new_together_in_block(std::size_t count) {
    static_assert(std::is_trivially_default_constructible<T>::value &&
                      std::is_trivially_destructible<T>::value,
                  "new_together_in_block constructs nothing");
    static_assert(alignof(T) <= 16, "over-aligned type");
    // all threads must come to the barriers
    const bool possible = count <= detail::kMostTogether / sizeof(T);
    return static_cast<T*>(
        malloc_together_in_block(possible ? count * sizeof(T) : detail::kNoPart));
}

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_MALLOC_CUH
