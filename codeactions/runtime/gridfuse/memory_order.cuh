// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Accesses to memory that other threads write at the same time, and the order of what a thread does
// there.

#ifndef GRIDFUSE_MEMORY_ORDER_CUH
#define GRIDFUSE_MEMORY_ORDER_CUH

#include "version.cuh"

namespace gridfuse {
inline namespace v2 {

namespace detail {

template <class T>
__device__ __forceinline__ T load_relaxed(const T& place) {
    return *const_cast<const volatile T*>(&place);
}
template <class T>
__device__ __forceinline__ void store_relaxed(T& place, T value) {
    *const_cast<volatile T*>(&place) = value;
}

/// Orders acquire and release with the whole device, which costs less than __threadfence(): that
/// one is sequentially consistent.
__device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_MEMORY_ORDER_CUH
