// SPDX-License-Identifier: MIT OR Apache-2.0
//
// CUDA's atomic operations, by what they do.

#ifndef GRIDFUSE_ATOMICS_CUH
#define GRIDFUSE_ATOMICS_CUH

#include "version.cuh"

namespace gridfuse {
inline namespace v2 {

namespace detail {

/// What an atomic operation does.
enum class Operation { Add, Sub, Min, Max, And, Or, Xor };

/// CUDA's.
template <Operation Which, class T, class V>
__device__ __forceinline__ void operate(T* place, V value) {
    if constexpr (Which == Operation::Add) atomicAdd(place, static_cast<T>(value));
    else if constexpr (Which == Operation::Sub) atomicSub(place, static_cast<T>(value));
    else if constexpr (Which == Operation::Min) atomicMin(place, static_cast<T>(value));
    else if constexpr (Which == Operation::Max) atomicMax(place, static_cast<T>(value));
    else if constexpr (Which == Operation::And) atomicAnd(place, static_cast<T>(value));
    else if constexpr (Which == Operation::Or) atomicOr(place, static_cast<T>(value));
    else atomicXor(place, static_cast<T>(value));
}

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_ATOMICS_CUH
