// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Atomic operations together. warp_aggregated::atomicAdd and the like are CUDA's without the old
// value: threads of a warp that are there at the same time, with the same place, combine their
// values and do one of them.

#ifndef GRIDFUSE_WARP_ATOMICS_CUH
#define GRIDFUSE_WARP_ATOMICS_CUH

#include "atomics.cuh"
#include "threads.cuh"

#include <type_traits>

namespace gridfuse {
inline namespace v2 {

namespace detail {

/// The values of the threads in `together`, combined. Every one of them is here.
template <Operation Which>
__device__ __forceinline__ unsigned combined(unsigned together, unsigned value) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    if constexpr (Which == Operation::Add || Which == Operation::Sub)
        return __reduce_add_sync(together, value);
    if constexpr (Which == Operation::Min) return __reduce_min_sync(together, value);
    if constexpr (Which == Operation::Max) return __reduce_max_sync(together, value);
    if constexpr (Which == Operation::And) return __reduce_and_sync(together, value);
    if constexpr (Which == Operation::Or) return __reduce_or_sync(together, value);
    return __reduce_xor_sync(together, value);
#else
    (void)together;   // not called
    return value;
#endif
}
template <Operation Which>
__device__ __forceinline__ unsigned long long combined(unsigned together,
                                                       unsigned long long value) {
    const unsigned low = static_cast<unsigned>(value), high = static_cast<unsigned>(value >> 32);
    if constexpr (Which == Operation::Add || Which == Operation::Sub) {
        // Parts of 27 bits: the sum of 32 of them has 32.
        constexpr unsigned kPart = (1u << 27) - 1;
        const unsigned long long first = combined<Which>(together, low & kPart);
        const unsigned long long second =
            combined<Which>(together, static_cast<unsigned>(value >> 27) & kPart);
        const unsigned long long third =
            combined<Which>(together, static_cast<unsigned>(value >> 54));
        return first + (second << 27) + (third << 54);
    } else if constexpr (Which == Operation::Min || Which == Operation::Max) {
        const unsigned best = combined<Which>(together, high);
        const unsigned rest = high == best ? low : Which == Operation::Min ? ~0u : 0u;
        return static_cast<unsigned long long>(best) << 32 | combined<Which>(together, rest);
    } else {
        return static_cast<unsigned long long>(combined<Which>(together, high)) << 32 |
               combined<Which>(together, low);
    }
}

/// The operation of all threads of a warp that are here together with the same `place`, done by one
/// of them; by each of them where places differ, or numbers of this type can't be combined.
template <Operation Which, class T, class V>
__device__ __forceinline__ void operate_together(T* place, V value) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    if constexpr (std::is_integral<T>::value && (sizeof(T) == 4 || sizeof(T) == 8)) {
        using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
        const unsigned together = __activemask();
        int is_same = 0;
        __match_all_sync(together, reinterpret_cast<unsigned long long>(place), &is_same);
        if (is_same) {
            // With the sign's bit the other way round signed numbers have the order of unsigned
            // ones.
            constexpr bool ordered = Which == Operation::Min || Which == Operation::Max;
            constexpr Bits flip =
                ordered && std::is_signed<T>::value ? Bits{1} << (8 * sizeof(T) - 1) : 0;
            const Bits all =
                combined<Which>(together, static_cast<Bits>(static_cast<T>(value)) ^ flip) ^ flip;
            if ((together & lanes_below()) == 0) operate<Which>(place, static_cast<T>(all));
            __syncwarp(together);   // as if each of them had done it
            return;
        }
    }
#endif
    operate<Which>(place, value);
}

}   // namespace detail

/// Atomic operations whose old value nobody asks for, by the names of CUDA's: of the threads of a
/// warp that happen to be here together with the same place one does it for all. The same to the
/// last bit: floating-point numbers are added one by one.
namespace warp_aggregated {

template <class T, class V = T>
__device__ __forceinline__ void atomicAdd(T* place, V value) {
    detail::operate_together<detail::Operation::Add>(place, value);
}
template <class T, class V = T>
__device__ __forceinline__ void atomicSub(T* place, V value) {
    detail::operate_together<detail::Operation::Sub>(place, value);
}
template <class T, class V = T>
__device__ __forceinline__ void atomicMin(T* place, V value) {
    detail::operate_together<detail::Operation::Min>(place, value);
}
template <class T, class V = T>
__device__ __forceinline__ void atomicMax(T* place, V value) {
    detail::operate_together<detail::Operation::Max>(place, value);
}
template <class T, class V = T>
__device__ __forceinline__ void atomicAnd(T* place, V value) {
    detail::operate_together<detail::Operation::And>(place, value);
}
template <class T, class V = T>
__device__ __forceinline__ void atomicOr(T* place, V value) {
    detail::operate_together<detail::Operation::Or>(place, value);
}
template <class T, class V = T>
__device__ __forceinline__ void atomicXor(T* place, V value) {
    detail::operate_together<detail::Operation::Xor>(place, value);
}

}   // namespace warp_aggregated

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_WARP_ATOMICS_CUH
