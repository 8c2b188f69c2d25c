// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Atomic operations of a thread that is alone.

#ifndef GRIDFUSE_SERIAL_ATOMICS_CUH
#define GRIDFUSE_SERIAL_ATOMICS_CUH

#include "version.cuh"

namespace gridfuse {
inline namespace v2 {

/// Atomics on shared memory of a block that one thread runs: nothing can come between, and local
/// memory, where that memory lies, has no atomic operations.
namespace serial {

template <class T, class V = T>
__device__ __forceinline__ T atomicExch(T* place, V value) {
    const T old = *place;
    *place = static_cast<T>(value);
    return old;
}
template <class T, class V = T>
__device__ __forceinline__ T atomicAdd(T* place, V value) {
    return serial::atomicExch(place, *place + static_cast<T>(value));
}
template <class T, class V = T>
__device__ __forceinline__ T atomicSub(T* place, V value) {
    return serial::atomicExch(place, *place - static_cast<T>(value));
}
template <class T, class V = T>
__device__ __forceinline__ T atomicMin(T* place, V value) {
    return serial::atomicExch(place,
                              static_cast<T>(value) < *place ? static_cast<T>(value) : *place);
}
template <class T, class V = T>
__device__ __forceinline__ T atomicMax(T* place, V value) {
    return serial::atomicExch(place,
                              *place < static_cast<T>(value) ? static_cast<T>(value) : *place);
}
template <class T, class V = T>
__device__ __forceinline__ T atomicAnd(T* place, V value) {
    return serial::atomicExch(place, *place & static_cast<T>(value));
}
template <class T, class V = T>
__device__ __forceinline__ T atomicOr(T* place, V value) {
    return serial::atomicExch(place, *place | static_cast<T>(value));
}
template <class T, class V = T>
__device__ __forceinline__ T atomicXor(T* place, V value) {
    return serial::atomicExch(place, *place ^ static_cast<T>(value));
}
template <class T, class V = T>
__device__ __forceinline__ T atomicInc(T* place, V limit) {
    return serial::atomicExch(place, *place >= static_cast<T>(limit) ? T(0) : *place + 1);
}
template <class T, class V = T>
__device__ __forceinline__ T atomicDec(T* place, V limit) {
    const bool wraps = *place == 0 || *place > static_cast<T>(limit);
    return serial::atomicExch(place, wraps ? static_cast<T>(limit) : *place - 1);
}
template <class T, class E = T, class V = T>
__device__ __forceinline__ T atomicCAS(T* place, E expected, V value) {
    const T old = *place;
    if (old == static_cast<T>(expected)) *place = static_cast<T>(value);
    return old;
}

}   // namespace serial

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_SERIAL_ATOMICS_CUH
